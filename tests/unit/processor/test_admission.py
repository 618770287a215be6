"""Admission of a run whose destination has no room for it."""

from dataclasses import replace

import pytest

from tests.unit.support.world import MANIFEST, World, handler
from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.manifest import Backoff, DestinationSpec
from webhook_inbox.domain.model import Status
from webhook_inbox.queue.outcomes import RunOutcome

NAME = "acme.fulfil"


def world(on_limit: str) -> World:
    """Returns an inbox whose only destination takes one call a minute."""
    crm = DestinationSpec("crm", "https://crm.example", rate=1 / 60, on_limit=on_limit)
    quick = Backoff(base=1, factor=1, cap=1)
    fulfil = handler(NAME, "paid", destinations=("crm",), backoff=quick, max_attempts=3)
    return World(replace(MANIFEST, handlers={NAME: fulfil}, destinations={"crm": crm}))


@pytest.mark.parametrize(
    ("on_limit", "outcome"),
    [("drop", RunOutcome.SKIPPED), ("error", RunOutcome.FAILED), ("queue", RunOutcome.DEFERRED)],
)
def test_a_run_over_the_rate_ends_as_its_destination_says(
    on_limit: str, outcome: RunOutcome
) -> None:
    inbox = world(on_limit)
    for event_id in ("evt-1", "evt-2"):
        inbox.deliver(event_id)

    assert inbox.work() == [RunOutcome.DONE, outcome]
    assert [event_id for _, event_id, _ in inbox.handled] == ["evt-1"]


def test_a_run_that_was_begun_is_not_dropped_any_more() -> None:
    inbox = world("drop")
    inbox.script(NAME, Transient("it may have happened"))
    inbox.deliver()
    inbox.work()
    inbox.clock.advance(seconds=2)

    inbox.work()

    assert inbox.run().status is Status.FAILED
    assert "over its rate" in inbox.run().last_error
    inbox.run_until_quiet()
    assert inbox.run().status is Status.DONE
