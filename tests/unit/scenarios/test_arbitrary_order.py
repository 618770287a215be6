"""Whatever fails in whatever order: nothing acknowledged is lost, nothing runs twice at once.

A small random walk over the doubles, the same for the same seed: deliveries, workers that are
killed, lost messages, failing calls, replays, redrives and two reconcilers. Then all heals, and
every acknowledged event has to end by itself (G1, G2, G3, G5).
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from random import Random

import pytest

from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Deferred, Permanent, Transient, Unavailable
from webhook_inbox.domain.model import EventStatus, Status
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event

MANIFEST = with_handlers(
    handler("acme.fulfil", max_attempts=4),
    handler("acme.mail", "paid", max_attempts=3, lane="slow"),
    handler("github.announce", source="github", max_attempts=3),
)


class Walk:
    """One walk: `chaos` is the share of calls that fail, 0 once all has healed."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.world = World(MANIFEST, seed=seed)
        self.chaos = self.dice.choice([0.0, 0.02, 0.1, 0.3])
        self.calm = False
        self.acknowledged: set[tuple[str, str]] = set()
        self.running: set[tuple[str, str]] = set()
        self.finished: list[tuple[str, str]] = []
        world = self.world
        for double in (world.table, world.blobs, world.vault, *world.queues.values()):
            double.faults = self._fault
        world.table.lag = self._lag
        world.behaviours = dict.fromkeys(MANIFEST.handlers, self._handle)

    def step(self) -> None:
        steps: list[tuple[Callable[[], object], int]] = [
            (self._deliver, 25),
            (self._work, 35),
            (lambda: self.world.reconcile(seconds=self.dice.choice([12, 300])), 10),
            (self._replay, 5),
            (self.world.redrive, 3),
            (self._lose_messages, 2),
            (self._pass_time, 20),
        ]
        (step,) = self.dice.choices([s for s, _ in steps], [weight for _, weight in steps])
        with suppress(Unavailable):
            step()

    def heal(self) -> None:
        self.calm = True
        self.world.run_until_quiet(steps=20_000)

    def _fault(self, service: str, operation: str) -> Fault | None:
        if self.calm or self.dice.random() >= self.chaos:
            return None
        return self.dice.choice(list(Fault))

    def _lag(self, unseen: int) -> int:
        return 0 if self.calm else self.dice.choice([0, self.dice.randint(0, unseen)])

    def _handle(self, event: Event, ctx: Context) -> None:
        run = (ctx.handler, event.id)
        assert run not in self.running, "two attempts of one run at once (G2)"
        self.running.add(run)
        try:
            self._misbehave()
        finally:
            self.running.remove(run)

    def _misbehave(self) -> None:
        luck = 1.0 if self.calm else self.dice.random()
        wait = timedelta(seconds=self.dice.choice([0, 30, 100, 2_000, 90_000]))
        if luck < 0.15:
            raise Transient("down", retry_after=wait)
        if luck < 0.2:
            raise Permanent("no such order")
        if luck < 0.3:
            raise Deferred(self.world.now + wait)
        if luck < 0.33:
            self.world.clock.advance(seconds=55)

    def _deliver(self) -> None:
        source = self.dice.choice(["acme", "github"])
        event_id = f"{source}-{self.dice.randint(0, 6)}"
        body = b'{"id": "%s"}' % event_id.encode()
        if self.world.deliver(event_id, source=source, body=body).status < 300:
            self.acknowledged.add((source, event_id))

    def _work(self) -> None:
        lane = self.dice.choice(list(self.world.queues))
        message = self.world.receive(lane)
        if message is None:
            return
        result = self.world.process(message, by=f"worker-{self.dice.randint(1, 3)}", lane=lane)
        killed_before_the_deletion = self.dice.random() < 0.15
        if not result.keeps_message and not killed_before_the_deletion:
            self.world.queues[lane].delete(message.receipt)

    def _replay(self) -> None:
        self.world.replay(**self.dice.choice([{}, {"limit": 1}, {"event_ids": ["acme-1"]}]))

    def _lose_messages(self) -> None:
        for queue in self.world.queues.values():
            for id_ in list(queue._messages):
                if self.dice.random() < 0.3:
                    del queue._messages[id_]

    def _pass_time(self) -> None:
        self.world.clock.advance(seconds=self.dice.choice([1, 30, 60, 361, 900, 3600]))


@pytest.mark.parametrize("seed", range(12))
def test_every_acknowledged_event_ends_by_itself(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(walk.dice.randint(10, 120)):
        walk.step()
    walk.heal()
    for source, event_id in walk.acknowledged:
        overview = walk.world.overview(event_id, source)
        assert overview.status in {EventStatus.DONE, EventStatus.DEAD_LETTER}
        for run in overview.runs:
            numbers = [attempt.number for attempt in run.attempts]
            assert numbers == sorted(set(numbers))
            if run.status is Status.DONE:
                assert not run.in_due_index
                assert numbers[-1] == run.attempt_count
