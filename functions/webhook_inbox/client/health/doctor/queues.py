"""The queues: depth, age, the settings that a lease depends on, and the time to recover."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from webhook_inbox.adapters.aws.reader import Unread
from webhook_inbox.adapters.aws.stack_facts import QueueState
from webhook_inbox.client.health.doctor.examination import Examination
from webhook_inbox.client.health.result import CheckResult
from webhook_inbox.client.times import span
from webhook_inbox.ledger.lease import CLOCK_SKEW
from webhook_inbox.processor.processor import LEASE_MARGIN

# The alarm `Backlog`.
BACKLOG: Final = timedelta(minutes=15)
# Lambda polls a queue all the time; a visible message is received within seconds.
DEPLOY: Final = "deploy the stack again: the queue was changed by hand"


def work(exam: Examination) -> Iterator[CheckResult]:
    """Yields a result for each lane's queue."""
    timeouts = _timeouts(exam)
    urls = exam.target.queue_urls
    ages = {} if exam.target.local else exam.stack.ages(urls, exam.now)
    for lane, url in urls.items():
        queue = exam.stack.queue(url)
        oldest = ages.get(lane) if queue.visible else None
        yield _lane(exam, lane, queue, oldest, timeouts.get(lane, timedelta(0)))


def _lane(
    exam: Examination, lane: str, queue: QueueState, oldest: timedelta | None, timeout: timedelta
) -> CheckResult:
    slow = oldest is not None and oldest >= BACKLOG
    depth = _depth(queue) if oldest is None else f"{_depth(queue)}, oldest {span(oldest)}"
    failed = exam.program.command("inbox list", "--status", "failed")
    wrong = _wrong_setting(queue, timeout)
    return CheckResult.judged(
        f"queue {lane}",
        f"{depth}{f'; {wrong}' if wrong else ''}",
        failure=DEPLOY if wrong else "",
        warning=f"raise `workers` of [lanes.{lane}] in inbox.toml, or speed up the handlers;"
        f" `{failed}` lists what fails"
        if slow
        else "",
    )


def _depth(queue: QueueState) -> str:
    return f"{queue.visible} visible, {queue.in_flight} in flight, {queue.delayed} delayed"


def _wrong_setting(queue: QueueState, timeout: timedelta) -> str:
    if not queue.redrives:
        return "no redrive policy, so poison messages return for ever"
    # A shorter one lets a second worker receive the message of a run that is at work.
    if queue.visibility <= timeout + LEASE_MARGIN + CLOCK_SKEW:
        return f"visibility timeout {span(queue.visibility)}, function timeout {span(timeout)}"
    return ""


def dead(exam: Examination) -> Iterator[CheckResult]:
    """Yields a result for each lane's DLQ; the alarm `DlqAge` watches its age."""
    for lane, url in exam.target.dlq_urls.items():
        queue = exam.stack.queue(url)
        listed = exam.program.command("dlq list")
        remedy = (
            f"`{listed}` groups them by cause; replay them once it is fixed. SQS deletes a message"
            " after 14 days"
        )
        yield CheckResult.judged(
            f"DLQ {lane}",
            _depth(queue),
            warning=remedy if queue.visible else "",
        )


def recovery(exam: Examination) -> CheckResult:
    """Returns the time after which the run of a killed worker continues.

    The message returns after the visibility timeout of its receive. The lease ends earlier: at the
    function's deadline, plus a margin and the skew of two clocks.
    """
    queues = map(exam.stack.queue, exam.target.queue_urls.values())
    leases = [timeout + LEASE_MARGIN + CLOCK_SKEW for timeout in _timeouts(exam).values()]
    longest = max((*(queue.visibility for queue in queues), *leases), default=None)
    if longest is None:
        raise Unread("the stack has no work queue")
    return CheckResult.judged("recovery", f"a killed worker's run continues within {span(longest)}")


def _timeouts(exam: Examination) -> dict[str, timedelta]:
    """Returns the timeout of each lane's processor."""
    names = exam.target.processors
    return {lane: exam.stack.function(name).timeout for lane, name in names.items()}
