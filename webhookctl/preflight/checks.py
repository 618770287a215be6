"""Runs the checks in order; one that cannot be read is unknown, and the others go on."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from webhook_inbox.adapters.aws.account import Account
from webhookctl.preflight import bootstrap, concurrency, identity, names, quotas, secrets
from webhookctl.preflight.identity import Identity
from webhookctl.preflight.plan import Plan
from webhookctl.preflight.reader import Reader, Unread
from webhookctl.preflight.result import Level, Result

# A check's name, and the function that reads the account and judges.
Check = tuple[str, Callable[[], Result | Iterable[Result]]]


def results(
    reader: Reader, plan: Plan, caller: Identity, account: Account, now: datetime
) -> Iterator[Result]:
    """Yields the results of all checks of the account."""
    for name, check in _checks(reader, plan, caller, account, now):
        try:
            found = check()
            yield from (found,) if isinstance(found, Result) else found
        except Unread as error:
            yield Result(name, Level.UNKNOWN, "not checked", remedy=str(error))


def _checks(
    reader: Reader, plan: Plan, caller: Identity, account: Account, now: datetime
) -> Iterator[Check]:
    def deployed_bootstrap() -> Result:
        version, region = bootstrap.read(reader, plan), str(account.region.value)
        return bootstrap.judge(plan, version, account=caller.account, region=region)

    yield "bootstrap", deployed_bootstrap
    yield "stack", lambda: names.stack(plan, reader.stack(plan.stack))
    yield "names", lambda: names.collisions(plan, names.read_holders(reader, plan))
    yield (
        "deleted queues",
        lambda: names.recently_deleted(plan, names.read_deletions(reader), now),
    )
    yield secrets.CHECK, lambda: secrets.judge(plan, secrets.read(reader, plan))
    yield from _limits(reader, plan)


def _limits(reader: Reader, plan: Plan) -> Iterator[Check]:
    def deployed_concurrency() -> list[Result]:
        settings = reader.call("lambda", "get_account_settings")
        return list(concurrency.judge(plan, reader.deployed(plan.stack), settings))

    def code() -> Result:
        return quotas.code_storage(plan, reader.call("lambda", "get_account_settings"))

    yield "lambda concurrency", deployed_concurrency
    yield "lambda code storage", code
    yield "routes of the API", lambda: quotas.routes(plan, quotas.routes_quota(reader))
    yield (
        "APIs of the region",
        lambda: quotas.apis(plan, reader.deployed(plan.stack), quotas.count_apis(reader)),
    )
    yield "alarms", lambda: quotas.alarms(plan)
    yield "secrets of the region", lambda: quotas.secrets(plan)
    yield "log resource policies", lambda: quotas.log_policies(quotas.read_policies(reader))


def identified(reader: Reader, account: Account, cdk: Account) -> tuple[list[Result], Identity]:
    """Returns the results for credentials and region, and the caller.

    The caller's account is empty where the credentials or the region are missing: nothing else can
    be checked.
    """
    first = identity.region(account.region)
    if first.level is Level.FAILURE:
        return [first], Identity("", "")
    try:
        answer = reader.call("sts", "get_caller_identity")
    except Unread as error:
        failed = Result("credentials", Level.FAILURE, "not valid", remedy=str(error))
        return [first, failed], Identity("", "")
    caller = Identity(answer["Account"], answer["Arn"])
    return [identity.credentials(account, caller), first, identity.agreement(account, cdk)], caller
