"""Handles a run whose number is ahead of its turn: it waits, and the gap is decided at its timeout.

    run is early ── BACKFILL_AFTER ── timeout ──────────────► time
         │ waits         │ backfill      │ on_gap: hold, skip, dead
         └─ resumed at any time by the run that applies the number before its own

The first run in line decides; a run behind a live one waits for it. So no number is passed over
whose event is stored and may be applied: a retried, deferred or held predecessor is no gap.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.error_text import describe
from webhook_inbox.domain.errors import Deferred, HandlerTimedOut, Held, Permanent, Skipped
from webhook_inbox.domain.internal_errors import ApprovalRequired, Postponed
from webhook_inbox.domain.manifest import Order
from webhook_inbox.domain.model import SETTLED, Run
from webhook_inbox.domain.ports import Clock
from webhook_inbox.handlers.ordering.declaration import Backfill
from webhook_inbox.handlers.ordering.key_state import KeyState, KeyStates
from webhook_inbox.handlers.ordering.waiters import ORDER, Waiters

# An event late by less than this is probably still in transit.
BACKFILL_AFTER: Final = timedelta(seconds=30)
# Bounds of the interval at which a run checks its turn, because a resume may be lost. Each interval
# is as long as the total wait before it.
RECHECK: Final = timedelta(minutes=15)
RAREST_RECHECK: Final = timedelta(hours=1)
# The subject of an approval to pass over a gap.
SUBJECT: Final = ORDER
# Errors by which a backfill decides about its run.
_DECIDES: Final = (Permanent, Skipped, Held, Deferred, HandlerTimedOut)


class OutOfTurn(Postponed):
    """The run waits for its predecessor; call `Orders.settled` after it is settled."""

    def __init__(self, until: datetime, message: str, *, ordering_key: str, number: int) -> None:
        super().__init__(until, message, parked=True, waits_for=ORDER)
        self.ordering_key = ordering_key
        self.number = number


@dataclass(frozen=True, slots=True)
class Entrant:
    """A run that requests its turn, and its handler's order."""

    run: Run
    order: Order
    backfill: Backfill | None
    lane: str


@dataclass(frozen=True, slots=True)
class Early:
    """A run whose number is beyond the next one; `applied` is the last number applied."""

    entrant: Entrant
    state: KeyState
    applied: int
    number: int

    @property
    def run(self) -> Run:
        """The run."""
        return self.entrant.run

    @property
    def missing(self) -> str:
        """The missing numbers as text."""
        first, last = self.applied + 1, self.number - 1
        numbers = f"number {first}" if first == last else f"numbers {first} to {last}"
        return f"{numbers} of {self.state.ordering_key}"

    def waits(self, until: datetime, why: str = "") -> OutOfTurn:
        """Returns the deferral until then, or until the predecessor is applied."""
        message = f"waits for {self.missing}{f'; {why}' if why else ''}"
        return OutOfTurn(until, message, ordering_key=self.state.ordering_key, number=self.number)


