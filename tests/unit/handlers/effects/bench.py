"""One run whose attempts begin and end as a test says, over a table in memory."""

from collections.abc import Callable
from contextvars import Context
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from tests.unit.support.world import World
from webhook_inbox.adapters.memory import MemoryTable
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Item
from webhook_inbox.handlers.effects.effect import Effects
from webhook_inbox.handlers.effects.journal import EffectJournal
from webhook_inbox.ledger.schema import effect_key, shared_effect_key

ATTEMPT: Final = timedelta(seconds=50)


class Sink:
    """A downstream: notes every call; what it does next is planned."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.planned: list[BaseException | Any] = []

    def __call__(self, key: str) -> Any:
        self.keys.append(str(key))
        answer = self.planned.pop(0) if self.planned else {"id": len(self.keys)}
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def without_key(self) -> Any:
        """Does the same for a downstream that knows no keys."""
        return self("")


class Bench:
    """The run, its table, and a sink."""

    def __init__(self, event_id: str = "evt_1", *, table: MemoryTable | None = None) -> None:
        world = World()
        self.faults, self.clock = world.plan, world.clock
        self.table = table or world.table
        self.sink = Sink()
        self.received_at = self.clock.now()
        self.run = Run("stripe", event_id, "stripe.fulfil", "paid", Status.PROCESSING)

    def attempt(self, *, seconds: float = ATTEMPT.total_seconds()) -> Effects:
        """Begins the next attempt; the one before may still be alive."""
        number = self.run.claims + 1
        end = self.clock.now() + timedelta(seconds=seconds)
        self.run = replace(
            self.run,
            claims=number,
            attempt_count=number,
            lease_id=f"{self.run.event_id}-{number}",
            claimed_until=end + timedelta(seconds=7),
        )
        return self.effects(self.run, end)

    def effects(self, run: Run, end: datetime) -> Effects:
        """Returns the effects of an attempt."""
        journal = EffectJournal(self.table, run, received_at=self.received_at)
        return Effects(journal, run, clock=self.clock, end=end)

    def approve(self, subject: str, fingerprint: str) -> None:
        """A person approves."""
        word = {"by": "ann", "reason": "seen", "at": 1, "fingerprint": fingerprint}
        self.run = replace(self.run, approvals={**self.run.approvals, subject: word})

    def row(self, name: str, *, key: str = "") -> Item:
        """Returns an effect's row."""
        place = effect_key("stripe", self.run.event_id, "stripe.fulfil", name)
        found = self.table.get(shared_effect_key(name, key) if key else place)
        assert found is not None, f"no row of effect {name}"
        return found


def die(_: str) -> None:
    """Kills a worker in the middle of an effect: nothing after it is recorded."""
    raise Killed


class Killed(BaseException):
    """The process is gone."""


def elsewhere(fn: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Calls a function as another worker would; in this one it is inside of an effect."""
    return Context().run(fn, *args, **options)


def killed_after(fn: Callable[[str], Any]) -> Callable[[str], Any]:
    """Returns the function whose worker dies when it has had its effect."""

    def dying(key: str) -> None:
        fn(key)
        raise Killed

    return dying
