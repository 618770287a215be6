"""Deliveries of one event that arrive in the same millisecond: equal but for their request's id."""

from dataclasses import replace

from tests.unit.support.world import World
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.ingest.receipt import IngestOutcome


def test_one_of_them_is_accepted_and_the_others_are_duplicates(world: World) -> None:
    delivery = world.delivery()

    receipts = [
        world.ingest.receive(replace(delivery, request_id=request_id))
        for request_id in ("request-1", "request-2", "request-3")
    ]

    assert [receipt.outcome for receipt in receipts] == [
        IngestOutcome.ACCEPTED,
        IngestOutcome.DUPLICATE,
        IngestOutcome.DUPLICATE,
    ]
    assert [receipt.status for receipt in receipts] == [202, 200, 200]
    world.run_until_quiet()
    assert world.overview("evt-1", "acme").status is EventStatus.DONE
    assert len(world.handled) == 1


def test_the_same_with_a_body_that_lies_apart(world: World) -> None:
    large = b"".join(world.randomness.token().encode() for _ in range(2000))
    delivery = world.delivery(body=large)

    receipts = [
        world.ingest.receive(replace(delivery, request_id=request_id))
        for request_id in ("request-1", "request-2")
    ]

    assert [receipt.outcome for receipt in receipts] == [
        IngestOutcome.ACCEPTED,
        IngestOutcome.DUPLICATE,
    ]


def test_a_row_that_this_very_request_has_written_is_its_own(world: World) -> None:
    """The SDK repeats a call whose answer was lost, and meets the row of its first try."""
    delivery = replace(world.delivery(), request_id="request-1")
    world.ingest.receive(delivery)
    world.drop_messages()

    receipt = world.ingest.receive(delivery)

    assert receipt.outcome is IngestOutcome.ACCEPTED
    assert len(world.messages()) == 1