class Gaps:
    """Defers early runs and decides gaps."""

    def __init__(self, *, ordering_keys: KeyStates, waiters: Waiters, clock: Clock) -> None:
        self._ordering_keys = ordering_keys
        self._waiters = waiters
        self._clock = clock

    def close(self, early: Early) -> KeyState:
        """Returns the key's state, held by the run, once no number before its own is missing.

        Raises:
            OutOfTurn: the run waits.
            Deferred: another run holds the ordering key.
            Held: a person must decide.
            Permanent: the run will not be applied.
            Changed: the state has changed meanwhile.
            Unavailable: the table failed.
        """
        now = self._clock.now()
        since = self._since(early)
        patience = timedelta(seconds=early.entrant.order.timeout)
        quiet = min(patience, BACKFILL_AFTER) if early.entrant.backfill else patience
        if self._is_passed(early):
            return self._pass_over(early, early.state)
        approved = SUBJECT in early.run.approvals
        recheck = now + min(max(now - since, RECHECK), RAREST_RECHECK)
        if not approved and now < since + quiet:
            raise early.waits(min(since + quiet, recheck))
        self._yield_to_those_ahead(early, recheck)
        if approved:
            return self._pass_over(early, early.state)
        return self._fill(early, since, since + patience)

    def _is_passed(self, early: Early) -> bool:
        """Returns whether the only missing number belongs to a run that a person denied.

        A denied run ends as skipped without recording its number.
        """
        state, run = early.state, early.run
        if state.begun != str(early.number - 1):
            return False
        before = self._waiters.run(run.source, state.begun_by, run.handler)
        return before is not None and before.status in SETTLED

    def _since(self, early: Early) -> datetime:
        """Returns the begin of the run's wait; a replay restarts it."""
        since = self._waiters.enter(early.state, early.run, early.number)
        return max(since, early.run.round_began_at or since)

    def _yield_to_those_ahead(self, early: Early, recheck: datetime) -> None:
        state, run = early.state, early.run
        begun = int(state.begun) if state.begun else early.applied
        if begun > early.applied and self._waiters.lives(run.source, state.begun_by, run.handler):
            raise early.waits(recheck, f"number {begun} is with {state.begun_by}")
        for waiter in self._waiters.between(state, early.applied, early.number):
            if self._waiters.lives(run.source, waiter.event_id, run.handler):
                raise early.waits(recheck, f"number {waiter.number} waits as well")

    def _fill(self, early: Early, since: datetime, end: datetime) -> KeyState:
        state, failure = early.state, ""
        if early.entrant.backfill is not None:
            state, failure = self._backfill(early, early.entrant.backfill)
            if state.applied == str(early.number - 1):
                return state
        now = self._clock.now()
        if now < end:
            self._ordering_keys.release(state, early.run)
            # Each interval is as long as the total wait before it.
            raise early.waits(min(end, now + max(now - since, BACKFILL_AFTER)), failure)
        return self._decide(early, state, failure)

    def _backfill(self, early: Early, backfill: Backfill) -> tuple[KeyState, str]:
        """Returns the held state after the backfill, and why it applied no more.

        The ordering key is held during the backfill, so that no run applies the same numbers.
        """
        held = self._ordering_keys.take(early.state, early.run, self._clock.now())
        try:
            reached = backfill(held.ordering_key, early.applied + 1, early.number - 1)
            self._check(early, reached)
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, _DECIDES):
                # The order's timeout applies; no attempt is counted.
                return held, f"the backfill failed: {describe(error)}"
            self._ordering_keys.release(held, early.run)
            raise
        if reached == early.applied:
            return held, "the backfill found nothing"
        done = {"applied": str(reached), "applied_by": f"the backfill for {early.run.event_id}"}
        held = self._ordering_keys.take(held, early.run, self._clock.now(), **done)
        # A run that arrived during the backfill may wait behind the fetched numbers.
        self._waiters.resume_those_with(held, early.run, reached + 1, early.entrant.lane)
        return held, f"the backfill reached {reached}"

    def _check(self, early: Early, reached: object) -> None:
        if type(reached) is not int or not early.applied <= reached < early.number:
            raise Permanent(
                f"the backfill of {early.run.handler!r} returned {reached!r}: return the last"
                f" number applied, from {early.applied} (none) to {early.number - 1}"
            )

    def _decide(self, early: Early, state: KeyState, failure: str) -> KeyState:
        order, run = early.entrant.order, early.run
        if order.on_gap == "skip":
            return self._pass_over(early, state)
        why = f"{early.missing} did not come within {order.timeout:g} s"
        why += f"; {failure}" if failure else ""
        if early.entrant.backfill is not None:
            self._ordering_keys.release(state, run)
        if order.on_gap == "hold":
            why = f"{why}: approve to pass over the gap"
            raise ApprovalRequired(why, subject=SUBJECT, shows=early.missing)
        self._waiters.leave(state, run, early.number)
        raise Permanent(why)

    def _pass_over(self, early: Early, state: KeyState) -> KeyState:
        # Written before the handler begins: a missing event that arrives during or after it would
        # otherwise be applied out of order.
        done = {"applied": str(early.number - 1), "applied_by": f"{early.run.event_id}'s passing"}
        return self._ordering_keys.take(state, early.run, self._clock.now(), **done)
