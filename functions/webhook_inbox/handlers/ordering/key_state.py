"""The state of an ordering key: its holder, and the last version begun and applied.

    free ── take ──► held by one run ── record ──► free, its version applied
                         └─ release ─► free, its version begun and not applied

Every write increments `revision`. `take` is conditional on the revision read, so the decision about
holder and version is made on current data; the holder's writes are conditional on its lease id.
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
from webhook_inbox.ledger.schema import dedupe_key, transition

# The state must outlive the longest pause between two events of a key; each write renews it. An
# expired state that is still present is valid and used.
STATE_LIFE: Final = timedelta(days=400)
STATE: Final = "state#"
# A run that finds the key held returns after as long as it has been held, within these bounds.
SHORTEST_WAIT: Final = timedelta(seconds=2)
LONGEST_WAIT: Final = timedelta(seconds=20)
_HELD: Final = ("holder", "lease_id", "held_at", "held_until")


class Changed(InboxError):
    """The ordering key has changed since it was read; `state` is the current state."""

    def __init__(self, state: "KeyState") -> None:
        super().__init__("the ordering key has changed")
        self.state = state


@dataclass(frozen=True, slots=True)
class KeyState:
    """An ordering key as it was read.

    Attributes:
        applied: the version or number applied last, or ""; `applied_by` is its event.
        begun: the newest version or number whose handler began; `begun_by` is its event.
        holder: the event whose run holds the key, or "".
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
        """Checks that a run may take the key; a run's own attempts never overlap.

        Raises:
            Deferred: the run of another event holds it.
        """
        if self.holder in {"", run.event_id} or self.held_until is None or self.held_at is None:
            return
        if self.held_until >= now - CLOCK_SKEW:
            wait = min(max(now - self.held_at, SHORTEST_WAIT), LONGEST_WAIT)
            raise Deferred(now + wait, f"{self.ordering_key} is held by {self.holder}")


class KeyStates:
    """Reads and changes the states of ordering keys."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def read(self, handler: str, ordering_key: str, kind: str) -> KeyState:
        """Returns an ordering key's state for a kind of order; raises Unavailable."""
        # A handler that changes to another kind starts with an empty state.
        key = Key(ordering_key_pk(handler, ordering_key), STATE + kind)
        return _state(ordering_key, key, self._table.get(key))

    def take(self, state: KeyState, run: Run, now: datetime, **values: str) -> KeyState:
        """Makes the run the holder, until its own lease ends, and returns the state with `values`.

        Raises:
            Deferred: the run of another event holds it.
            Changed: the state has changed since it was read.
            Unavailable: the table failed; the key may be held now.
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
            row = transition(self._table, state.key, change, when=when)
        except ConditionFailed as error:
            raise Changed(_state(state.ordering_key, state.key, error.old)) from error
        return _state(state.ordering_key, state.key, row)

    def record(self, state: KeyState, run: Run, now: datetime, *, applied: str) -> KeyState:
        """Records the version that the holder applied, and releases the key.

        Raises:
            Transient: the run no longer holds it.
            Unavailable: the table failed; the version may be recorded.
        """
        told = {"applied": applied, "applied_by": run.event_id}
        change = Change(
            set={**told, "expires_at": to_seconds(now + STATE_LIFE)},
            add={"revision": 1},
            remove=_HELD,
        )
        return self._as_holder(state, run, change, own=told)

    def release(self, state: KeyState, run: Run) -> None:
        """Releases the key; on failure it is free when the run's lease ends."""
        change = Change(add={"revision": 1}, remove=_HELD)
        with suppress(Unavailable, Transient):
            self._as_holder(state, run, change, own={"lease_id": run.lease_id})

    def _as_holder(
        self, state: KeyState, run: Run, change: Change, *, own: Mapping[str, Any]
    ) -> KeyState:
        held = Equals("lease_id", run.lease_id)
        try:
            row = transition(self._table, state.key, change, when=held, own=own)
        except ConditionFailed as error:
            raise Transient(f"lost hold of {state.ordering_key}: it took too long") from error
        return _state(state.ordering_key, state.key, row)


def ordering_key_pk(handler: str, ordering_key: str) -> str:
    """Returns the partition of an ordering key; a long key is hashed."""
    return f"ordering_key#{handler}#{dedupe_key(ordering_key)}"


def _state(ordering_key: str, key: Key, row: Item | None) -> KeyState:
    found: Item = row or {}
    plain = ("revision", "applied", "applied_by", "begun", "begun_by", "holder")
    values: dict[str, Any] = {name: found[name] for name in plain if name in found}
    values.update((n, from_ms(found[n])) for n in ("held_at", "held_until") if n in found)
    return KeyState(ordering_key, key, **values)
