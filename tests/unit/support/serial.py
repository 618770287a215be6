"""A world with serial handlers, and what tests of their order ask it."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox.domain.manifest import BLOCK, SERIAL, Backoff, HandlerSpec, Order
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.queue.outcomes import RunOutcome, RunResult

BILL: Final = "acme.bill"
LANE: Final = "bill"
QUICK: Final = Backoff(base=10, factor=2, cap=60)


def serial(name: str = BILL, **settings: Any) -> HandlerSpec:
    """Returns a serial handler that takes the events of a customer in order."""
    on_dead = settings.pop("on_dead", "continue")
    order = Order(SERIAL, "customer.id", on_dead=on_dead)
    return handler(name, lane=LANE, order=order, backoff=QUICK, max_attempts=3, **settings)


class SerialWorld(World):
    """An inbox whose only handler is serial, unless others are given."""

    def __init__(self, *specs: HandlerSpec, seed: int = 0) -> None:
        super().__init__(with_handlers(*(specs or (serial(),))), seed=seed)

    def accept(self, event_id: str, ordering_key: Any = "cus_1") -> None:
        """Accepts an event of an ordering key."""
        body = json.dumps({"id": event_id, "customer": {"id": ordering_key}}).encode()
        receipt = self.deliver(event_id, body=body)
        assert receipt.status == 202, receipt.detail

    def accept_all(self, *event_ids: str, ordering_key: str = "cus_1") -> None:
        """Accepts events of one ordering key, in this order."""
        for event_id in event_ids:
            self.accept(event_id, ordering_key)

    def step(self) -> RunResult | None:
        """Works on one message of the FIFO lane."""
        return self.work_once(LANE)

    def outcomes(self) -> list[RunOutcome]:
        """Works on all that is visible in the FIFO lane."""
        return [result.outcome for result in self._drain(LANE)]

    def wait(self, seconds: float) -> list[RunOutcome]:
        """Lets time pass: the lane is worked on whenever a message shows, and what is due is sent.

        The reconciler runs in each full minute in which a run is due.
        """
        end, found = self.now + timedelta(seconds=seconds), self.outcomes()
        while (moment := self._next_moment()) is not None and moment <= end:
            self.clock.advance(seconds=max((moment - self.now).total_seconds(), 0.001))
            if self.now == self._next_pass(self.now):
                self.reconcile()
            found += self.outcomes()
        self.clock.advance(seconds=max((end - self.now).total_seconds(), 0))
        return found + self.outcomes()

    def _next_moment(self) -> datetime | None:
        visible = self.queues[LANE].next_visible_at()
        shows = None if visible is None else from_ms(visible)
        moments = (shows, self._next_pass(self.now + timedelta(milliseconds=1)))
        return min(filter(None, moments), default=None)

    def _next_pass(self, now: datetime) -> datetime | None:
        rows = (row for row in self.rows("event#") if "due_bucket" in row)
        due = [from_ms(row["due_at"]) for row in rows if row["status"] != Status.DEAD_LETTER]
        if not due:
            return None
        begins = max(min(due), now)
        minute = begins.replace(second=0, microsecond=0)
        return minute if minute == begins else minute + timedelta(minutes=1)

    def line(self, ordering_key: str = "cus_1") -> list[str]:
        """Returns the events in the line of an ordering key, in order."""
        rows = self.rows(f"ordering_key#{BILL}#{ordering_key}")
        found = sorted((row["sk"], row["event_id"]) for row in rows if "event_id" in row)
        return [event_id for _, event_id in found]

    def order(self, *, of: Sequence[str] = ()) -> list[str]:
        """Returns the events whose handler was called, in order, and each as often as it was."""
        return [event_id for _, event_id, _ in self.handled if not of or event_id in of]

    def bill(self, event_id: str) -> Run:
        """Returns the run of an event."""
        return self.run(event_id, BILL)

    def fail_for(self, event_id: str, *errors: BaseException) -> None:
        """Lets the attempts of one event's run end like this, and well afterwards."""
        remaining = list(errors)

        def act(event: Any, _: Any) -> None:
            if event.id == event_id and remaining:
                raise remaining.pop(0)

        self.behaviours[BILL] = act


def blocking(**settings: Any) -> HandlerSpec:
    """Returns a serial handler whose ordering keys stand still after a death."""
    return serial(on_dead=BLOCK, **settings)
