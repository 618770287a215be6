"""Workers that run at once: whichever way their calls interleave, the order holds.

Each worker is a thread, and one runs at a time: at every call of the ledger or the queue, and in
the middle of a handler, a die says who goes on. The same seed gives the same interleaving.
"""

from collections.abc import Callable
from datetime import timedelta
from random import Random
from threading import Semaphore, Thread, get_ident
from typing import Any

import pytest

from tests.unit.handlers.ordering.stage import Stage
from tests.waiting import DEADLINE
from webhook_inbox import latest, sequence
from webhook_inbox.adapters.memory.system import START
from webhook_inbox.domain.model import Status
from webhook_inbox.handlers.ordering.declaration import Ordering

WORKERS = 3


class Interleaving:
    """Lets threads go on one at a time, from one call to the next."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.control = Semaphore(0)
        self.waiting: dict[int, Semaphore] = {}
        self.errors: list[BaseException] = []

    def pause(self, service: str = "", operation: str = "") -> None:
        """Lets another worker go on; does nothing outside of `run`."""
        gate = self.waiting.get(get_ident())
        if gate is not None:
            self.control.release()
            assert gate.acquire(timeout=DEADLINE)

    def run(self, work: Callable[[], Any]) -> None:
        """Runs `work` in every worker until all have come to its end."""
        threads = [Thread(target=self._begin, args=(work,)) for _ in range(WORKERS)]
        for thread in threads:
            thread.start()
            assert self.control.acquire(timeout=DEADLINE)
        while self.waiting:
            self.dice.choice(list(self.waiting.values())).release()
            assert self.control.acquire(timeout=DEADLINE)
        for thread in threads:
            thread.join(DEADLINE)
        if self.errors:
            raise self.errors[0]

    def _begin(self, work: Callable[[], Any]) -> None:
        self.waiting[get_ident()] = Semaphore(0)
        try:
            self.pause()
            work()
        except BaseException as error:  # noqa: BLE001 - raised by `run`
            self.errors.append(error)
        finally:
            del self.waiting[get_ident()]
            self.control.release()


def interleaved(ordering: Ordering, seed: int) -> Stage:
    """Processes eight events of one ordering key, two alike, by three workers, and then all."""
    stage, interleaving = Stage(ordering, seed=seed), Interleaving(seed)
    busy: list[str] = []

    def act(event_id: str, body: Any) -> None:
        assert busy == [], "two runs of one ordering key at once"
        busy.append(event_id)
        interleaving.pause()
        busy.remove(event_id)

    stage.act = act
    numbers = [1, 2, 3, 4, 5, 6, 7, 7]
    interleaving.dice.shuffle(numbers)
    for place, number in enumerate(numbers):
        stage.accept(f"{place}-{number}", {"id": "a", "n": number})
    stage.table.faults = stage.queue.faults = interleaving.pause
    interleaving.run(stage.work)
    stage.run_until_quiet()
    return stage


@pytest.mark.parametrize("seed", range(40))
def test_a_sequence_is_applied_from_first_to_last_and_no_wake_is_lost(seed: int) -> None:
    stage = interleaved(sequence("id", "n"), seed)
    assert [body["n"] for _, body in stage.applied] == [1, 2, 3, 4, 5, 6, 7]
    assert stage.now() - START < timedelta(minutes=5), "a run that was not woken looks after 15"


@pytest.mark.parametrize("seed", range(40))
def test_of_the_latest_none_is_older_than_the_one_before(seed: int) -> None:
    stage = interleaved(latest("id", "n"), seed)
    versions = [body["n"] for _, body in stage.applied]
    assert versions == sorted(versions)
    assert versions[-2:] == [7, 7]
    ended = {run.status for run in stage.runs().values()}
    assert ended <= {Status.DONE, Status.SKIPPED}
