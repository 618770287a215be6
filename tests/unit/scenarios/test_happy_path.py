"""The good path, end to end: delivered, stored, sent, handled once, done."""

from tests.unit.support.world import BODY, World
from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.model import EventStatus, Status
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.queue.outcomes import RunOutcome


def test_a_delivery_is_handled_once_and_done(world: World) -> None:
    receipt = world.deliver()

    assert (receipt.outcome, receipt.status) == (IngestOutcome.ACCEPTED, 202)
    assert world.work() == [RunOutcome.DONE]
    assert world.handled == [("acme.fulfil", "evt-1", 1)]
    assert world.overview().status is EventStatus.DONE
    assert world.messages() == []


def test_the_common_path_costs_two_calls_at_ingest_and_two_writes_at_work(world: World) -> None:
    world.deliver()
    world.plan.operations()
    world.deliver("evt-2")
    assert world.plan.operations() == ["PutItem", "SendMessageBatch"]

    # A worker reads the pause of its handler once in five seconds.
    world.work_once()
    assert world.plan.operations() == ["ReceiveMessage", "GetItem", "GetItem", "UpdateItem",
                                       "UpdateItem", "DeleteMessage"]  # fmt: skip
    world.work_once()
    assert world.plan.operations() == ["ReceiveMessage", "GetItem", "UpdateItem", "UpdateItem",
                                       "DeleteMessage"]  # fmt: skip


def test_the_handler_is_given_the_bytes_as_sent(world: World) -> None:
    seen: list[bytes] = []
    world.behaviours["acme.fulfil"] = lambda event, ctx: seen.append(event.body)
    world.deliver()
    world.work()
    assert seen == [BODY]


def test_two_sources_do_not_share_ids(world: World) -> None:
    world.deliver("same", source="acme")
    world.deliver("same", source="github")
    world.work()
    assert {name for name, _, _ in world.handled} == {"acme.fulfil", "github.announce"}


def test_a_failure_heals_without_help(world: World) -> None:
    world.script("acme.fulfil", Transient("down"), Transient("still down"))
    world.deliver()
    world.run_until_quiet()
    assert world.run().status is Status.DONE
    assert world.run().attempt_count == 3


def test_the_row_of_a_done_run_has_left_the_due_index(world: World) -> None:
    world.script("acme.fulfil", Transient("down"))
    world.deliver()
    world.run_until_quiet()
    row = world.row()
    assert row is not None
    assert "due_bucket" not in row
    assert "due_at" not in row


def test_an_event_without_handlers_is_stored_and_skipped(world: World) -> None:
    receipt = world.deliver(type_="refunded")
    assert receipt.status == 202
    assert receipt.handlers == ()
    assert world.overview().status is EventStatus.SKIPPED
    assert world.messages() == []
