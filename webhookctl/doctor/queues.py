"""The queues: depth, age, the settings that a lease depends on, and the time to recover."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from webhook_inbox.client.times import span
from webhook_inbox.ledger.lease import CLOCK_SKEW
from webhook_inbox.processor.processor import LEASE_MARGIN
from webhookctl.doctor.examination import Examination
from webhookctl.preflight.reader import Unread
from webhookctl.preflight.result import Result
from webhookctl.queue_depth import Depth, depths

# The alarm `Backlog`.
BACKLOG: Final = timedelta(minutes=15)
# Lambda polls a queue all the time; a visible message is received within seconds.
DEPLOY: Final = "deploy the stack again: the queue was changed by hand"


def work(exam: Examination) -> Iterator[Result]:
    """Yields a result for each lane's queue."""
    timeouts = _timeouts(exam)
    urls = exam.target.queue_urls
    for lane, depth in depths(exam.target, exam.reader, urls, aged_at=exam.now).items():
        yield _lane(exam, lane, depth, timeouts.get(lane, timedelta(0)))


def _lane(exam: Examination, lane: str, depth: Depth, timeout: timedelta) -> Result:
    slow = depth.oldest is not None and depth.oldest >= BACKLOG
    failed = exam.program.command("inbox list", "--status", "failed")
    wrong = _wrong_setting(depth, timeout)
    return Result.judged(
        f"queue {lane}",
        f"{depth}{f'; {wrong}' if wrong else ''}",
        failure=DEPLOY if wrong else "",
        warning=f"raise `workers` of [lanes.{lane}] in inbox.toml, or speed up the handlers;"
        f" `{failed}` lists what fails"
        if slow
        else "",
    )


def _wrong_setting(depth: Depth, timeout: timedelta) -> str:
    if not depth.redrives:
        return "no redrive policy, so poison messages return for ever"
    # A shorter one lets a second worker receive the message of a run that is at work.
    if depth.visibility <= timeout + LEASE_MARGIN + CLOCK_SKEW:
        return f"visibility timeout {span(depth.visibility)}, function timeout {span(timeout)}"
    return ""


def dead(exam: Examination) -> Iterator[Result]:
    """Yields a result for each lane's DLQ; the alarm `DlqAge` watches its age."""
    for lane, depth in depths(exam.target, exam.reader, exam.target.dlq_urls).items():
        listed = exam.program.command("dlq list")
        remedy = (
            f"`{listed}` groups them by cause; replay them once it is fixed. SQS deletes a message"
            " after 14 days"
        )
        yield Result.judged(
            f"DLQ {lane}",
            str(depth),
            warning=remedy if depth.visible else "",
        )


def recovery(exam: Examination) -> Result:
    """Returns the time after which the run of a killed worker continues.

    The message returns after the visibility timeout of its receive. The lease ends earlier: at the
    function's deadline, plus a margin and the skew of two clocks.
    """
    urls = exam.target.queue_urls
    found = depths(exam.target, exam.reader, urls).values()
    leases = [timeout + LEASE_MARGIN + CLOCK_SKEW for timeout in _timeouts(exam).values()]
    longest = max((*(depth.visibility for depth in found), *leases), default=None)
    if longest is None:
        raise Unread("the stack has no work queue")
    return Result.judged("recovery", f"a killed worker's run continues within {span(longest)}")


def _timeouts(exam: Examination) -> Mapping[str, timedelta]:
    """Returns the timeout of each lane's processor."""
    settings: Mapping[str, Any] = {
        lane: exam.reader.call("lambda", "get_function_configuration", FunctionName=name)
        for lane, name in exam.target.processors.items()
    }
    return {lane: timedelta(seconds=each["Timeout"]) for lane, each in settings.items()}
