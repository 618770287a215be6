"""The state of an ordering key: who holds it, what was begun last, what was applied last.

    free ── take ──► held by one run ── record ──► free, its version applied
                         └─ release ─► free, its version begun and not applied

Every write raises `revision`, and `take` asks for the one that was read: who holds the ordering key,
and whether its own version is older, is decided on what was read, once. What the holder writes
asks for its lease id.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from webhook_inbox.domain.conditions import Equals, number
from webhook_inbox.domain.errors import (
    ConditionFailed,
    Deferred,
    InboxError,
    Transient,
    Unavailable,
)
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.ledger.lease import CLOCK_SKEW
from webhook_inbox.ledger.schema import carries, dedupe_key

# An ordering key's state has to outlive the longest pause between two events of it; each write begins
# the time anew. What has expired and is still there is used: it is right, whatever its age.
STATE_LIFE: Final = timedelta(days=400)
STATE: Final = "state#"
# Whoever finds the ordering key held comes again after as long as it has been held, within these: a
# short turn is waited for briefly, and a long one in few steps.
SHORTEST_WAIT: Final = timedelta(seconds=2)
LONGEST_WAIT: Final = timedelta(seconds=20)
_HELD: Final = ("holder", "lease_id", "held_at", "held_until")


class Changed(InboxError):
    """The ordering key has changed since it was read; `state` is what it is now."""

    def __init__(self, state: "KeyState") -> None:
        super().__init__("the ordering key has changed")
        self.state = state


@dataclass(frozen=True, slots=True)
class KeyState:
    """An ordering key as it was read.

    Attributes:
        applied: the version or number that was applied last, "" for none; `applied_by` is the
            event that brought it.
        begun: the newest version, or the last number, whose handler was begun; `begun_by` as above.
        holder: the event whose run holds the ordering key, "" for none.
    """

    ordering_key: str
    key: Key
    revision: int = 0
    applied: str = ""
    applied_by: str = ""
    begun: str = ""
    begun_by: str = ""
    holder: str = ""
    held_at: datetime | None = None
    held_until: datetime | None = None

    def check_free_for(self, run: Run, now: datetime) -> None:
        """Lets a run take the ordering key: of one run no two attempts live at a time.

        Raises:
            Deferred: the run of another event holds it.
        """
        if self.holder in {"", run.event_id} or self.held_until is None or self.held_at is None:
            return
        if self.held_until >= now - CLOCK_SKEW:
            wait = min(max(now - self.held_at, SHORTEST_WAIT), LONGEST_WAIT)
            raise Deferred(now + wait, f"{self.ordering_key} is in the hands of {self.holder}")


class KeyStates:
    """Reads and changes the states of ordering keys."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def read(self, handler: str, ordering_key: str, kind: str) -> KeyState:
        """Returns an ordering key's state under a kind of order; raises Unavailable."""
        # A handler that changes to another kind begins anew: the old state says nothing of it.
        key = Key(ordering_key_pk(handler, ordering_key), STATE + kind)
        return _state(ordering_key, key, self._table.get(key))

    def take(self, state: KeyState, run: Run, now: datetime, **values: str) -> KeyState:
        """Makes the run the holder, until its own lease ends, and returns the state with `values`.

        Raises:
            Deferred: the run of another event holds it.
            Changed: it is not any more what was read.
            Unavailable: the table failed; it may be held now.
        """
        state.check_free_for(run, now)
        change = Change(
            set={
                "holder": run.event_id,
                "lease_id": run.lease_id,
                "held_at": to_ms(now),
                "held_until": to_ms(run.claimed_until or now),
                "expires_at": to_seconds(now + STATE_LIFE),
                **values,
            },
            add={"revision": 1},
        )
        when = number("revision", state.revision)
        try:
            row: Item | None = self._table.update(state.key, change, when=when)
        except ConditionFailed as error:
            # Our own: an earlier try of this call succeeded and its answer was lost.
            if not carries(error.old, change.set):
                raise Changed(_state(state.ordering_key, state.key, error.old)) from error
            row = error.old
        return _state(state.ordering_key, state.key, row)

    def record(self, state: KeyState, run: Run, now: datetime, *, applied: str) -> KeyState:
        """Records what the holder has applied, and lets the ordering key go.

        Raises:
            Transient: the run does not hold it any more.
            Unavailable: the table failed; it may be recorded.
        """
        told = {"applied": applied, "applied_by": run.event_id}
        change = Change(
            set={**told, "expires_at": to_seconds(now + STATE_LIFE)},
            add={"revision": 1},
            remove=_HELD,
        )
        return self._as_holder(state, run, change, told)

    def release(self, state: KeyState, run: Run) -> None:
        """Lets the ordering key go; if that fails, it is free when the run's lease is over."""
        change = Change(add={"revision": 1}, remove=_HELD)
        with suppress(Unavailable, Transient):
            self._as_holder(state, run, change, None)

    def _as_holder(
        self, state: KeyState, run: Run, change: Change, told: Mapping[str, Any] | None
    ) -> KeyState:
        try:
            row = self._table.update(state.key, change, when=Equals("lease_id", run.lease_id))
        except ConditionFailed as error:
            if error.old is None or not told or not carries(error.old, told):
                raise Transient(f"lost hold of {state.ordering_key}: it took too long") from error
            row = error.old
        return _state(state.ordering_key, state.key, row)


def ordering_key_pk(handler: str, ordering_key: str) -> str:
    """Returns the partition of an ordering key; a long one is named by its hash."""
    return f"ordering_key#{handler}#{dedupe_key(ordering_key)}"


def _state(ordering_key: str, key: Key, row: Item | None) -> KeyState:
    found: Item = row or {}
    plain = ("revision", "applied", "applied_by", "begun", "begun_by", "holder")
    values: dict[str, Any] = {name: found[name] for name in plain if name in found}
    values.update((n, from_ms(found[n])) for n in ("held_at", "held_until") if n in found)
    return KeyState(ordering_key, key, **values)
