"""One handler that keeps an order, over the doubles; claims, turns and settlements are real.

A test accepts events, lets workers work and time pass, and looks at what was applied and at the
ledger. What the processor does around a turn is done here in a few lines.
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timedelta
from typing import Any, Final

from tests.unit.support.world import World
from webhook_inbox import Deferred, Held, Permanent, Skipped
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import Run, Status, StoredEvent, WaitStrategy
from webhook_inbox.domain.ports import Change, Item, Key, Message
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.handlers.ordering.declaration import Ordering
from webhook_inbox.handlers.ordering.turns import Orders
from webhook_inbox.ledger.deadlines import VISIBILITY_TIMEOUT
from webhook_inbox.ledger.deferral import resume
from webhook_inbox.ledger.lease import Lease, NotClaimable, claim
from webhook_inbox.ledger.schema import run_from, run_key
from webhook_inbox.ledger.settle import LeaseLost, Settlement, as_seen, settle
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.visibility import ceil_seconds, plan_wait

HANDLER: Final = "shop.sync"
SOURCE: Final = "shop"
VISIBILITY: Final = ceil_seconds(VISIBILITY_TIMEOUT)
ENDED: Final = {Status.DONE, Status.SKIPPED, Status.DEAD_LETTER, Status.HELD}


class Killed(BaseException):
    """The worker was killed: nothing of it runs any more."""


class Stage:
    """A handler, its lane and its ledger.

    Attributes:
        applied: (event id, body) of each attempt whose handler came to its end.
        act: what the handler does.
        settling: called between a turn and its settlement.
        open: turns whose workers were lost, in the order in which they began.
    """

    def __init__(self, ordering: Ordering, *, seed: int = 0) -> None:
        self.ordering = ordering
        world = World(seed=seed)
        self.clock, self.table = world.clock, world.table
        self.randomness, self.lanes = world.randomness, world.lanes
        self.queue = world.queues["default"]
        self.orders = Orders(world.ports)
        self.spec = HandlerSpec(HANDLER, "m", "f", SOURCE, ("*",), order=ordering.order)
        self.bodies: dict[str, Any] = {}
        self.applied: list[tuple[str, Any]] = []
        self.act: Callable[[str, Any], None] = lambda *_: None
        self.settling: Callable[[], None] = lambda: None
        self.open: list[AbstractContextManager[None]] = []

    # -- events

    def accept(self, event_id: str, body: Any) -> None:
        """Accepts an event, and sends its run's first message."""
        self.bodies[event_id] = body
        self.send(event_id)

    def event(self, event_id: str) -> StoredEvent:
        """Returns an event's record."""
        body = json.dumps(self.bodies[event_id]).encode()
        received = self.clock.now()
        return StoredEvent(SOURCE, event_id, "t", received, body, "", {}, (HANDLER,))

    def send(self, event_id: str, generation: int = 0) -> None:
        """Sends a message of a run."""
        self.lanes.send([("default", RunMessage(SOURCE, event_id, HANDLER, generation))])

    # -- workers

    def claimed(self, message: Message) -> Run:
        """Claims a message's run."""
        reference = RunMessage.decode(message.body)
        until = self.clock.now() + timedelta(seconds=65)
        return claim(
            self.table,
            event=self.event(reference.event_id),
            spec=self.spec,
            generation=reference.generation,
            message=message,
            lease=Lease(self.randomness.token(), "worker", until, "v1"),
            now=self.clock.now(),
        )

    def receive(self) -> Message | None:
        """Receives a message, None if none is visible."""
        return next(iter(self.queue.receive(1, hidden_for=VISIBILITY)), None)

    def work_once(self) -> bool:
        """Lets a worker receive one message and do what it asks for; False if there is none."""
        try:
            message = self.receive()
        except Unavailable:
            return True  # the poller comes again
        if message is None:
            return False
        with suppress(Unavailable, LeaseLost, Killed):
            try:
                run = self.claimed(message)
            except NotClaimable:
                self.queue.delete(message.receipt)
                return True
            self.attempt(run, message)
            self.queue.delete(message.receipt)
        return True

    def attempt(self, run: Run, message: Message) -> BaseException | None:
        """Does what the processor does with a claimed run; returns what the attempt ended in."""
        error = self.turn(run)
        self.settling()
        settled = settle(self.table, run, self._settlement(error), sent_at=message.sent_at)
        self.orders.settled(error, settled, lane="default")
        if settled.status in {Status.DEFERRED, Status.FAILED} and not settled.parked:
            assert settled.next_attempt_at is not None
            left = max(settled.next_attempt_at - self.clock.now(), timedelta(0))
            reference = RunMessage(SOURCE, run.event_id, HANDLER, settled.generation)
            self.lanes.send([("default", reference)], delay=ceil_seconds(left))
        return error

    def begin(self, event_id: str, body: Any) -> Run:
        """Lets a worker begin a run and be lost in its handler; raises what its turn does."""
        self.accept(event_id, body)
        message = self.receive()
        assert message is not None
        run = self.claimed(message)
        turn = self.orders.turn(
            self.spec, run, body, backfill=self.ordering.backfill, lane="default"
        )
        turn.__enter__()
        self.open.append(turn)
        return run

    def turn(self, run: Run) -> BaseException | None:
        """Runs the handler in its turn, and returns what came out."""
        body, backfill = self.bodies[run.event_id], self.ordering.backfill
        try:
            with self.orders.turn(self.spec, run, body, backfill=backfill, lane="default"):
                self.act(run.event_id, body)
                self.applied.append((run.event_id, body))
        except Exception as error:  # noqa: BLE001 - as the processor does
            return error
        return None

    def _settlement(self, error: BaseException | None) -> Settlement:
        now, why = self.clock.now(), str(error or "")
        match error:
            case None:
                return Settlement(Status.DONE, "done", now)
            case Skipped():
                return Settlement(Status.SKIPPED, "skipped", now, why)
            case Held():
                held = {"subject": error.subject, "shows": error.shows}
                return Settlement(Status.HELD, "held", now, why, spent=False, held=held)
            case Permanent():
                return Settlement(Status.DEAD_LETTER, "dead", now, why)
            case Deferred():
                chosen = plan_wait(error.until - now)
                wait = WaitStrategy.PARKED if error.parked else chosen.wait
                due = max(error.until, now + timedelta(seconds=1))
                return Settlement(
                    Status.DEFERRED,
                    "deferred",
                    now,
                    why,
                    due,
                    wait,
                    spent=False,
                    waits_for=error.waits_for,
                )
        due = now + timedelta(seconds=10)
        return Settlement(Status.FAILED, "failed", now, why, due, WaitStrategy.COPY)

    def work(self) -> None:
        """Works on all that is visible now."""
        while self.work_once():
            pass

    # -- time

    def reconcile(self) -> None:
        """Sends what is parked and due, and sends again what was not heard of."""
        now = self.clock.now()
        for row in self.rows():
            if "due_bucket" not in row or row["due_at"] > to_ms(now):
                continue
            run = run_from(row)
            if run.parked:
                resume(self.table, run, unchanged=as_seen(run), now=now)
                self.send(run.event_id, run.generation)
            elif run.status not in ENDED:
                again = {"due_at": to_ms(now + timedelta(minutes=15))}
                self.table.update(Key(row["pk"], row["sk"]), Change(set=again), when=as_seen(run))
                self.send(run.event_id, run.generation)

    def run_until_quiet(self, *, steps: int = 3000) -> None:
        """Jumps from one due time to the next until every run has ended and no message waits."""
        for _ in range(steps):
            self.work()
            if not len(self.queue) and all(run.status in ENDED for run in self.runs().values()):
                return
            self._jump()
            with suppress(Unavailable):
                self.reconcile()
        raise AssertionError(f"not quiet after {steps} steps: {self.statuses()}")

    def _jump(self) -> None:
        visible = self.queue.next_visible_at()
        times = [from_ms(visible)] if visible is not None else []
        times += [from_ms(row["due_at"]) for row in self.rows() if "due_bucket" in row]
        self.clock.advance(seconds=max(0.001, (min(times) - self.clock.now()).total_seconds()))

    # -- people

    def replay(self, event_id: str, *, forced: bool = False) -> None:
        """Lets an operator replay a run."""
        run, at = self.run(event_id), to_ms(self.clock.now())
        entry: dict[str, Any] = {"id": "r", "at": at, "by": "op", "reason": ""}
        change = Change(
            set={
                "status": str(Status.PENDING),
                "generation": run.generation + 1,
                "replays": [entry | ({"forced": True} if forced else {})],
            },
            remove=("lease_id", "next_attempt_at", "parked"),
        )
        self.table.update(run_key(SOURCE, event_id, HANDLER), change)
        self.send(event_id, run.generation + 1)

    def approve(self, event_id: str) -> None:
        """Lets a person approve what a run is held for."""
        run = self.run(event_id)
        assert run.status is Status.HELD
        change = Change(
            set={
                "status": str(Status.PENDING),
                "generation": run.generation + 1,
                "approvals": {run.held["subject"]: {"by": "op"}},
                "resumed_at": to_ms(self.clock.now()),
            },
            remove=("held",),
        )
        self.table.update(run_key(SOURCE, event_id, HANDLER), change)
        self.send(event_id, run.generation + 1)

    # -- looking

    def rows(self) -> list[Item]:
        """Returns the rows of all runs that have one, without a call."""
        keys = [run_key(SOURCE, event_id, HANDLER) for event_id in self.bodies]
        found = [self.table._rows.get(key.pk, {}).get(key.sk) for key in keys]
        return [row for row in found if row is not None]

    def runs(self) -> dict[str, Run]:
        """Returns the runs that have a row, by event."""
        return {row["event_id"]: run_from(row) for row in self.rows()}

    def run(self, event_id: str) -> Run:
        """Returns a run; it has to have a row."""
        return self.runs()[event_id]

    def statuses(self) -> dict[str, str]:
        """Returns each run's status, and why it has it."""
        return {k: f"{run.status}: {run.last_error}" for k, run in self.runs().items()}

    def state(self, ordering_key: str) -> Item:
        """Returns an ordering key's state, {} if there is none."""
        rows = [row for row in self.table if row["pk"] == f"ordering_key#{HANDLER}#{ordering_key}"]
        return next((row for row in rows if row["sk"].startswith("state")), {})

    def waiters(self) -> list[int]:
        """Returns the numbers that wait."""
        return [row["number"] for row in self.table if row["sk"].startswith("waiter#")]

    def order(self) -> list[str]:
        """Returns the events that were applied, in order."""
        return [event_id for event_id, _ in self.applied]

    def now(self) -> datetime:
        """The time."""
        return self.clock.now()
