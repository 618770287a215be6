"""Replay: an operator sends selected runs again.

One conditional update resets the run and raises its generation, so that every older message of it
is dropped; then a message is sent. A crash between the two leaves a pending run, which the
reconciler sends. The updates of a batch of runs are made at the same time, and so are the sends,
ten messages each; the messages of a FIFO lane are sent one after the other, oldest event first.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.domain.conditions import Absent, Condition, OneOf, either, every
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import IN_TURN, Change, Clock, Parallel, Queue, Randomness, Table
from webhook_inbox.domain.quotas import SEND_BATCH
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.audit import Actor, AuditRecord, Proof
from webhook_inbox.ledger.deadlines import event_end, overdue_at
from webhook_inbox.ledger.due_handlers import DueHandlers
from webhook_inbox.ledger.lease import current, lease_over
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import (
    IDENTICAL_BODY,
    RUN_LIFE,
    due_entry,
    key_of_run,
    run_identity,
    transition,
)
from webhook_inbox.queue import dead_letters
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.replay.request import (
    Candidate,
    Cursor,
    NamedPlace,
    ReplayRequest,
    Search,
)

# A caller waits for the answer; the reconciler sweeps the rest.
SWEEP_TIME: Final = timedelta(seconds=10)
# The time that the invocation reserves for its answer.
ANSWER_MARGIN: Final = timedelta(seconds=15)
SAMPLE: Final = 10
REPLAYS_KEPT: Final = 10
# A batch holds the runs of a fifth of a second at the asked rate.
BATCH_SECONDS: Final = 0.2
LARGEST_BATCH: Final = 100
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
    HELD = "held"  # its body was received before under another id: a person decides by `hold`
    EXPIRED = "expired"  # its event is gone
    MISSING = "missing"  # no event of this id


@dataclass(slots=True)
class ReplayReport:
    """The result of a replay.

    `matched` counts runs; `cursor` goes into the next request. `failed` tells what ended the page
    early; the runs that are counted keep their outcomes, and the cursor continues with the rest.
    """

    dry_run: bool
    matched: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    sample: list[dict[str, Any]] = field(default_factory=list)
    cursor: str | None = None
    dlq_removed: int = 0
    failed: str = ""

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


class SendRate:
    """Limits a rate: never more than `rate` runs a second, and one batch, in any period.

    A batch that is late does not let later ones catch up.
    """

    def __init__(self, clock: Clock, rate: float) -> None:
        self._clock = clock
        self._rate = rate
        self._next = clock.now()

    def wait(self, runs: int) -> None:
        """Waits until the last of so many runs may be sent."""
        ahead = timedelta(seconds=(runs - 1) / self._rate)
        self._until(self._next + ahead)
        begun = max(self._next, self._clock.now() - ahead)
        self._next = begun + timedelta(seconds=runs / self._rate)

    def end(self) -> None:
        """Waits until another page may begin."""
        self._until(self._next)

    def _until(self, moment: datetime) -> None:
        left = moment - self._clock.now()
        if left > timedelta(0):
            self._clock.sleep(left.total_seconds())


@dataclass(slots=True)
class ReplayPage:
    """The part of a replay that one invocation performs.

    `cursor` is the place behind the last candidate; `batch` has the runs that are not yet sent.
    """

    request: ReplayRequest
    by: Actor
    report: ReplayReport
    pace: SendRate
    cursor: Cursor
    batch: list[Run] = field(default_factory=list)

    def end(self, *, failed: str = "", again: Iterable[Run] = ()) -> None:
        """Ends the page before the end of the search."""
        named = ((run.source, run.event_id, run.handler) for run in again)
        self.report.failed = failed
        self.report.cursor = Cursor(self.cursor.after, (*named, *self.cursor.again)).encode()


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
        parallel: Parallel = IN_TURN,
    ) -> None:
        self._manifest = manifest
        self._search = Search(manifest=manifest, ledger=ledger, clock=clock, parallel=parallel)
        self._table = table
        self._listed = DueHandlers(table)
        self._lanes = lanes
        self._dlqs = dlqs
        self._clock = clock
        self._randomness = randomness
        self._parallel = parallel

    def run(
        self, request: ReplayRequest, *, deadline: datetime, request_id: str = ""
    ) -> ReplayReport:
        """Replays the runs that the request selects, until its limit, the deadline or a failure.

        Replayed and settled runs may have copies in the DLQs; a bounded pass removes some of them,
        and the reconciler removes the rest. `request_id` is that of the Lambda invocation.

        Raises:
            Unavailable: the ledger failed before any run was read; nothing was replayed.
        """
        report = ReplayReport(dry_run=request.dry_run)
        cursor = Cursor.decode(request.cursor) if request.cursor else Cursor()
        by = Actor(request.requested_by, Proof.CLAIMED, request.on_behalf_of, request_id)
        recorded: AuditRecord | None = None
        if not request.dry_run:
            by, recorded = self._audit(request, by, cursor)
        pace = SendRate(self._clock, request.rate_per_second)
        self._replay(ReplayPage(request, by, report, pace, cursor), deadline)
        if recorded is not None:
            recorded.conclude(report.counts)
        if not request.dry_run and report.cursor is None:
            # A failure must not lose the report; the reconciler sweeps the DLQs as well.
            with suppress(Unavailable):
                end = min(deadline, self._clock.now() + SWEEP_TIME)
                for queue in self._dlqs.values():
                    swept = dead_letters.sweep(queue, self._table, clock=self._clock, deadline=end)
                    report.dlq_removed += swept.removed
        return report

    def _replay(self, page: ReplayPage, deadline: datetime) -> None:
        report, first = page.report, page.cursor
        try:
            for found in self._search.candidates(page.request, first):
                # Candidates that do not fit take time as well. Each call reads at least one, so
                # that a caller who follows the cursor makes progress.
                late = self._clock.now() > deadline - ANSWER_MARGIN and page.cursor != first
                if late or (found.fits and report.matched >= page.request.limit):
                    page.end()
                    break
                page.cursor = found.cursor
                self._take(page, found)
                if report.failed:
                    return
        except Unavailable as error:
            if page.cursor == first:
                raise
            page.end(failed=str(error))
        self._send(page)
        page.pace.end()

    def _take(self, page: ReplayPage, found: Candidate) -> None:
        run, report = found.run, page.report
        if run is None:
            report.add(ReplayOutcome.MISSING)
            return
        if not found.fits:
            return
        report.matched += 1
        obstacle = self._obstacle(run, page.request)
        if obstacle is not None:
            report.add(obstacle, run)
        elif page.request.dry_run:
            report.add(ReplayOutcome.WOULD_REPLAY, run)
        else:
            page.batch.append(run)
            if len(page.batch) >= _batch_size(page.request.rate_per_second):
                self._send(page)

    def _send(self, page: ReplayPage) -> None:
        """Resets the runs of the batch, then sends them; a failure ends the page."""
        batch, page.batch = page.batch, []
        if not batch:
            return
        page.pace.wait(len(batch))
        results = self._parallel.map(lambda run: self._reset(run, page), batch)
        sent = self._send_messages([each for each in results if isinstance(each, RunMessage)])
        again: list[Run] = []
        for run, result in zip(batch, results, strict=True):
            match result:
                case Unavailable():
                    page.report.matched -= 1
                    again.append(run)
                case RunMessage():
                    unsent = result not in sent
                    outcome = ReplayOutcome.UNSENT if unsent else ReplayOutcome.REPLAYED
                    page.report.add(outcome, run)
                case _:
                    page.report.add(result, run)
        error = next((each for each in results if isinstance(each, Unavailable)), None)
        if error is not None:
            page.end(failed=str(error), again=again)
        elif page.report.counts.get(ReplayOutcome.UNSENT):
            page.end(failed="SQS did not accept every message; the reconciler sends the rest")

    def _send_messages(self, references: Sequence[RunMessage]) -> set[RunMessage]:
        """Sends the messages and returns those that the queues accepted."""
        by_lane: dict[str, list[RunMessage]] = {}
        for reference in references:
            by_lane.setdefault(self._manifest.lane_of(reference.handler), []).append(reference)
        parcels: list[tuple[Queue, list[RunMessage]]] = []
        for lane, messages in by_lane.items():
            queue = self._lanes.queue(lane)
            # A FIFO lane's messages are sent by one thread, in their order.
            size = len(messages) if queue.fifo else SEND_BATCH
            starts = range(0, len(messages), size)
            parcels += ((queue, messages[start : start + size]) for start in starts)
        accepted = self._parallel.map(lambda parcel: _send_in_order(*parcel), parcels)
        return {message for messages in accepted for message in messages}

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
        # Nothing would hold it a second time, as a policy or an effect does.
        if run.status is Status.HELD and run.held.get("subject") == IDENTICAL_BODY:
            return ReplayOutcome.HELD
        return None

    def _reset(self, run: Run, page: ReplayPage) -> ReplayOutcome | RunMessage | Unavailable:
        """Resets a run and returns its next message, or why there is none."""
        try:
            self._write(run, page, self._clock.now())
        except ConditionFailed as error:
            done = error.old is not None and error.old.get("status") in _FINISHED
            return ReplayOutcome.FINISHED if done else ReplayOutcome.IN_USE
        except Unavailable as error:
            return error
        return RunMessage.of(replace(run, generation=run.generation + 1))

    def _write(self, run: Run, page: ReplayPage, now: datetime) -> None:
        request = page.request
        key, end = key_of_run(run), run.expires_at or now + RUN_LIFE
        self._listed.ensure(run.handler, until=end)
        # The id distinguishes it from another operator's entry in the same millisecond.
        entry = {
            "id": self._randomness.token(),
            "at": to_ms(now),
            **page.by.attributes(),
            "reason": request.reason,
            **({"forced": True} if str(run.status) in _FINISHED else {}),
            **({"new_keys": True} if request.new_keys else {}),
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
                **({"key_version": run.key_version + 1} if request.new_keys else {}),
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
                # An approval permits one execution.
                *(("approvals",) if request.new_keys else ()),
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

    def _audit(
        self, request: ReplayRequest, by: Actor, cursor: Cursor
    ) -> tuple[Actor, AuditRecord | None]:
        """Returns the actor, and the row of this page unless webhookctl wrote one for all pages."""
        asked, ids = request.audited(), request.event_ids or ()
        known = audit.begun(
            self._table,
            request.audit_row,
            action="replay",
            name=request.requested_by,
            request=asked,
            event_ids=ids,
        )
        if known is not None:
            return replace(known, request_id=by.request_id), None
        # A cursor is no proof of a first page: the caller can have written it.
        begin = cursor.after.number if isinstance(cursor.after, NamedPlace) else 0
        more = {"cursor": request.cursor} if request.cursor else {}
        return by, audit.record(
            self._table,
            self._randomness,
            action="replay",
            by=by,
            reason=request.reason,
            request={**asked, "limit": str(request.limit), **more},
            event_ids=ids[begin:],
            forced=request.force,
            now=self._clock.now(),
        )


def _batch_size(rate: float) -> int:
    return max(1, min(LARGEST_BATCH, int(rate * BATCH_SECONDS)))


def _send_in_order(queue: Queue, messages: Sequence[RunMessage]) -> list[RunMessage]:
    """Sends messages in batches and returns the accepted ones; ends at a failure."""
    accepted: list[RunMessage] = []
    for start in range(0, len(messages), SEND_BATCH):
        batch = {each.outgoing(fifo=queue.fifo): each for each in messages[start:][:SEND_BATCH]}
        try:
            refused = queue.send(list(batch))
        except Unavailable:
            break
        accepted += (message for outgoing, message in batch.items() if outgoing not in refused)
        if refused:
            break
    return accepted
