"""Replay: an operator sends selected runs again.

One conditional update resets the run and raises its generation, so that every older message of it
is dropped; then a message is sent. A crash between the two leaves a pending run, which the
reconciler sends. The updates of a batch of runs are made at the same time, and so are the sends,
ten messages each; the messages of a FIFO lane are sent one after the other, oldest event first.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.audit import Actor, AuditedAction, Proof
from webhook_inbox.domain.conditions import Absent, Condition, OneOf, either, every
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Change, Clock, Ports, Queue
from webhook_inbox.domain.quotas import SEND_BATCH
from webhook_inbox.domain.replay_report import ReplayOutcome, ReplayReport
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.audit import AuditRecord
from webhook_inbox.ledger.deadlines import event_end, overdue_at
from webhook_inbox.ledger.due_handlers import DueHandlers
from webhook_inbox.ledger.lease import current, lease_over
from webhook_inbox.ledger.schema import (
    EVENT_HOLDS,
    RUN_LIFE,
    due_entry,
    key_of_run,
    run_identity,
    transition,
)
from webhook_inbox.queue import dead_letters
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.replay.cursor import Cursor, NamedPlace
from webhook_inbox.replay.failures import Watch
from webhook_inbox.replay.request import STOP_AT_FAILURES, ReplayRequest
from webhook_inbox.replay.search import Candidate, Search
from webhook_inbox.replay.selections import Chosen, RunSelection, Selections

# A caller waits for the answer; the reconciler sweeps the rest.
SWEEP_TIME: Final = timedelta(seconds=10)
# The time that the invocation reserves for its answer.
ANSWER_MARGIN: Final = timedelta(seconds=15)
REPLAYS_KEPT: Final = 10
# How often the outcomes of the runs that a selection has sent are read.
WATCHED_EVERY: Final = timedelta(seconds=5)
# A batch holds the runs of a fifth of a second at the asked rate.
BATCH_SECONDS: Final = 0.2
LARGEST_BATCH: Final = 100
_OPEN: Final = tuple(
    map(str, (Status.PENDING, Status.FAILED, Status.DEFERRED, Status.HELD, Status.DEAD_LETTER))
)
_FINISHED: Final = (str(Status.DONE), str(Status.SKIPPED))


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


@dataclass(frozen=True, slots=True)
class SentRuns:
    """The runs that a batch of a replay has reset, each as it was before, with its outcome."""

    request: ReplayRequest
    by: Actor
    runs: Sequence[tuple[ReplayOutcome, Run]]


def _unobserved(_: SentRuns) -> None:
    """Observes nothing."""


@dataclass(slots=True)
class ReplayPage:
    """The part of a replay that one invocation performs.

    `cursor` is the place behind the last candidate; `batch` has the runs that are not yet sent;
    `listed` the runs that a dry run selects; `watch` observes the runs of a selection.
    """

    request: ReplayRequest
    by: Actor
    report: ReplayReport
    pace: SendRate
    cursor: Cursor
    watch: Watch | None = None
    batch: list[Run] = field(default_factory=list)
    listed: list[Run] = field(default_factory=list)
    watched_at: datetime | None = None

    def end(self, *, failed: str = "", again: Iterable[Run] = ()) -> None:
        """Ends the page before the end of the search."""
        named = ((run.source, run.event_id, run.handler) for run in again)
        self.report.failed = failed
        cursor = replace(self.cursor, again=(*named, *self.cursor.again))
        self.report.cursor = cursor.encode()


class Replay:
    """The replay use case; `observe` is told of each batch, and must not raise."""

    def __init__(
        self,
        manifest: Manifest,
        ports: Ports,
        *,
        observe: Callable[[SentRuns], None] = _unobserved,
    ) -> None:
        self._manifest = manifest
        self._selections = Selections(ports.table, ports.randomness)
        self._search = Search(manifest, ports, self._selections)
        self._table = ports.table
        self._listed = DueHandlers(ports.table)
        self._lanes = Lanes(ports.queues)
        self._dlqs = ports.dlqs
        self._clock = ports.clock
        self._randomness = ports.randomness
        self._parallel = ports.parallel
        self._observe = observe

    def run(
        self, request: ReplayRequest, *, deadline: datetime, request_id: str = ""
    ) -> ReplayReport:
        """Replays the runs that the request selects, until its limit, the deadline or a failure.

        Replayed and settled runs may have copies in the DLQs; a bounded pass removes some of them,
        and the reconciler removes the rest. `request_id` is that of the Lambda invocation.

        Raises:
            InvalidRequestError: there is no such selection.
            Unavailable: the ledger failed before any run was read; nothing was replayed.
        """
        if request.seconds is not None:
            end = self._clock.now() + timedelta(seconds=request.seconds) + ANSWER_MARGIN
            deadline = min(deadline, end)
        if request.fix:
            return self._fix(request, deadline)
        report = ReplayReport(dry_run=request.dry_run, selection=request.selection or "")
        selection = self._selection(request)
        cursor = self._cursor(request.cursor)
        by = Actor(request.requested_by, Proof.CLAIMED, request.on_behalf_of, request_id)
        recorded: AuditRecord | None = None
        if not request.dry_run:
            by, recorded = self._audit(request, by, cursor)
        pace = SendRate(self._clock, request.rate_per_second)
        watch = Watch(self._selections, self._table, selection, cursor.begun) if selection else None
        page = ReplayPage(request, by, report, pace, cursor, watch)
        self._replay(page, self._candidates(page, selection), deadline)
        if recorded is not None:
            recorded.conclude(report.counts, stopped=report.failed)
        if not request.dry_run and report.cursor is None:
            self._sweep(report, deadline)
        return report

    def _selection(self, request: ReplayRequest) -> RunSelection | None:
        now = self._clock.now()
        return self._selections.read(request.selection, now) if request.selection else None

    def _cursor(self, text: str | None) -> Cursor:
        cursor = Cursor.decode(text) if text else Cursor()
        return cursor if cursor.begun else replace(cursor, begun=to_ms(self._clock.now()))

    def _candidates(self, page: ReplayPage, selection: RunSelection | None) -> Iterator[Candidate]:
        if selection is not None:
            return self._search.chosen(selection, page.cursor)
        return self._search.candidates(page.request, page.cursor)

    def _fix(self, request: ReplayRequest, deadline: datetime) -> ReplayReport:
        """Adds a page of the search to a selection; the report is of all its pages."""
        selection = self._selection(request) or self._selections.begin(request, self._clock.now())
        report = selection.report
        if selection.version and not selection.cursor:
            return report
        report.failed, report.cursor = "", None
        pace = SendRate(self._clock, selection.request.rate_per_second)
        by = Actor(request.requested_by, Proof.CLAIMED)
        page = ReplayPage(selection.request, by, report, pace, self._cursor(selection.cursor))
        self._replay(page, self._candidates(page, None), deadline)
        # At its limit a selection ends; the cursor in the report tells that there are more runs.
        ended = report.cursor is None or report.matched >= page.request.limit
        cursor = "" if ended else report.cursor or ""
        self._selections.extend(selection, page.listed, report, cursor=cursor)
        return report

    def _sweep(self, report: ReplayReport, deadline: datetime) -> None:
        # A failure must not lose the report; the reconciler sweeps the DLQs as well.
        with suppress(Unavailable):
            end = min(deadline, self._clock.now() + SWEEP_TIME)
            for queue in self._dlqs.values():
                swept = dead_letters.sweep(queue, self._table, clock=self._clock, deadline=end)
                report.dlq_removed += swept.removed

    def _replay(
        self, page: ReplayPage, candidates: Iterator[Candidate], deadline: datetime
    ) -> None:
        report, first = page.report, page.cursor
        report.position = first.encode()
        if self._stops(page):
            return
        try:
            for found in candidates:
                # Candidates that do not fit take time as well. Each call reads at least one, so
                # that a caller who follows the cursor makes progress.
                late = self._clock.now() > deadline - ANSWER_MARGIN and page.cursor != first
                if late or (found.fits and report.matched >= page.request.limit):
                    page.end()
                    break
                if self._stops(page):
                    break
                page.cursor = found.cursor
                self._take(page, found)
                if report.failed:
                    return
        except Unavailable as error:
            if page.cursor == first:
                raise
            page.end(failed=str(error))
        report.position = page.cursor.encode()
        self._send(page)
        page.pace.end()

    def _stops(self, page: ReplayPage) -> bool:
        """Reads now and then the outcomes of a selection's runs; True if too many failed."""
        now = self._clock.now()
        if page.watch is None or (page.watched_at and now < page.watched_at + WATCHED_EVERY):
            return False
        page.watched_at = now
        limit = page.request.stop_at_failures or STOP_AT_FAILURES
        why = page.watch.observe(page.cursor, page.report, limit)
        if why and not page.request.dry_run:
            page.end(failed=why)
            return True
        return False

    def _take(self, page: ReplayPage, found: Candidate) -> None:
        run, report = found.run, page.report
        report.unsearched += found.unsearched
        if run is None:
            report.add(ReplayOutcome.MISSING)
            return
        if not found.fits:
            return
        obstacle = self._obstacle(run, page.request, found.chosen)
        if obstacle is ReplayOutcome.ALREADY_REPLAYED:
            report.add(obstacle, run)
            return
        report.matched += 1
        if obstacle is not None:
            report.add(obstacle, run)
        elif page.request.dry_run:
            new = _is_new(run)
            report.add(ReplayOutcome.WOULD_ADD if new else ReplayOutcome.WOULD_REPLAY, run)
            page.listed.append(run)
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
        reset: list[tuple[ReplayOutcome, Run]] = []
        for run, result in zip(batch, results, strict=True):
            match result:
                case Unavailable():
                    page.report.matched -= 1
                    again.append(run)
                case RunMessage():
                    outcome = _sent(run) if result in sent else ReplayOutcome.UNSENT
                    page.report.add(outcome, run)
                    reset.append((outcome, run))
                case _:
                    page.report.add(result, run)
        self._observe(SentRuns(page.request, page.by, reset))
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

    def _obstacle(
        self, run: Run, request: ReplayRequest, chosen: Chosen | None
    ) -> ReplayOutcome | None:
        """Returns why the run, as it was read, cannot be replayed; None if it can."""
        now = self._clock.now()
        if chosen is not None and not chosen.is_as_chosen(run):
            return ReplayOutcome.ALREADY_REPLAYED
        if run.expires_at is not None and event_end(run.expires_at) <= now:
            return ReplayOutcome.EXPIRED
        if str(run.status) in _FINISHED and not request.force:
            return ReplayOutcome.FINISHED
        until = run.claimed_until
        if run.status is Status.PROCESSING and until is not None and until >= now:
            return ReplayOutcome.IN_USE
        # Nothing would hold it a second time, as a policy or an effect does.
        if run.status is Status.HELD and run.held.get("subject") in EVENT_HOLDS:
            return ReplayOutcome.HELD
        return None

    def _reset(self, run: Run, page: ReplayPage) -> ReplayOutcome | RunMessage | Unavailable:
        """Resets a run and returns its next message, or why there is none."""
        try:
            self._write(run, page, self._clock.now())
        except ConditionFailed as error:
            if page.request.selection and (error.old or {}).get("generation", 0) > run.generation:
                return ReplayOutcome.ALREADY_REPLAYED
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
            **({"selection": request.selection} if request.selection else {}),
            **({"new_keys": True} if request.new_keys else {}),
        }
        change = Change(
            set={
                **run_identity(run, run.handler, expires_at=end),
                **due_entry(key, overdue_at(now)),
                "status": str(Status.PENDING),
                "generation": run.generation + 1,
                "attempts_in_round": 0,
                **({"added": True} if run.added else {}),
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
                "skip_reason",
                "attempt_limit",
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
            action=AuditedAction.REPLAY,
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
            action=AuditedAction.REPLAY,
            by=by,
            reason=request.reason,
            request={**asked, "limit": str(request.limit), **more},
            event_ids=ids[begin:],
            forced=request.force,
            now=self._clock.now(),
        )


def _is_new(run: Run) -> bool:
    """Returns whether a replay adds the run."""
    return run.added and not run.generation


def _sent(run: Run) -> ReplayOutcome:
    return ReplayOutcome.ADDED if _is_new(run) else ReplayOutcome.REPLAYED


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
