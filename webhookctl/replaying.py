"""Drives the replay function: fixes the selection, sends it in steps, watches a canary."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Final

from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.target import Target
from webhook_inbox.domain.ports import Clock
from webhook_inbox.replay.report import SAMPLE, ReplayReport
from webhook_inbox.replay.request import InvalidRequestError
from webhookctl.display.output import Advance, counted
from webhookctl.errors import CommandError

# Seconds of work per invocation at the given rate, so that progress is visible.
STEP_SECONDS: Final = 5
# The search for the runs may take so long before the first of them is sent; it continues later.
COUNTING: Final = timedelta(seconds=20)
# Calls that the search may fail in one after the other.
SEARCHES: Final = 3
# How long the outcome of a canary is waited for, and how often it is read.
CANARY_WAIT: Final = timedelta(seconds=120)
CANARY_STEP: Final = 2.0
SENT_ONCE: Final = "runs sent so far stay sent, and no run of a selection is sent twice"
# A run in another status has no outcome yet.
_ENDED: Final = ("done", "skipped", "failed", "dead_letter")

Payload = dict[str, Any]


def invoke(target: Target, payload: Payload) -> ReplayReport:
    """Invokes the replay function once.

    Raises:
        WrongArgument: the function refuses the request.
        CommandError: it failed, maybe after it had sent some runs.
    """
    answer = target.client("lambda").invoke(
        FunctionName=target.replay_function,
        InvocationType="RequestResponse",
        Payload=json.dumps(payload).encode(),
    )
    data = json.loads(answer["Payload"].read() or b"null")
    if answer.get("FunctionError"):
        fault = data if isinstance(data, dict) else {}
        message = fault.get("errorMessage") or "see its log"
        if fault.get("errorType") == InvalidRequestError.__name__:
            raise WrongArgument(message)
        rest = "this call sent nothing" if payload["dry_run"] else SENT_ONCE
        raise CommandError(f"the replay function failed: {message}; {rest}")
    known = {field.name for field in fields(ReplayReport)}
    return ReplayReport(**{name: value for name, value in data.items() if name in known})


@dataclass(slots=True)
class Found:
    """The selection so far.

    `complete` is False if the search has not ended; `failed` tells why its last calls failed.
    """

    report: ReplayReport
    complete: bool
    failed: str = ""

    @property
    def runs(self) -> str:
        """The number of runs, as a person reads it."""
        least = "" if self.complete else "at least "
        return f"{least}{counted(self.report.sent, 'run')}"


class Replaying:
    """One replay, as the command line performs it.

    Attributes:
        asked: the options of every call: rate, reason, requested_by, on_behalf_of, force, new_keys.
        total: the report of all runs that were sent.
    """

    def __init__(self, target: Target, clock: Clock, asked: Mapping[str, Any]) -> None:
        self._target = target
        self._clock = clock
        self.asked = asked
        self.total = ReplayReport(dry_run=False)

    def find(self, filters: Mapping[str, Any], limit: int) -> Found:
        """Fixes the runs that match, as far as the search gets in its time.

        Raises:
            CommandError: the first call failed.
        """
        seconds = int(COUNTING.total_seconds())
        first = {"dry_run": True, "fix": True, "limit": limit, "seconds": seconds}
        report = invoke(self._target, {**filters, **self.asked, **first})
        return self._more(report, limit)

    def extend(self, found: Found, limit: int) -> Found:
        """Continues the search of a selection."""
        return self._more(found.report, limit)

    def _more(self, report: ReplayReport, limit: int) -> Found:
        end = self._clock.now() + COUNTING
        failures, why = 0, ""
        while report.cursor is not None and report.matched < limit:
            if failures == SEARCHES or self._clock.now() >= end:
                return Found(report, complete=False, failed=why if failures == SEARCHES else "")
            again = {"selection": report.selection, "fix": True, "dry_run": True, "seconds": 10}
            before = report.matched
            try:
                report = invoke(self._target, again)
            except CommandError as error:
                failures, why = failures + 1, str(error).partition(";")[0]
                continue
            why = report.failed
            failures = failures + 1 if report.failed and report.matched == before else 0
        return Found(report, complete=True)

    def show(self, selection: str, limit: int) -> ReplayReport:
        """Returns the selection's state: what was replayed, and what would be."""
        total = ReplayReport(dry_run=True, selection=selection)
        for part in self._pages({"selection": selection, "dry_run": True}, limit, limit, ""):
            _add(total, part)
        return total

    def send(self, selection: str, limit: int, options: Payload, advance: Advance) -> ReplayReport:
        """Sends up to `limit` runs of a selection that were not sent before."""
        step = max(1, int(self.asked["rate_per_second"] * STEP_SECONDS))
        payload = {"selection": selection, "dry_run": False, **options}
        left = limit - self.total.matched
        for part in self._pages(payload, left, step, self.total.position):
            _add(self.total, part)
            # Those that an earlier call sent are not counted: the total leaves them out as well.
            if part.matched:
                advance(part.matched)
        return self.total

    def _pages(
        self, payload: Payload, limit: int, step: int, cursor: str
    ) -> Iterator[ReplayReport]:
        """Yields a report per invocation until all runs are processed or the limit is reached."""
        left, place = limit, cursor or None
        while left > 0:
            options = {**self.asked, **payload, "cursor": place, "limit": min(left, step)}
            report = invoke(self._target, options)
            yield report
            left, place = left - report.matched, report.cursor
            # After a failure the next page repeats what failed, unless no run was replayed at all.
            if place is None or (report.failed and not report.matched):
                return

    def watch(self, selection: str, advance: Advance) -> ReplayReport:
        """Waits for the outcomes of the runs that were sent, for two minutes at most."""
        end = self._clock.now() + CANARY_WAIT
        sent, known = self.total.sent, 0
        look = {"selection": selection, "dry_run": True, "limit": 1, "cursor": self.total.position}
        while True:
            report = invoke(self._target, look)
            ended = sum(report.outcomes.get(status, 0) for status in _ENDED)
            if ended > known:
                advance(ended - known)
            known = ended
            if known >= sent or self._clock.now() >= end:
                return replace(report, dry_run=False)
            self._clock.sleep(CANARY_STEP)


def _add(total: ReplayReport, part: ReplayReport) -> None:
    for name in ("matched", "dlq_removed", "retrying", "repeated", "batches", "unsearched"):
        setattr(total, name, getattr(total, name) + getattr(part, name))
    for name in ("cursor", "failed", "selection", "position", "outcomes", "failures"):
        setattr(total, name, getattr(part, name))
    total.sample = [*total.sample, *part.sample][:SAMPLE]
    for sums, counts in (
        (total.counts, part.counts),
        (total.handlers, part.handlers),
        (total.errors, part.errors),
    ):
        for key, count in counts.items():
            sums[key] = sums.get(key, 0) + count
