"""Each AWS call of ingest fails, before and after its effect: nothing is lost, nothing doubled.

The provider is honest: whatever is not a 2xx it sends again.
"""

import pytest

from tests.unit.support.world import World, handler, with_handlers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.ingest.receipt import IngestOutcome

LARGE = bytes(range(256)) * 64
BOTH = pytest.mark.parametrize("fault", list(Fault))


def noise(world: World) -> bytes:
    return b"".join(world.randomness.token().encode() for _ in range(2000))


def finish(world: World, event_id: str = "evt-1", source: str = "acme") -> None:
    world.run_until_quiet()
    assert world.overview(event_id, source).status is EventStatus.DONE
    assert len({run for run, _, _ in world.handled}) == len(world.handled)


@BOTH
@pytest.mark.parametrize("operation", ["PutItem", "SendMessageBatch", "GetSecretValue"])
def test_a_failed_call_is_a_503_and_the_retry_heals_it(
    world: World, operation: str, fault: Fault
) -> None:
    world.plan.fail(operation, fault)
    receipt = world.deliver()
    assert (receipt.outcome, receipt.status) == (IngestOutcome.UNAVAILABLE, 503)
    assert operation in receipt.detail

    assert world.deliver().status in {200, 202}
    finish(world)


@BOTH
@pytest.mark.parametrize("skip", [0, 1])
def test_a_guarded_source_heals_too(world: World, skip: int, fault: Fault) -> None:
    world.plan.fail("PutItem", fault, skip=skip)
    assert world.deliver("g", source="github").status == 503
    assert world.deliver("g", source="github").status in {200, 202}
    finish(world, "g", "github")


@BOTH
@pytest.mark.parametrize("operation", ["GetItem", "PutObject", "PutItem", "SendMessageBatch"])
def test_a_large_body_heals_too(world: World, operation: str, fault: Fault) -> None:
    body = noise(world)
    world.plan.fail(operation, fault)
    assert world.deliver(body=body).status == 503
    assert world.deliver(body=body).status in {200, 202}
    finish(world)
    assert world.body() == body


@BOTH
@pytest.mark.parametrize("operation", ["PutItem", "Query", "SendMessageBatch"])
def test_a_duplicate_whose_calls_fail_is_a_503(world: World, operation: str, fault: Fault) -> None:
    world.deliver()
    world.plan.fail(operation, fault)
    assert world.deliver().status == 503
    assert world.deliver().status == 200
    finish(world)


@BOTH
def test_a_conflict_that_cannot_be_kept_is_a_503(world: World, fault: Fault) -> None:
    world.deliver()
    world.plan.fail("PutItem", fault, skip=1)
    assert world.deliver(body=b"other").status == 503
    assert world.deliver(body=b"other").status == 409
    assert len(world.rows("conflict#")) == 1


def test_a_message_that_the_queue_does_not_take_is_a_503() -> None:
    world = World(with_handlers(handler("acme.a"), handler("acme.b")))
    world.queues["default"].refuses = lambda message: "acme.b" in message.body
    receipt = world.deliver()
    assert receipt.status == 503
    assert "1 of 2 messages not taken" in receipt.detail

    world.queues["default"].refuses = lambda message: False
    assert world.deliver().status == 200
    finish(world)


def test_no_delivery_is_acknowledged_while_the_table_is_down(world: World) -> None:
    world.plan.fail("PutItem", times=1000)
    assert {world.deliver(f"evt-{n}").status for n in range(5)} == {503}
    assert list(world.table) == []


def test_a_crash_between_put_and_send_heals_without_the_provider(world: World) -> None:
    world.plan.fail("SendMessageBatch")
    world.deliver()
    assert world.messages() == []
    finish(world)


def test_a_crash_between_put_and_send_heals_by_the_providers_retry_at_once(world: World) -> None:
    world.plan.fail("SendMessageBatch")
    world.deliver()
    world.deliver()
    world.work()
    assert world.overview().status is EventStatus.DONE


def test_a_put_that_the_sdk_tried_twice_is_still_a_new_event(world: World) -> None:
    """The first try stored the row and its answer was lost; the second meets that very row."""
    put, tries = world.table.put, []

    def twice(item: dict[str, object], **parts: object) -> None:
        tries.append(item)
        put(item)
        put(item, **parts)  # type: ignore[arg-type]

    world.table.put = twice  # type: ignore[method-assign,assignment]
    receipt = world.deliver()
    assert receipt.outcome is IngestOutcome.ACCEPTED
    assert len(world.messages()) == 1
    assert len(tries) == 1


def test_a_lane_whose_queue_fails_after_another_took_its_message_is_a_503() -> None:
    world = World(with_handlers(handler("acme.a"), handler("acme.b", lane="slow")))
    world.queues["slow"].refuses = _everything
    assert world.deliver().status == 503
    world.queues["slow"].refuses = lambda _: False
    assert world.deliver().status == 200
    finish(world)


def _everything(_: Outgoing) -> bool:
    return True
