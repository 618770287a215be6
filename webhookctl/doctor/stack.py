"""The stack, its drift, and this machine's clock."""

from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from webhook_inbox.client.times import relative, span
from webhookctl.doctor.examination import LOCAL, Examination
from webhookctl.preflight.reader import Unread
from webhookctl.preflight.result import Level, Result

# Requests to AWS fail with a larger difference:
# https://docs.aws.amazon.com/IAM/latest/UserGuide/signature-v4-troubleshooting.html
LARGEST: Final = timedelta(minutes=5)
NOTICED: Final = timedelta(seconds=30)


def described(exam: Examination) -> Any:
    """Returns CloudFormation's answer about the stack, with the headers of the response."""
    return exam.reader.call("cloudformation", "describe_stacks", StackName=exam.target.stack)


def stack(exam: Examination) -> Result:
    """Returns a failure where the last deployment failed, a warning where it was rolled back."""
    name = exam.target.stack
    status = str(described(exam)["Stacks"][0]["StackStatus"])
    events = f"`aws cloudformation describe-stack-events --stack-name {name}` has the cause"
    return Result.judged(
        "stack",
        status,
        failure=f"{events}; deploy again" if status.endswith("FAILED") else "",
        warning=f"the last deployment was rolled back: {events}"
        if "ROLLBACK" in status
        else "wait until the deployment has ended, and repeat"
        if status.endswith("IN_PROGRESS")
        else "",
    )


def drift(exam: Examination) -> Result:
    """Returns a warning where the last detection found resources that were changed by hand."""
    if exam.target.local:
        return Result("drift", Level.SKIPPED, LOCAL)
    name = exam.target.stack
    found = described(exam)["Stacks"][0].get("DriftInformation", {})
    status = found.get("StackDriftStatus", "NOT_CHECKED")
    if status in {"NOT_CHECKED", "UNKNOWN"}:
        start = exam.program.command("doctor", "--drift")
        return Result("drift", Level.UNKNOWN, "never detected", remedy=f"start it with `{start}`")
    at = found.get("LastCheckTimestamp")
    told = f"{status}, detected {relative(at, exam.now) if at else 'at an unknown time'}"
    differences = (
        f"`aws cloudformation describe-stack-resource-drifts --stack-name {name}` names the"
        " resources; deploy again, or change the template"
    )
    return Result.judged("drift", told, warning=differences if status == "DRIFTED" else "")


def start_drift(exam: Examination) -> Result:
    """Starts a drift detection, which takes minutes."""
    if exam.target.local:
        return Result("drift", Level.SKIPPED, LOCAL)
    exam.reader.call("cloudformation", "detect_stack_drift", StackName=exam.target.stack)
    again = exam.program.command("doctor")
    told = f"wait some minutes, then run `{again}`"
    return Result("drift", Level.UNKNOWN, "detection started", remedy=told)


def clock(exam: Examination) -> Result:
    """Returns a failure where this machine's clock differs so much that AWS refuses requests."""
    if exam.target.local:
        return Result("clock", Level.SKIPPED, "the inbox uses this machine's clock")
    headers = described(exam)["ResponseMetadata"]["HTTPHeaders"]
    if "date" not in headers:
        raise Unread("the response has no date")
    difference = exam.now - parsedate_to_datetime(headers["date"])
    size = abs(difference)
    remedy = "synchronize this machine's clock, for example `sudo chronyc makestep`"
    told = f"{span(size)} {'ahead of' if difference > timedelta(0) else 'behind'} AWS"
    return Result.judged(
        "clock",
        "agrees with AWS" if size <= NOTICED else told,
        failure=remedy if size >= LARGEST else "",
        warning=remedy if size > NOTICED else "",
    )
