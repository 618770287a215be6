"""What the world notes of what happens in it."""

from typing import Any

import pytest

from simulation.invariants.observer import Truth
from simulation.worlds.builders import FIRST
from tests.simulation.tiny import RUN
from webhook_inbox.domain.ports import Item
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.queue.message import RunMessage

EVENT = RUN[:2]
REFERENCE = RunMessage(*RUN)
ROW: Item = {"source": "acme", "event_id": "e1", "runs": ["mail"]}


def told(**notes: Any) -> Truth:
    """Returns the notes of a world in which the first letter is stored and sent."""
    return Truth(**{"contents": {EVENT: FIRST.body}, "sends": {RUN: 1}, **notes})


def test_what_is_acknowledged_is_noted_and_what_is_refused_is_not() -> None:
    truth = told()
    truth.answered(FIRST, Receipt(IngestOutcome.UNAVAILABLE, 503), None)
    assert truth.acknowledged == set()
    truth.answered(FIRST, Receipt(IngestOutcome.ACCEPTED, 200), ROW)
    assert truth.acknowledged == {EVENT}


@pytest.mark.parametrize(
    ("row", "hopes"),
    [
        (None, {}),
        ({"status": "done", "attempt_count": 1}, {}),
        ({"status": "dead_letter", "attempt_count": 2, "generation": 3}, {}),
        ({"status": "dead_letter", "attempt_count": 2}, {RUN: 2}),
    ],
)
def test_only_the_dead_whose_message_is_redriven_may_hope(row: Item | None, hopes: Any) -> None:
    truth = told()
    truth.redriven(REFERENCE, row)
    assert truth.hopes == hopes


def test_notes_are_copied_whole_and_told_apart() -> None:
    truth = told()
    copy = truth.copy()
    assert copy == truth
    assert copy.key() == truth.key()
    for name in Truth.__slots__:
        changed = truth.copy()
        notes: Any = getattr(changed, name)
        if isinstance(notes, dict):
            notes["something"] = 1
        else:
            notes.add("something")
        assert changed.key() != copy.key()
        assert truth.key() == copy.key()


def test_what_has_expired_begins_anew() -> None:
    truth = told(acknowledged={EVENT}, posts={RUN: 1}, succeeded={RUN}, spent={RUN: 2})
    truth.forget_event(EVENT)
    truth.forget_run(RUN)
    assert (truth.acknowledged, truth.contents) == (set(), {})
    assert (truth.posts, truth.succeeded, truth.spent) == ({}, set(), {})
