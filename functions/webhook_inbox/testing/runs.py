"""A run as a test sees it: what the ledger holds of it, now."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, Self

from webhook_inbox.domain.model import Overview, Status
from webhook_inbox.domain.model import Run as Row
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.handlers.approvals import ApprovalRequest
from webhook_inbox.handlers.completions.results import Ending
from webhook_inbox.handlers.completions.tokens import WaitAddress
from webhook_inbox.handlers.effects.journal import EffectState
from webhook_inbox.handlers.effects.results import decode
from webhook_inbox.testing.fake import KitError
from webhook_inbox.testing.operators import Operators


class World(Protocol):
    """The inbox that a run belongs to."""

    @property
    def operators(self) -> Operators:
        """What people do with runs."""

    def overview(self, source: str, event_id: str) -> Overview:
        """Returns what the ledger knows of an event."""

    def effect_row(self, row: Mapping[str, Any]) -> tuple[Key, Item]:
        """Returns an effect's row, wherever it is."""

    def starts(self, key: Key) -> int:
        """Returns how often an effect was started."""

    def work(self) -> None:
        """Works on what can be worked on now."""

    def settle(self) -> None:
        """Lets time pass until nothing happens any more without a person."""

    def redeliver(self, source: str, event_id: str) -> str:
        """Delivers an event once more."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect of a run.

    Attributes:
        name: as its handler calls it.
        status: "started" (under way, or in doubt), "committed" or "failed".
        key: the idempotency key.
        starts: how often it was begun, by all attempts together.
        result: what was recorded, None before.
        error: why it failed, "" where it did not.
    """

    name: str
    status: str
    key: str
    starts: int
    result: Any = None
    error: str = ""

    @property
    def committed(self) -> bool:
        """Whether it happened, and is known to have."""
        return self.status == EffectState.COMMITTED

    @property
    def in_doubt(self) -> bool:
        """Whether it was begun and nobody knows what came of it."""
        return self.status == EffectState.STARTED


class RecordedEffects(Mapping[str, Effect]):
    """The effects of a run by name."""

    def __init__(self, found: Mapping[str, Effect]) -> None:
        self._found = found

    def __getitem__(self, name: str) -> Effect:
        if name not in self._found:
            raise KitError(f"there is no effect {name!r}; there are: {_list(self._found)}")
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __repr__(self) -> str:
        return f"Effects({list(self._found.values())})"


class Run:
    """One handler's work on one event. Its properties are read from the ledger each time."""

    def __init__(self, world: World, source: str, event_id: str, handler: str) -> None:
        self._world = world
        self.source = source
        self.event_id = event_id
        self.handler = handler

    def __repr__(self) -> str:
        error = f": {self.error}" if self.error else ""
        return f"Run({self.handler} of {self.event_id}: {self.status}{error})"

    @property
    def row(self) -> Row:
        """All that the ledger holds of it."""
        for row in self._world.overview(self.source, self.event_id).runs:
            if row.handler == self.handler:
                return row
        raise KitError(f"{self.handler} was not begun: nothing took its message yet")

    @property
    def status(self) -> Status:
        """Where it stands: "done", "failed", "dead_letter", …; equal to its text."""
        return self.row.status

    @property
    def error(self) -> str:
        """What its last attempt failed of, or it waits for; "" for nothing."""
        return self.row.last_error if self.status is not Status.DONE else ""

    @property
    def attempts(self) -> int:
        """How many attempts were made."""
        return self.row.attempt_count

    @property
    def due(self) -> datetime | None:
        """When it is tried again."""
        return self.row.next_attempt_at

    @property
    def effects(self) -> RecordedEffects:
        """Its effects by name."""
        rows = self._world.overview(self.source, self.event_id).effects
        prefix = f"effect#{self.handler}#"
        own = [row for row in rows if row["sk"].startswith(prefix)]
        return RecordedEffects({row["name"]: self._effect(row) for row in own})

    def settle(self) -> Self:
        """Lets time pass until nothing happens any more without a person; see `Inbox.settle`."""
        self._world.settle()
        return self

    def approve(self, reason: str = "approved in a test") -> Self:
        """Approves what it is held for, and lets it go on."""
        self._world.operators.holds.approve(self._hold(), by="tester", reason=reason)
        return self._gone_on()

    def deny(self, reason: str = "denied in a test") -> Self:
        """Denies what it is held for."""
        self._world.operators.holds.deny(self._hold(), by="tester", reason=reason)
        return self._gone_on()

    def happened(self, result: Any = None, *, reason: str = "seen in a test") -> Self:
        """Says that the effect in doubt has happened, with this result, and lets it go on."""
        hold = self._hold()
        self._world.operators.holds.happened(hold, result, by="tester", reason=reason)
        return self._gone_on()

    def complete(self, name: str, result: Any = None) -> Self:
        """Says that the job it waits for has ended, with this result; see `ctx.wait_for`."""
        return self._completed(name, Ending.of(result))

    def fail(self, name: str, error: str, *, retry: bool = False) -> Self:
        """Says that the job it waits for has failed."""
        return self._completed(name, Ending.failure(error, retry=retry))

    def redeliver(self) -> str:
        """Delivers its event once more, and returns what came of that: "duplicate"."""
        return self._world.redeliver(self.source, self.event_id)

    def replay(self, *, force: bool = False) -> Self:
        """Replays it as an operator does; a run that is done only by `force`."""
        self._world.operators.replay(self.source, self.event_id, self.handler, force=force)
        return self._gone_on()

    def _completed(self, name: str, ending: Ending) -> Self:
        place = WaitAddress(self.source, self.event_id, self.handler, name)
        self._world.operators.complete(place, ending)
        return self._gone_on()

    def _gone_on(self) -> Self:
        self._world.work()
        return self

    def _hold(self) -> ApprovalRequest:
        row = self.row
        if row.status is not Status.HELD:
            raise KitError(f"it is not held: {self!r}")
        return ApprovalRequest(row)

    def _effect(self, found: Mapping[str, Any]) -> Effect:
        key, row = self._world.effect_row(found)
        return Effect(
            name=row["name"],
            status=row["status"],
            key=row["idempotency_key"],
            starts=self._world.starts(key),
            result=decode(row["result"]) if "result" in row else None,
            error=row.get("error", ""),
        )


def _list(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"
