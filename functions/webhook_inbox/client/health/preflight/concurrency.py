"""Lambda's concurrent executions, which all functions of an account and region share."""

from collections.abc import Iterator
from typing import Final

from webhook_inbox.adapters.aws.account_facts import LambdaLimits
from webhook_inbox.client.health.preflight.plan import DeploymentPlan, TemplateResources
from webhook_inbox.client.health.result import CheckResult
from webhook_inbox.domain.printable import counted

# The reconciler and one replay.
MAINTENANCE: Final = 2
# Executions that a burst of deliveries needs; with fewer, API Gateway answers 5xx, and a provider
# that does not retry, such as GitHub, loses the delivery.
INGEST: Final = 3
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
UNRESERVED: Final = 100
LEAST_WORKERS: Final = 2  # of an event source mapping
RAISE: Final = (
    "`aws service-quotas request-service-quota-increase --service-code lambda"
    " --quota-code L-B99A9384 --desired-value 1000`"
)


def judge(
    plan: DeploymentPlan, deployed: TemplateResources, limits: LambdaLimits
) -> Iterator[CheckResult]:
    """Yields the results for the shared and for the reserved executions."""
    # The deployed stack's own reservations are already subtracted.
    free = limits.unreserved + deployed.reserved
    unreserved = free - plan.template.reserved
    yield _shared(plan, total=limits.concurrency, unreserved=unreserved)
    if plan.template.reserved:
        yield _reserved(plan, free=free)


def _shared(plan: DeploymentPlan, *, total: int, unreserved: int) -> CheckResult:
    left = unreserved - plan.template.workers - MAINTENANCE
    lanes = counted(plan.template.lanes, "lane")
    figure = (
        f"{plan.template.workers} workers of {lanes}, the reconciler and a replay leave {left} for"
        " ingest"
    )
    lower = (
        ", or lower `workers` of a lane in inbox.toml"
        if plan.template.workers > LEAST_WORKERS * plan.template.lanes
        else ""
    )
    remedy = f"raise the quota: {RAISE}{lower}"
    return CheckResult.judged(
        "lambda concurrency",
        figure,
        f"{total:,} in the account, {unreserved:,} unreserved",
        failure=remedy if left < 1 else "",
        warning=remedy if left < INGEST else "",
    )


def _reserved(plan: DeploymentPlan, *, free: int) -> CheckResult:
    wanted, most = plan.template.reserved, max(0, free - UNRESERVED)
    return CheckResult.judged(
        "lambda reservations",
        f"{wanted} reserved by this stack",
        f"{most} ({UNRESERVED} must stay unreserved)",
        failure=""
        if wanted <= most
        else f"leave out `-c reserved_concurrency`, or raise the quota: {RAISE}",
    )
