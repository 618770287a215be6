"""Names that a deployment cannot take: the stack's, and those of its queues and log groups."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from webhook_inbox.domain.printable import counted
from webhookctl.preflight.plan import Plan
from webhookctl.preflight.reader import Reader
from webhookctl.preflight.result import CDK, Result

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


def stack(plan: Plan, found: Mapping[str, Any] | None) -> Result:
    """Returns the result for the state of the stack."""
    status = str(found["StackStatus"]) if found else "not deployed"
    remedy = "" if status in STABLE or not found else _repair(plan.stack, status)
    return Result.judged("stack", f"{plan.stack} {status}", failure=remedy)


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


def collisions(plan: Plan, holders: list[Holder]) -> Result:
    """Returns a failure where a name of the template belongs to no stack, or to another one."""
    others = [each for each in holders if each.owner != plan.stack]
    if not others:
        return Result.judged(
            "names", f"{counted(len(_fixed(plan)), 'fixed name')}, free or its own"
        )
    told = "; ".join(map(_told, others))
    return Result.judged("names", told, failure="; ".join(map(_free, others)))


def _fixed(plan: Plan) -> list[str]:
    template = plan.template
    return [*template.names(QUEUE, "QueueName"), *template.names(LOG_GROUP, "LogGroupName")]


def _told(holder: Holder) -> str:
    where = f"belongs to the stack {holder.owner}" if holder.owner else "belongs to no stack"
    return f"{holder.kind} {holder.name} {where}"


def _free(holder: Holder) -> str:
    if holder.owner:
        return f"choose another stack name, or remove the stack {holder.owner}"
    return f"check that nothing uses it, and run `{holder.remove}`"


def recently_deleted(plan: Plan, deletions: list[Mapping[str, Any]], now: datetime) -> Result:
    """Returns a warning within the time in which SQS refuses the names of deleted queues."""
    times = [
        each["DeletionTime"]
        for each in deletions
        if each["StackName"] == plan.stack and "DeletionTime" in each
    ]
    ago = now - max(times) if times else None
    blocked = ago is not None and ago < QUEUE_BLOCKED
    return Result.judged(
        "deleted queues",
        f"{plan.stack} was deleted {max(0, int(ago.total_seconds()))} s ago"
        if blocked and ago
        else "none in the last 60 s",
        "60 s",
        warning="wait 60 s: SQS refuses the name of a deleted queue for that time"
        if blocked
        else "",
    )


def read_deletions(reader: Reader) -> list[Mapping[str, Any]]:
    """Returns the last deleted stacks, one page of them."""
    found = reader.call("cloudformation", "list_stacks", StackStatusFilter=["DELETE_COMPLETE"])
    summaries: list[Mapping[str, Any]] = found["StackSummaries"]
    return summaries


def read_holders(reader: Reader, plan: Plan) -> list[Holder]:
    """Returns the existing resources that have names of the template."""
    return [*_queues(reader, plan), *_log_groups(reader, plan)]


def _queues(reader: Reader, plan: Plan) -> Iterator[Holder]:
    missing = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
    for name in plan.template.names(QUEUE, "QueueName"):
        found = reader.call("sqs", "get_queue_url", expected=missing, QueueName=name)
        if found:
            url = found["QueueUrl"]
            remove = f"aws sqs delete-queue --queue-url {url}"
            yield Holder("queue", name, _owner(reader, url), remove)


def _log_groups(reader: Reader, plan: Plan) -> Iterator[Holder]:
    for name in plan.template.names(LOG_GROUP, "LogGroupName"):
        found = reader.call("logs", "describe_log_groups", logGroupNamePrefix=name)
        if any(each["logGroupName"] == name for each in found["logGroups"]):
            remove = f"aws logs delete-log-group --log-group-name {name}"
            yield Holder("log group", name, _owner(reader, name), remove)


def _owner(reader: Reader, physical_id: str) -> str:
    """Returns the name of the stack with this resource; empty where none has it."""
    found = reader.call(
        "cloudformation",
        "describe_stack_resources",
        expected=("ValidationError",),
        PhysicalResourceId=physical_id,
    )
    resources = found["StackResources"] if found else []
    return str(resources[0]["StackName"]) if resources else ""
