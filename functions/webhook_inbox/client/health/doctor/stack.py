"""The stack, its drift, and this machine's clock."""

from datetime import timedelta
from typing import Final

from webhook_inbox.adapters.aws.reader import Unread
from webhook_inbox.client.health.doctor.examination import LOCAL, Examination
from webhook_inbox.client.health.result import CheckResult, Level
from webhook_inbox.client.times import relative, span

# Requests to AWS fail with a larger difference:
# https://docs.aws.amazon.com/IAM/latest/UserGuide/signature-v4-troubleshooting.html
LARGEST: Final = timedelta(minutes=5)
NOTICED: Final = timedelta(seconds=30)


def stack(exam: Examination) -> CheckResult:
    """Returns a failure where the last deployment failed, a warning where it was rolled back."""
    name = exam.target.stack
    status = exam.stack.state().status
    events = f"`aws cloudformation describe-stack-events --stack-name {name}` has the cause"
    return CheckResult.judged(
        "stack",
        status,
        failure=f"{events}; deploy again" if status.endswith("FAILED") else "",
        warning=f"the last deployment was rolled back: {events}"
        if "ROLLBACK" in status
        else "wait until the deployment has ended, and repeat"
        if status.endswith("IN_PROGRESS")
        else "",
    )


def drift(exam: Examination) -> CheckResult:
    """Returns a warning where the last detection found resources that were changed by hand."""
    if exam.target.local:
        return CheckResult("drift", Level.SKIPPED, LOCAL)
    name = exam.target.stack
    state = exam.stack.state()
    status = state.drift
    if status in {"NOT_CHECKED", "UNKNOWN"}:
        start = exam.program.command("doctor", "--drift")
        return CheckResult(
            "drift", Level.UNKNOWN, "never detected", remedy=f"start it with `{start}`"
        )
    at = state.drifted_at
    told = f"{status}, detected {relative(at, exam.now) if at else 'at an unknown time'}"
    differences = (
        f"`aws cloudformation describe-stack-resource-drifts --stack-name {name}` names the"
        " resources; deploy again, or change the template"
    )
    return CheckResult.judged("drift", told, warning=differences if status == "DRIFTED" else "")


def start_drift(exam: Examination) -> CheckResult:
    """Starts a drift detection, which takes minutes."""
    if exam.target.local:
        return CheckResult("drift", Level.SKIPPED, LOCAL)
    exam.stack.detect_drift()
    again = exam.program.command("doctor")
    told = f"wait some minutes, then run `{again}`"
    return CheckResult("drift", Level.UNKNOWN, "detection started", remedy=told)


def clock(exam: Examination) -> CheckResult:
    """Returns a failure where this machine's clock differs so much that AWS refuses requests."""
    if exam.target.local:
        return CheckResult("clock", Level.SKIPPED, "the inbox uses this machine's clock")
    answered_at = exam.stack.state().answered_at
    if answered_at is None:
        raise Unread("the response has no date")
    difference = exam.now - answered_at
    size = abs(difference)
    remedy = "synchronize this machine's clock, for example `sudo chronyc makestep`"
    told = f"{span(size)} {'ahead of' if difference > timedelta(0) else 'behind'} AWS"
    return CheckResult.judged(
        "clock",
        "agrees with AWS" if size <= NOTICED else told,
        failure=remedy if size >= LARGEST else "",
        warning=remedy if size > NOTICED else "",
    )
