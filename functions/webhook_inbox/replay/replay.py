"""Replay: an operator sends selected runs again.

One conditional update resets the run and raises its generation, so that every older message of it
is dropped; then a message is sent. A crash between the two leaves a pending run, which the
reconciler sends.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.domain.conditions import Absent, Condition, OneOf, either, every
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Change, Clock, Queue, Randomness, Table
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.deadlines import event_end, overdue_at
from webhook_inbox.ledger.due_handlers import DueHandlers
from webhook_inbox.ledger.lease import current, lease_over
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import RUN_LIFE, due_entry, key_of_run, run_identity, transition
from webhook_inbox.queue import dead_letters, message_groups
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.replay.request import ReplayRequest, Search

# The time that the invocation reserves for its answer.
ANSWER_MARGIN: Final = timedelta(seconds=15)
SAMPLE: Final = 10
REPLAYS_KEPT: Final = 10
_OPEN: Final = tuple(
    map(str, (Status.PENDING, Status.FAILED, Status.DEFERRED, Status.HELD, Status.DEAD_LETTER))
)
_FINISHED: Final = (str(Status.DONE), str(Status.SKIPPED))


class ReplayOutcome(StrEnum):
    """The outcome of a replay for one run."""

    REPLAYED = "replayed"  # reset and sent
    WOULD_REPLAY = "would_replay"  # the same, in a dry run
    UNSENT = "unsent"  # reset; the queue failed, and the reconciler sends it
    FINISHED = "finished"  # done or skipped, and not forced
    IN_USE = "in_use"  # a worker holds its lease
    EXPIRED = "expired"  # its event is gone
    MISSING = "missing"  # no event of this id


@dataclass(slots=True)
class ReplayReport:
    """The result of a replay. `matched` counts runs; `cursor` goes into the next request."""

    dry_run: bool
    matched: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    sample: list[dict[str, Any]] = field(default_factory=list)
    cursor: str | None = None
    dlq_removed: int = 0

    def add(self, outcome: ReplayOutcome, run: Run | None = None) -> None:
        """Counts one run."""
        self.counts[outcome] = self.counts.get(outcome, 0) + 1
        if run is not None and len(self.sample) < SAMPLE:
            entry = {"source": run.source, "event_id": run.event_id, "handler": run.handler}
            status = {"status": str(run.status), "last_error": run.last_error}
            self.sample.append({**entry, **status, "outcome": str(outcome)})

    def to_data(self) -> dict[str, Any]:
        """Returns the report as JSON data."""
        return asdict(self)


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
        randomness: Randomness,
    ) -> None:
        self._manifest = manifest
        self._search = Search(manifest=manifest, ledger=ledger, clock=clock)
        self._table = table
        self._listed = DueHandlers(table)
        self._lanes = lanes
        self._dlqs = dlqs
        self._clock = clock
        self._randomness = randomness

    def run(self, request: ReplayRequest, *, deadline: datetime) -> ReplayReport:
        """Replays the runs that the request selects, until its limit or the deadline.

        Replayed and settled runs may have copies in the DLQs; a bounded pass removes some of them,
        and the reconciler removes the rest.

        Raises:
            Unavailable: the ledger failed; runs that were replayed by then stay replayed.
        """
        report = ReplayReport(dry_run=request.dry_run)
        # A request with a cursor continues a replay that is audited already.
        if not request.dry_run and request.cursor is None:
            self._audit(request)
        self._replay(request, report, deadline)
        if not request.dry_run and report.cursor is None:
            # A failure must not lose the report; the reconciler sweeps the DLQs as well.
            with suppress(Unavailable):
                for queue in self._dlqs.values():
                    report.dlq_removed += dead_letters.sweep(
                        queue, self._table, clock=self._clock, deadline=deadline
                    )
        return report

    def _replay(self, request: ReplayRequest, report: ReplayReport, deadline: datetime) -> None:
        started, place = self._clock.now(), request.cursor
        for found in self._search.candidates(request):
            # Candidates that do not fit take time as well. Each call reads at least one, so that
            # a caller who follows the cursor makes progress.
            late = self._clock.now() > deadline - ANSWER_MARGIN and place != request.cursor
            if late or (found.fits and report.matched >= request.limit):
                report.cursor = place
                return
            place = found.cursor
            if found.run is None:
                report.add(ReplayOutcome.MISSING)
            elif found.fits:
                report.matched += 1
                self._one(found.run, request, report)
                if not request.dry_run:
                    self._pace(started, report.matched, request.rate_per_second)

    def _pace(self, started: datetime, sent: int, rate: float) -> None:
        ahead = started + timedelta(seconds=sent / rate) - self._clock.now()
        if ahead > timedelta(0):
            self._clock.sleep(ahead.total_seconds())

    def _one(self, run: Run, request: ReplayRequest, report: ReplayReport) -> None:
        obstacle = self._obstacle(run, request)
        if obstacle is not None:
            report.add(obstacle, run)
        elif request.dry_run:
            report.add(ReplayOutcome.WOULD_REPLAY, run)
        else:
            report.add(self._reset_and_send(run, request), run)

    def _obstacle(self, run: Run, request: ReplayRequest) -> ReplayOutcome | None:
        """Returns why the run, as it was read, cannot be replayed; None if it can."""
        now = self._clock.now()
        if run.expires_at is not None and event_end(run.expires_at) <= now:
            return ReplayOutcome.EXPIRED
        if str(run.status) in _FINISHED and not request.force:
            return ReplayOutcome.FINISHED
        until = run.claimed_until
        if run.status is Status.PROCESSING and until is not None and until >= now:
            return ReplayOutcome.IN_USE
        return None

    def _reset_and_send(self, run: Run, request: ReplayRequest) -> ReplayOutcome:
        now = self._clock.now()
        try:
            self._reset(run, request, now)
        except ConditionFailed as error:
            done = error.old is not None and error.old.get("status") in _FINISHED
            return ReplayOutcome.FINISHED if done else ReplayOutcome.IN_USE
        spec = self._manifest.handlers.get(run.handler)
        try:
            reference = message_groups.reference_of(
                self._table, spec, replace(run, generation=run.generation + 1)
            )
            self._lanes.send([(self._manifest.lane_of(run.handler), reference)])
        except Unavailable:
            return ReplayOutcome.UNSENT
        return ReplayOutcome.REPLAYED

    def _reset(self, run: Run, request: ReplayRequest, now: datetime) -> None:
        key, end = key_of_run(run), run.expires_at or now + RUN_LIFE
        self._listed.ensure(run.handler, until=end)
        # The id distinguishes it from another operator's entry in the same millisecond.
        entry = {
            "id": self._randomness.token(),
            "at": to_ms(now),
            "by": request.requested_by,
            "reason": request.reason,
            **({"forced": True} if str(run.status) in _FINISHED else {}),
        }
        change = Change(
            set={
                **run_identity(run, run.handler, expires_at=end),
                **due_entry(key, overdue_at(now)),
                "status": str(Status.PENDING),
                "generation": run.generation + 1,
                "attempts_in_round": 0,
                "last_at": to_ms(now),
                "replays": [*map(dict, run.replays), entry][-REPLAYS_KEPT:],
            },
            default={"first_at": to_ms(now)},
            # Without the lease id a stale worker cannot settle the run.
            remove=(
                "lease_id",
                "claimed_until",
                "next_attempt_at",
                "parked",
                "resends",
                "done_at",
                "held",
                "waits_for",
                "blocking",
            ),
        )
        own = {"replays": change.set["replays"]}
        transition(self._table, key, change, when=self._resettable(run, request, now), own=own)

    def _resettable(self, run: Run, request: ReplayRequest, now: datetime) -> Condition:
        open_ = OneOf("status", (*_OPEN, *_FINISHED) if request.force else _OPEN)
        idle = either(open_, lease_over(now))
        if run.generation == 0 and run.first_at is None:
            return either(Absent("pk"), every(current(0), idle))
        return every(current(run.generation), idle)

    def _audit(self, request: ReplayRequest) -> None:
        asked = request.model_dump(mode="json", exclude_none=True, exclude={"event_ids"})
        audit.record(
            self._table,
            self._randomness,
            action="replay",
            by=request.requested_by,
            reason=request.reason,
            request={name: str(value) for name, value in asked.items()},
            event_ids=request.event_ids or (),
            now=self._clock.now(),
        )
