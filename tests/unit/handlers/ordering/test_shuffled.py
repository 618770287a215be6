"""Whatever order events come in and whatever fails on the way: they are applied in theirs.

The same seed gives the same shuffle and the same faults: calls that fail before or after their
effect, workers that are killed, messages that come twice. Then all heals and runs to its end.
"""

from collections import defaultdict
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from tests.unit.handlers.ordering.stage import Killed, Stage
from webhook_inbox import Transient, latest, sequence
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.adapters.memory.system import START
from webhook_inbox.domain.model import Status
from webhook_inbox.handlers.ordering.declaration import Ordering

ORDERING_KEYS = ("a", "b", "c", "d", "e")
EACH = 40


class Trouble:
    """Fails calls, handlers and workers at random until it is over."""

    def __init__(self, seed: int, share: float) -> None:
        self.dice = Random(seed)
        self.share = share

    def call(self, service: str, operation: str) -> Fault | None:
        return self.dice.choice(list(Fault)) if self.dice.random() < self.share else None

    def handler(self, event_id: str, body: Any) -> None:
        luck = self.dice.random()
        if luck < self.share:
            raise Killed
        if luck < 2 * self.share:
            raise Transient("down")


def shuffled(ordering: Ordering, seed: int, share: float) -> Stage:
    """Accepts 200 events of five ordering keys in any order and works on them while all fails."""
    trouble = Trouble(seed, share)
    stage = Stage(ordering, seed=seed)
    bodies = [(f"{e}-{n}", {"id": e, "n": n}) for n in range(1, EACH + 1) for e in ORDERING_KEYS]
    trouble.dice.shuffle(bodies)
    for event_id, body in bodies:
        stage.accept(event_id, body)
        if share and trouble.dice.random() < 0.1:
            stage.send(event_id)  # at least once, says SQS
    stage.table.faults = stage.queue.faults = trouble.call
    stage.act = trouble.handler
    for _ in range(len(bodies)):
        stage.work_once()
        stage.clock.advance(seconds=trouble.dice.choice([0, 0, 1, 5, 30]))
    trouble.share = 0.0
    stage.run_until_quiet(steps=20_000)
    return stage


def by_ordering_key(stage: Stage) -> dict[str, list[int]]:
    applied: dict[str, list[int]] = defaultdict(list)
    for _, body in stage.applied:
        applied[body["id"]].append(body["n"])
    return applied


@pytest.mark.parametrize("share", [0.0, 0.03, 0.15])
@pytest.mark.parametrize("seed", range(6))
def test_a_sequence_is_applied_from_first_to_last(seed: int, share: float) -> None:
    # Without faults nothing may wait for the time-out, so it is one that the test would notice.
    timeout = "24h" if share else "672h"
    stage = shuffled(sequence("id", "n", timeout=timeout), seed, share)
    for applied in by_ordering_key(stage).values():
        assert sorted(set(applied)) == list(range(1, EACH + 1))
        # An attempt that could not record that it was done is done again, and no other.
        assert applied == sorted(applied)
        if not share:
            assert applied == list(range(1, EACH + 1))
    assert len(by_ordering_key(stage)) == len(ORDERING_KEYS)
    assert {run.status for run in stage.runs().values()} <= {Status.DONE, Status.SKIPPED}
    if not share:
        assert stage.now() - START < timedelta(hours=1)
        assert stage.waiters() == []


@pytest.mark.parametrize("share", [0.0, 0.03, 0.15])
@pytest.mark.parametrize("seed", range(6))
def test_of_the_latest_none_is_older_than_the_one_before(seed: int, share: float) -> None:
    stage = shuffled(latest("id", "n"), seed, share)
    for ordering_key, applied in by_ordering_key(stage).items():
        assert applied == sorted(applied)
        assert applied[-1] == EACH
        assert stage.state(ordering_key)["applied"] == str(EACH)
        if not share:
            assert len(applied) == len(set(applied))
    assert {run.status for run in stage.runs().values()} <= {Status.DONE, Status.SKIPPED}
