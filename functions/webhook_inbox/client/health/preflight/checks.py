"""Runs the checks in order; one that cannot be read is unknown, and the others go on."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from webhook_inbox.adapters.aws.account import Account, resolve
from webhook_inbox.adapters.aws.account_facts import AccountFacts, CallerIdentity
from webhook_inbox.adapters.aws.reader import Reader, Unread
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.health.preflight import (
    bootstrap,
    concurrency,
    identity,
    names,
    quotas,
    secrets,
)
from webhook_inbox.client.health.preflight.plan import DeploymentPlan, TemplateResources
from webhook_inbox.client.health.result import CheckResult, Level
from webhook_inbox.domain.ports import Clock

# A check's name, and the function that reads the account and judges.
AccountCheck = tuple[str, Callable[[], CheckResult | Iterable[CheckResult]]]


def check_account(
    selection: Selection,
    *,
    project: Path,
    synthesize: Callable[[], DeploymentPlan],
    clock: Clock,
) -> Iterator[CheckResult]:
    """Yields what an account lacks for a deployment, before there is a stack; changes nothing.

    Args:
        selection: selects the profile and the region.
        project: the directory of the app, whose `cdk.json` may select others for the CDK CLI.
        synthesize: returns the plan of the deployment; called once the credentials are valid.
        clock: the time.
    """
    account = resolve(selection.profile, selection.region)
    first = identity.region(account.region)
    if first.level is Level.FAILURE:
        yield first
        return
    facts = AccountFacts(Reader(account.clients))
    try:
        caller = facts.caller()
    except Unread as error:
        yield first
        yield CheckResult("credentials", Level.FAILURE, "not valid", remedy=str(error))
        return
    yield identity.credentials(account, caller)
    yield first
    yield identity.agreement(account, identity.of_cdk(project))
    for name, check in _checks(facts, synthesize(), caller, account, clock):
        try:
            found = check()
            yield from (found,) if isinstance(found, CheckResult) else found
        except Unread as error:
            yield CheckResult(name, Level.UNKNOWN, "not checked", remedy=str(error))


def _checks(
    facts: AccountFacts,
    plan: DeploymentPlan,
    caller: CallerIdentity,
    account: Account,
    clock: Clock,
) -> Iterator[AccountCheck]:
    def deployed_bootstrap() -> CheckResult:
        version = facts.bootstrap_version(plan.bootstrap_parameter)
        region = str(account.region.value)
        return bootstrap.judge(plan, version, account=caller.account, region=region)

    yield "bootstrap", deployed_bootstrap
    yield "stack", lambda: names.stack(plan, facts.stack_status(plan.stack))
    yield "names", lambda: names.collisions(plan, names.read_holders(facts, plan))
    yield (
        "deleted queues",
        lambda: names.recently_deleted(plan, facts.deleted_at(plan.stack), clock.now()),
    )
    yield secrets.CHECK, lambda: secrets.judge(plan, secrets.read(facts, plan))
    yield from _limits(facts, plan)


def _limits(facts: AccountFacts, plan: DeploymentPlan) -> Iterator[AccountCheck]:
    def deployed() -> TemplateResources:
        return TemplateResources.of(facts.template(plan.stack))

    yield (
        "lambda concurrency",
        lambda: list(concurrency.judge(plan, deployed(), facts.lambda_limits())),
    )
    yield "lambda code storage", lambda: quotas.code_storage(plan, facts.lambda_limits())
    yield "routes of the API", lambda: quotas.routes(plan, quotas.routes_quota(facts))
    yield "APIs of the region", lambda: quotas.apis(plan, deployed(), facts.count_apis())
    yield "alarms", lambda: quotas.alarms(plan)
    yield "secrets of the region", lambda: quotas.secrets(plan)
    yield "log resource policies", lambda: quotas.log_policies(facts.log_policies())
