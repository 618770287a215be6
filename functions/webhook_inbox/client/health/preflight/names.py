"""Names that a deployment cannot take: the stack's, and those of its queues and log groups."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from webhook_inbox.adapters.aws.account_facts import AccountFacts
from webhook_inbox.client.health.preflight.plan import DeploymentPlan
from webhook_inbox.client.health.result import CDK, CheckResult
from webhook_inbox.domain.printable import counted

# SQS refuses the name of a deleted queue for this time.
QUEUE_BLOCKED: Final = timedelta(seconds=60)
STABLE: Final = frozenset(
    {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"}
)
QUEUE: Final = "AWS::SQS::Queue"
LOG_GROUP: Final = "AWS::Logs::LogGroup"


class Holder(NamedTuple):
    """A resource that exists already.

    Attributes:
        kind: the word for its type.
        name: its name.
        owner: the stack that it belongs to; empty without one.
        remove: the command that deletes it.
    """

    kind: str
    name: str
    owner: str
    remove: str


def stack(plan: DeploymentPlan, status: str | None) -> CheckResult:
    """Returns the result for the state of the stack."""
    remedy = "" if status in STABLE or status is None else _repair(plan.stack, status)
    return CheckResult.judged("stack", f"{plan.stack} {status or 'not deployed'}", failure=remedy)


def _repair(name: str, status: str) -> str:
    """Returns the remedy for a stack that takes no deployment."""
    if status == "REVIEW_IN_PROGRESS":
        return f"delete the empty stack: `aws cloudformation delete-stack --stack-name {name}`"
    if status == "UPDATE_ROLLBACK_FAILED":
        return (
            f"run `{CDK} rollback {name}`, or `aws cloudformation continue-update-rollback"
            f" --stack-name {name}`"
        )
    if status.endswith("_IN_PROGRESS"):
        return (
            "wait until it ends: CloudFormation console > Stacks >"
            f" {name} > Events; then run this again"
        )
    if status == "DELETE_FAILED":
        return (
            "see the reason (CloudFormation console > Stacks >"
            f" {name} > Events), remove it, and run `aws cloudformation delete-stack --stack-name"
            f" {name}`"
        )
    # ROLLBACK_COMPLETE, ROLLBACK_FAILED, CREATE_FAILED: only deletion is possible.
    return (
        "the first deployment failed, see the reason in its events, and run `aws cloudformation"
        f" delete-stack --stack-name {name}`; a stack of prod needs `aws cloudformation"
        f" update-termination-protection --no-enable-termination-protection --stack-name {name}`"
        " first"
    )


def collisions(plan: DeploymentPlan, holders: Iterable[Holder]) -> CheckResult:
    """Returns a failure where a name of the template belongs to no stack, or to another one."""
    others = [each for each in holders if each.owner != plan.stack]
    if not others:
        return CheckResult.judged(
            "names", f"{counted(len(_fixed(plan)), 'fixed name')}, free or its own"
        )
    told = "; ".join(map(_holder_text, others))
    return CheckResult.judged("names", told, failure="; ".join(map(_free, others)))


def _fixed(plan: DeploymentPlan) -> list[str]:
    template = plan.template
    return [*template.names(QUEUE, "QueueName"), *template.names(LOG_GROUP, "LogGroupName")]


def _holder_text(holder: Holder) -> str:
    where = f"belongs to the stack {holder.owner}" if holder.owner else "belongs to no stack"
    return f"{holder.kind} {holder.name} {where}"


def _free(holder: Holder) -> str:
    if holder.owner:
        return f"choose another stack name, or remove the stack {holder.owner}"
    return f"check that nothing uses it, and run `{holder.remove}`"


def recently_deleted(
    plan: DeploymentPlan, deleted_at: datetime | None, now: datetime
) -> CheckResult:
    """Returns a warning within the time in which SQS refuses the names of deleted queues."""
    ago = None if deleted_at is None else now - deleted_at
    blocked = ago is not None and ago < QUEUE_BLOCKED
    return CheckResult.judged(
        "deleted queues",
        f"{plan.stack} was deleted {max(0, int(ago.total_seconds()))} s ago"
        if blocked and ago
        else "none in the last 60 s",
        "60 s",
        warning="wait 60 s: SQS refuses the name of a deleted queue for that time"
        if blocked
        else "",
    )


def read_holders(facts: AccountFacts, plan: DeploymentPlan) -> Iterator[Holder]:
    """Yields the existing resources that have names of the template."""
    for name in plan.template.names(QUEUE, "QueueName"):
        url = facts.queue_url(name)
        if url:
            remove = f"aws sqs delete-queue --queue-url {url}"
            yield Holder("queue", name, facts.owner_of(url), remove)
    for name in plan.template.names(LOG_GROUP, "LogGroupName"):
        if facts.has_log_group(name):
            remove = f"aws logs delete-log-group --log-group-name {name}"
            yield Holder("log group", name, facts.owner_of(name), remove)
