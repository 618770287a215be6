"""A run's turn in its ordering key: taken before the handler begins, ended after it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from webhook_inbox.domain.errors import Deferred, Skipped, Unavailable
from webhook_inbox.domain.internal_errors import SkippedBecause
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import Run, SkipReason
from webhook_inbox.domain.ports import Ports
from webhook_inbox.handlers.ordering.declaration import LATEST, SEQUENCE, Backfill
from webhook_inbox.handlers.ordering.gaps import Early, Entrant, Gaps, OutOfTurn
from webhook_inbox.handlers.ordering.key_state import SHORTEST_WAIT, Changed, KeyState, KeyStates
from webhook_inbox.handlers.ordering.position import Version, number_at, ordering_key_at, version_at
from webhook_inbox.handlers.ordering.waiters import Waiters

# Immediate retries after a concurrent change of the ordering key.
TRIES: Final = 3
# The deferral while the ledger is down; it counts no attempt.
STORAGE_PAUSE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Turn:
    """A run that holds its ordering key.

    Attributes:
        applied: the version to record at the end, "" for none: an operator forced an old event.
        number: the sequence number, or None.
    """

    state: KeyState
    applied: str
    number: int | None = None


class Orders:
    """Keeps the runs of handlers in the order they declare: `latest` and `sequence`."""

    def __init__(self, ports: Ports) -> None:
        self._clock = ports.clock
        self._ordering_keys = KeyStates(ports.table)
        self._waiters = Waiters(ports)
        self._gaps = Gaps(
            ordering_keys=self._ordering_keys, waiters=self._waiters, clock=ports.clock
        )

    @contextmanager
    def turn(
        self, spec: HandlerSpec, run: Run, body: Any, *, backfill: Backfill | None, lane: str
    ) -> Iterator[None]:
        """Takes the run's turn around its policy and handler.

        On return or `Skipped`, the event is recorded as applied and its successor is resumed. On
        any other error the ordering key is released and nothing is recorded.

        Args:
            spec: the handler; without `latest` or `sequence` its turn is immediate.
            run: the run as leased.
            body: the body's JSON.
            backfill: the function of the handler's `Ordering`.
            lane: the lane of its successors.

        Raises:
            Skipped: the event is stale, or was applied before.
            Deferred: it is not the run's turn, or the ledger is down; no attempt is counted.
            Held: a person must decide about the gap before it.
            Permanent: its body has no valid position, or its gap was not closed.
            Transient: the run lost the key while its handler ran.
        """
        if spec.order is None or spec.order.kind not in {LATEST, SEQUENCE}:
            yield
            return
        turn = self._take(Entrant(run, spec.order, backfill, lane), body)
        try:
            yield
        except Skipped:
            self._end(turn, run, lane)
            raise
        except BaseException:
            self._ordering_keys.release(turn.state, run)
            raise
        self._end(turn, run, lane)

    def settled(self, error: BaseException | None, run: Run, *, lane: str) -> None:
        """Resumes a run that was deferred with `OutOfTurn` if its turn has come meanwhile.

        Its predecessor may have looked for waiting runs before this run was deferred.
        """
        if not isinstance(error, OutOfTurn):
            return
        with suppress(Unavailable):
            state = self._ordering_keys.read(run.handler, error.ordering_key, SEQUENCE)
            if state.applied and error.number <= int(state.applied) + 1:
                self._waiters.resume(run.source, run.event_id, run.handler, lane)

    def _take(self, entrant: Entrant, body: Any) -> Turn:
        handler, order = entrant.run.handler, entrant.order
        ordering_key = ordering_key_at(body, order.ordering_key, f"handler {handler!r}")
        take = self._latest if order.kind == LATEST else self._sequence
        try:
            state = self._ordering_keys.read(handler, ordering_key, order.kind)
            for _ in range(TRIES):
                try:
                    return take(entrant, state, body)
                except Changed as changed:
                    state = changed.state
        except Unavailable as error:
            pause = self._clock.now() + STORAGE_PAUSE
            raise Deferred(pause, f"its position cannot be read: {error}") from error
        raise Deferred(self._clock.now() + SHORTEST_WAIT, f"{ordering_key} keeps changing")

    def _latest(self, entrant: Entrant, state: KeyState, body: Any) -> Turn:
        run = entrant.run
        version = version_at(body, entrant.order.version, f"handler {run.handler!r}")
        # Compares with the version begun, not applied: its handler may have acted, and an older
        # event would undo that for good, since a committed effect is not repeated.
        older = bool(state.begun) and version.is_older(Version.read(state.begun))
        if older and not run.forced:
            done = "applied" if state.begun == state.applied else "begun"
            raise SkippedBecause(
                SkipReason.STALE,
                f"stale: version {version.text}, and {state.begun} was {done} by {state.begun_by}",
            )
        begun = {} if older else {"begun": version.text, "begun_by": run.event_id}
        held = self._ordering_keys.take(state, run, self._clock.now(), **begun)
        return Turn(held, "" if older else version.text)

    def _sequence(self, entrant: Entrant, state: KeyState, body: Any) -> Turn:
        run, order = entrant.run, entrant.order
        number = number_at(body, order.version, f"handler {run.handler!r}")
        applied = int(state.applied) if state.applied else order.first - 1
        # This run recorded its number but was not settled, so it may run again. Its successor was
        # resumed: once that has begun, no older run may begin.
        recorded = number == applied and state.applied_by == run.event_id
        recorded = recorded and state.begun == str(number)
        if number <= applied and not recorded:
            return self._past(entrant, state, number, applied)
        if number > applied + 1:
            state = self._gaps.close(Early(entrant, state, applied, number))
        begun = {"begun": str(number), "begun_by": run.event_id}
        held = self._ordering_keys.take(state, run, self._clock.now(), **begun)
        return Turn(held, str(number), number)

    def _past(self, entrant: Entrant, state: KeyState, number: int, applied: int) -> Turn:
        """Skips a number that was applied, unless an operator forced the run."""
        run = entrant.run
        if run.forced:
            return Turn(self._ordering_keys.take(state, run, self._clock.now()), "")
        if number == applied:
            # The worker that applied it may have been lost before it resumed the successor.
            self._waiters.resume_those_with(state, run, applied + 1, entrant.lane)
        self._leave(state, run, number)
        by = f" by {state.applied_by}" if state.applied_by else ""
        text = f"already applied: number {number}, and the last is {applied}{by}"
        raise SkippedBecause(SkipReason.APPLIED, text)

    def _end(self, turn: Turn, run: Run, lane: str) -> None:
        if not turn.applied:
            self._ordering_keys.release(turn.state, run)
            return
        now = self._clock.now()
        try:
            self._ordering_keys.record(turn.state, run, now, applied=turn.applied)
        except Unavailable as error:
            # Its effects are committed: the next attempt repeats only this record.
            pause = now + STORAGE_PAUSE
            raise Deferred(pause, f"its position cannot be recorded: {error}") from error
        if turn.number is not None:
            self._waiters.resume_those_with(turn.state, run, turn.number + 1, lane)
            self._leave(turn.state, run, turn.number)

    def _leave(self, state: KeyState, run: Run, number: int) -> None:
        # A run that never waited has generation 0 and no waiter row.
        if run.generation:
            self._waiters.leave(state, run, number)
