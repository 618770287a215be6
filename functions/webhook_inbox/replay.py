"""Replay: an operator sends chosen runs again.

Ticket first, then send: each run is reset by one conditional update that raises its ticket,
so that every older message of it is dropped, and only then a message is sent. A crash between
the two leaves a pending run, which the reconciler sends.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from webhook_inbox import dead_letters
from webhook_inbox.claim import current, lease_over
from webhook_inbox.conditions import Absent, Condition, OneOf, either, every
from webhook_inbox.errors import ConditionFailed, Unavailable
from webhook_inbox.instants import to_ms, to_seconds
from webhook_inbox.lanes import Lanes
from webhook_inbox.ledger import Ledger
from webhook_inbox.manifest import DEFAULT_LANE, Manifest, matches
from webhook_inbox.model import Overview, Run, Status
from webhook_inbox.ports import Chance, Change, Clock, Queue, Table
from webhook_inbox.reference import Reference
from webhook_inbox.replay_request import ReplayRequest, read_cursor, write_cursor
from webhook_inbox.rows import (
    ATTENTION_SHARDS,
    EVENT_LIFE,
    RUN_LIFE,
    attention_shard,
    dedupe_key,
    run_from,
    run_key,
)
from webhook_inbox.schedule import event_end, overdue_at

# What is left of the invocation for the answer.
ANSWER_MARGIN: Final = timedelta(seconds=15)
SAMPLE: Final = 10
REPLAYS_KEPT: Final = 10
_OPEN: Final = tuple(
    str(status)
    for status in (
        Status.PENDING,
        Status.FAILED,
        Status.DEFERRED,
        Status.HELD,
        Status.DEAD_LETTER,
    )
)
_FINISHED: Final = (str(Status.DONE), str(Status.SKIPPED))


class Outcome(StrEnum):
    """What replay did with a run."""

    REPLAYED = "replayed"  # reset and sent
    UNSENT = "unsent"  # reset; the queue failed, and the reconciler sends it
    FINISHED = "finished"  # done or skipped, and not forced
    IN_USE = "in_use"  # a worker holds its lease
    EXPIRED = "expired"  # its event is gone
    MISSING = "missing"  # no event of this id


@dataclass(slots=True)
class Report:
    """What a replay did. `matched` counts runs; `cursor` goes into the next request."""

    dry_run: bool
    matched: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    sample: list[dict[str, Any]] = field(default_factory=list)
    cursor: str | None = None
    dlq_removed: int = 0

    def add(self, outcome: Outcome, run: Run | None = None) -> None:
        """Counts one run."""
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        if run is not None and len(self.sample) < SAMPLE:
            entry = {"source": run.source, "event_id": run.event_id, "handler": run.handler}
            status = {"status": str(run.status), "last_error": run.last_error}
            self.sample.append({**entry, **status, "outcome": str(outcome)})

    def to_data(self) -> dict[str, Any]:
        """Returns the report as JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that the filters name, and the place in the search right behind it."""

    run: Run
    cursor: str | None


class Replay:
    """The replay use case."""

    def __init__(
        self,
        *,
        manifest: Manifest,
        ledger: Ledger,
        table: Table,
        lanes: Lanes,
        dlqs: Mapping[str, Queue],
        clock: Clock,
        chance: Chance,
    ) -> None:
        self._manifest = manifest
        self._ledger = ledger
        self._table = table
        self._lanes = lanes
        self._dlqs = dlqs
        self._clock = clock
        self._chance = chance

    def run(self, request: ReplayRequest, *, deadline: datetime) -> Report:
        """Replays what the request names until it is done, at its limit, or out of time.

        What it replayed, or found settled, may have copies in the DLQs: a bounded pass removes
        some of them, the reconciler's the rest.

        Raises:
            Unavailable: the ledger failed. What was replayed by then stays replayed.
        """
        report = Report(dry_run=request.dry_run)
        if not request.dry_run:
            self._audit(request)
        self._replay(request, report, deadline)
        if not request.dry_run and report.cursor is None:
            report.dlq_removed = sum(
                dead_letters.sweep(queue, self._table, clock=self._clock, deadline=deadline)
                for queue in self._dlqs.values()
            )
        return report

    def _replay(self, request: ReplayRequest, report: Report, deadline: datetime) -> None:
        started, place = self._clock.now(), request.cursor
        for candidate in self._candidates(request, report):
            if report.matched >= request.limit or self._out_of_time(deadline, report):
                report.cursor = place
                return
            report.matched += 1
            self._one(candidate.run, request, report)
            place = candidate.cursor or place
            if not request.dry_run:
                self._pace(started, report.matched, request.rate_per_second)

    def _out_of_time(self, deadline: datetime, report: Report) -> bool:
        # At least one run an invocation, or a caller that follows the cursor never ends.
        return report.matched > 0 and self._clock.now() > deadline - ANSWER_MARGIN

    def _pace(self, started: datetime, sent: int, rate: float) -> None:
        ahead = started + timedelta(seconds=sent / rate) - self._clock.now()
        if ahead > timedelta(0):
            self._clock.sleep(ahead.total_seconds())

    # -- which runs

    def _candidates(self, request: ReplayRequest, report: Report) -> Iterator[Candidate]:
        found = self._named(request, report) if request.event_ids else self._dead(request)
        return (candidate for candidate in found if _fits(candidate.run, request))

    def _named(self, request: ReplayRequest, report: Report) -> Iterator[Candidate]:
        done = read_cursor(request.cursor)[0] if request.cursor else 0
        for place, event_id in enumerate((request.event_ids or ())[done:], start=done + 1):
            sources = [request.source] if request.source else list(self._manifest.sources)
            overviews = [found for source in sources if (found := self._overview(source, event_id))]
            if not overviews:
                report.add(Outcome.MISSING)
            runs = [run for overview in overviews for run in _runs(overview)]
            for run in runs:
                last = run is runs[-1]
                yield Candidate(run, write_cursor(place) if last else None)

    def _overview(self, source: str, event_id: str) -> Overview | None:
        now = self._clock.now()
        return self._ledger.overview(source, dedupe_key(event_id), now=now)

    def _dead(self, request: ReplayRequest) -> Iterator[Candidate]:
        first, within = read_cursor(request.cursor) if request.cursor else (0, None)
        for shard in range(first, ATTENTION_SHARDS):
            start = within if shard == first else None
            for page in self._ledger.attention(shard, start=start):
                for entry, row in page:
                    if row["status"] == Status.DEAD_LETTER:
                        yield Candidate(run_from(row), write_cursor(shard, entry))

    # -- one run

    def _one(self, run: Run, request: ReplayRequest, report: Report) -> None:
        obstacle = self._obstacle(run, request)
        if obstacle is not None:
            report.add(obstacle, run)
        elif request.dry_run:
            report.add(Outcome.REPLAYED, run)
        else:
            report.add(self._reset_and_send(run, request), run)

    def _obstacle(self, run: Run, request: ReplayRequest) -> Outcome | None:
        """Returns what stands against a replay, as far as the row that was read tells."""
        now = self._clock.now()
        if run.expires_at is not None and event_end(run.expires_at) <= now:
            return Outcome.EXPIRED
        if str(run.status) in _FINISHED and not request.force:
            return Outcome.FINISHED
        until = run.claimed_until
        if run.status is Status.PROCESSING and until is not None and until >= now:
            return Outcome.IN_USE
        return None

    def _reset_and_send(self, run: Run, request: ReplayRequest) -> Outcome:
        now = self._clock.now()
        try:
            self._reset(run, request, now)
        except ConditionFailed as error:
            done = error.old is not None and error.old.get("status") in _FINISHED
            return Outcome.FINISHED if done else Outcome.IN_USE
        spec = self._manifest.handlers.get(run.handler)
        reference = Reference(run.source, run.event_id, run.handler, run.ticket + 1)
        try:
            self._lanes.send([(spec.lane if spec else DEFAULT_LANE, reference)])
        except Unavailable:
            return Outcome.UNSENT
        return Outcome.REPLAYED

    def _reset(self, run: Run, request: ReplayRequest, now: datetime) -> None:
        key = run_key(run.source, run.event_id, run.handler)
        entry = {"at": to_ms(now), "by": request.requested_by, "reason": request.reason}
        change = Change(
            set={
                "source": run.source,
                "event_id": run.event_id,
                "handler": run.handler,
                "type": run.type,
                "status": str(Status.PENDING),
                "ticket": run.ticket + 1,
                "attempts_in_round": 0,
                "last_at": to_ms(now),
                "attention": attention_shard(key),
                "attention_at": to_ms(overdue_at(now)),
                "replays": [*map(dict, run.replays), entry][-REPLAYS_KEPT:],
                "expires_at": to_seconds(run.expires_at or now + RUN_LIFE),
            },
            default={"first_at": to_ms(now)},
            # Without its lease id no worker that was lost can settle the run any more.
            remove=("lease_id", "claimed_until", "next_attempt_at", "parked", "resends", "done_at"),
        )
        try:
            self._table.update(key, change, when=self._resettable(run, request, now))
        except ConditionFailed as error:
            # Our own: an earlier try of this call succeeded and its answer was lost.
            if error.old is None or error.old.get("replays", [])[-1:] != [entry]:
                raise

    def _resettable(self, run: Run, request: ReplayRequest, now: datetime) -> Condition:
        open_ = OneOf("status", (*_OPEN, *_FINISHED) if request.force else _OPEN)
        nobody_works_on_it = either(open_, lease_over(now))
        if run.ticket == 0 and run.first_at is None:
            return either(Absent("pk"), every(current(0), nobody_works_on_it))
        return every(current(run.ticket), nobody_works_on_it)

    def _audit(self, request: ReplayRequest) -> None:
        now = self._clock.now()
        asked = request.model_dump(mode="json", exclude_none=True, exclude={"event_ids"})
        row = {
            "pk": f"audit#{now:%Y-%m-%d}",
            "sk": f"{to_ms(now):013d}#{self._chance.token()}",
            "action": "replay",
            "by": request.requested_by,
            "reason": request.reason,
            "request": {name: str(value) for name, value in asked.items()},
            "event_ids": list(request.event_ids or ())[:100],
            "expires_at": to_seconds(now + 2 * EVENT_LIFE),
        }
        self._table.put(row)


def _runs(overview: Overview) -> Iterator[Run]:
    """Yields an event's runs, those without a row as they would begin."""
    by_name = {run.handler: run for run in overview.runs}
    event = overview.event
    for name in dict.fromkeys((*event.runs, *by_name)):
        unbegun = Run(
            source=event.source,
            event_id=event.event_id,
            handler=name,
            type=event.type,
            status=Status.PENDING,
            expires_at=event.received_at + RUN_LIFE,
        )
        yield by_name.get(name, unbegun)


def _fits(run: Run, request: ReplayRequest) -> bool:
    received_at = None if run.expires_at is None else run.expires_at - RUN_LIFE
    clauses = (
        request.source in {None, run.source},
        request.handler in {None, run.handler},
        request.type is None or matches((request.type,), run.type),
        request.error_contains is None or request.error_contains in run.last_error,
        request.received_after is None
        or (received_at is not None and received_at >= request.received_after),
        request.received_before is None
        or (received_at is not None and received_at < request.received_before),
    )
    return all(clauses)
