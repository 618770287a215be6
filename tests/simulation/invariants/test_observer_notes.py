"""The observer notes the effects of a world."""

from typing import Any

import pytest

from simulation.invariants.observer import Observer
from simulation.worlds.builders import FIRST
from tests.simulation.tiny import RUN
from webhook_inbox.domain.ports import Item
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.queue.message import RunMessage

EVENT = RUN[:2]
REFERENCE = RunMessage(*RUN)
ROW: Item = {"source": "acme", "event_id": "e1", "runs": ["mail"]}


def told(**notes: Any) -> Observer:
    """Returns the notes of a world in which the first webhook is stored and sent."""
    return Observer(**{"contents": {EVENT: FIRST.body}, "sends": {RUN: 1}, **notes})


def test_acknowledged_deliveries_are_noted_and_others_are_not() -> None:
    observer = told()
    observer.answered(FIRST, Receipt(IngestOutcome.UNAVAILABLE, 503), None)
    assert observer.acknowledged == set()
    observer.answered(FIRST, Receipt(IngestOutcome.ACCEPTED, 200), ROW)
    assert observer.acknowledged == {EVENT}


@pytest.mark.parametrize(
    ("row", "redriven_runs"),
    [
        (None, {}),
        ({"status": "done", "attempt_count": 1}, {}),
        ({"status": "dead_letter", "attempt_count": 2, "generation": 3}, {}),
        ({"status": "dead_letter", "attempt_count": 2}, {RUN: 2}),
    ],
)
def test_only_a_redriven_dead_run_must_be_attempted_again(
    row: Item | None, redriven_runs: Any
) -> None:
    observer = told()
    observer.redriven(REFERENCE, row)
    assert observer.redriven_runs == redriven_runs


def test_notes_are_copied_whole_and_told_apart() -> None:
    observer = told()
    copy = observer.copy()
    assert copy == observer
    assert copy.key() == observer.key()
    for name in Observer.__slots__:
        changed = observer.copy()
        notes: Any = getattr(changed, name)
        if isinstance(notes, dict):
            notes["something"] = 1
        else:
            notes.add("something")
        assert changed.key() != copy.key()
        assert observer.key() == copy.key()


def test_expired_events_and_runs_are_forgotten() -> None:
    observer = told(acknowledged={EVENT}, posts={RUN: 1}, succeeded={RUN}, spent={RUN: 2})
    observer.forget_event(EVENT)
    observer.forget_run(RUN)
    assert (observer.acknowledged, observer.contents) == (set(), {})
    assert (observer.posts, observer.succeeded, observer.spent) == ({}, set(), {})
