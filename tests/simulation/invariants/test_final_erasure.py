"""Every delivered event of a converged world can be erased, and an incomplete erasure is seen."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import pytest

from simulation.engine import invocations
from simulation.engine.world import World
from simulation.invariants.convergence import converge
from simulation.invariants.observer import Violation
from simulation.worlds.builders import FIRST
from simulation.worlds.erased import STORED
from simulation.worlds.scenario import REFUSES, Budget
from tests.simulation.tiny import (
    INGEST,
    TINY,
    calls,
    finish,
    fresh,
    happens,
    ingested,
    one_step,
    up_to,
)
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Item
from webhook_inbox.ledger import erasure
from webhook_inbox.ledger.schema import event_key

LARGE: Final = replace(FIRST, padding=20_000, retries=False)
ERASING: Final = replace(TINY, webhooks=(LARGE,), budget=Budget(erasures=1, faults=1, ages=1))
DEADLY: Final = replace(ERASING, always={"mail": REFUSES})


def event_row(world: World) -> Item:
    row = world.aws.table.row(event_key(*FIRST.event))
    assert row is not None
    return row


def with_lost_row() -> World:
    """Returns a world whose only delivery stored an object and no row."""
    world = fresh(ERASING)
    invocations.deliver(world, LARGE)
    up_to(world, INGEST, lambda call: calls("put")(call) and bool(call) and call.port == "table")
    one_step(world, INGEST, "before")
    finish(world, INGEST)
    assert len(world.aws.blobs.objects) == 1
    return world


def test_the_events_of_a_world_with_erasures_are_erased_at_its_end() -> None:
    world = ingested(ERASING)
    converge(world)
    assert not world.aws.blobs.objects
    assert not event_row(world)["headers"]


def test_those_of_other_worlds_are_kept() -> None:
    world = ingested(replace(ERASING, budget=Budget()))
    converge(world)
    assert event_row(world)["headers"]
    assert len(world.aws.blobs.objects) == 1


def test_an_object_without_a_row_is_erased() -> None:
    world = with_lost_row()
    converge(world)
    assert not world.aws.blobs.objects
    assert world.observer.emptied == {FIRST.event}


def test_an_expired_event_is_erased() -> None:
    world = ingested(ERASING, deployments=(STORED,))
    happens(world, "ages", "43")
    converge(world)
    assert "erased_at" in event_row(world)
    assert not world.aws.blobs.objects


def always_arriving(_: object, now: datetime) -> datetime:
    return now + timedelta(minutes=1)


def no_text_erased(*_: object) -> list[str]:
    return []


def all_unfinished(_: object, runs: Iterable[Run]) -> list[str]:
    return [run.handler for run in runs]


FAULTS: Final[dict[str, tuple[str, Callable[..., object], str]]] = {
    "it never completes": ("_delivery_end", always_arriving, "may have a payload"),
    "a text stays": ("_forget_errors", no_text_erased, "quotes an erased payload"),
    "its run never ends": ("_forget_errors", all_unfinished, "may have texts of handlers"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_incomplete_erasure_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, wrong, text = FAULTS[name]
    monkeypatch.setattr(erasure, function, wrong)
    with pytest.raises(Violation, match=text) as violation:
        converge(ingested(DEADLY))
    assert violation.value.guarantee == "erasure"


@pytest.mark.parametrize("function", ["has_remains", "_delete_objects"])
def test_an_object_without_a_row_that_stays_is_seen(
    function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, function, lambda *_, **__: False)
    with pytest.raises(Violation, match="was erased, and S3 has"):
        converge(with_lost_row())
