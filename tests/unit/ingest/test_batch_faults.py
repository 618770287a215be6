"""Wherever splitting a batch is interrupted: no item is lost, and none runs twice."""

from datetime import timedelta

import pytest

from tests.unit.support.batches import Batches, mail, mails
from tests.unit.support.world import VISIBILITY
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.manifest import SPLIT
from webhook_inbox.domain.model import EventStatus, Status
from webhook_inbox.ingest import batches
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import RunOutcome

BOTH = pytest.mark.parametrize("fault", list(Fault))
# Three items with runs in two lanes: receive, read, claim, three rows, two sends, settle.
ITEMS = (mail("a"), mail("b", "bounce"), mail("c"))
CALLS = (
    "GetItem",
    "GetItem",
    "UpdateItem",
    "PutItem",
    "PutItem",
    "PutItem",
    *["SendMessageBatch"] * 2,
)
SETTLE = "UpdateItem"


@pytest.fixture
def world() -> Batches:
    return Batches()


def finish(world: Batches, batch: str, *ids: str) -> None:
    world.heal()
    world.run_until_quiet()
    world.all_done(batch, *(ids or "abc"))


def test_the_calls_are_those_that_are_failed_below(world: Batches) -> None:
    world.sent(*ITEMS)
    world.work_once()
    assert world.plan.operations() == ["ReceiveMessage", *CALLS, SETTLE, "DeleteMessage"]


@BOTH
@pytest.mark.parametrize("number", range(1, len(CALLS) + 2))
def test_a_call_that_fails_is_made_up_for(world: Batches, number: int, fault: Fault) -> None:
    batch = world.sent(*ITEMS)
    message = world.taken()
    left = iter(range(1, number))
    world.hook = lambda _: None if next(left, None) else (world.heal() or fault)

    world.process(message)

    finish(world, batch)
    world.handled_once(["b"], "mail.suppress")
    assert set(world.statuses().values()) == {EventStatus.DONE}


@BOTH
@pytest.mark.parametrize("number", range(1, len(CALLS) + 2))
def test_a_worker_that_is_killed_is_made_up_for(world: Batches, number: int, fault: Fault) -> None:
    batch = world.sent(*ITEMS)
    message = world.taken()
    died = world.dies_at(number, fault)

    world.process(message)

    assert died()
    finish(world, batch)
    world.handled_once(["b"], "mail.suppress")


@BOTH
@pytest.mark.parametrize("number", range(1, 10))
def test_a_second_attempt_that_is_killed_too_is_made_up_for(
    world: Batches, number: int, fault: Fault
) -> None:
    batch = world.sent(*ITEMS)
    world.dies_at(4, Fault.AFTER)  # one item is stored, none sent
    world.process(world.taken())
    world.heal()
    world.clock.advance(seconds=VISIBILITY)
    message = world.taken()
    died = world.dies_at(number, fault)

    world.process(message)

    assert died()
    finish(world, batch)


def test_failing_storage_costs_an_attempt_and_is_tried_again(world: Batches) -> None:
    batch = world.sent(*ITEMS)
    world.plan.fail("PutItem", skip=1)

    result = world.work_once()

    assert result is not None
    assert (result.outcome, result.keeps_message) == (RunOutcome.FAILED, False)
    run = world.split_of(batch)
    assert (run.status, run.attempt_count) == (Status.FAILED, 1)
    assert run.last_error == "dynamodb PutItem: did not answer (injected)"
    finish(world, batch)


def test_a_queue_that_takes_some_of_the_messages_is_asked_again(world: Batches) -> None:
    batch = world.sent(*mails(10))
    world.queues["default"].refuses = lambda message: "mail-1" in message.body

    world.work_once()

    world.queues["default"].refuses = lambda _: False
    assert world.split_of(batch).status is Status.FAILED
    assert "1 of 10 messages not taken" in world.split_of(batch).last_error
    finish(world, batch, *(f"mail-{n}" for n in range(10)))


@pytest.fixture
def _short_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "STRIDE", 10)


@pytest.mark.usefixtures("_short_strides")
def test_what_an_attempt_has_finished_is_not_done_again(world: Batches) -> None:
    batch = world.sent(*mails(25))
    world.plan.fail("PutItem", skip=23)
    world.work_once()
    assert world.split_of(batch).progress["next"] == 20
    world.plan.operations()

    world.heal()
    world.run_until_quiet()

    assert world.plan.operations().count("PutItem") == 5
    assert world.counts_of(batch) == {"accepted": 22, "duplicate": 3}
    finish(world, batch, *(f"mail-{n}" for n in range(25)))


@pytest.mark.usefixtures("_short_strides")
def test_an_attempt_whose_time_is_up_in_a_call_goes_on_as_well(world: Batches) -> None:
    batch = world.sent(*mails(15))
    left = iter(range(12))
    world.hook = lambda operation: (
        None if operation != "PutItem" or next(left, None) is not None else stall()
    )

    def stall() -> None:
        world.heal()
        world.clock.advance(seconds=55)

    result = world.work_once()

    assert result is not None
    assert world.split_of(batch).attempts[-1].outcome == "timed out"
    assert world.split_of(batch).progress["next"] == 13
    finish(world, batch, *(f"mail-{n}" for n in range(15)))


@pytest.mark.parametrize("number", range(1, len(CALLS) + 2))
def test_a_worker_that_outlives_its_lease_meets_its_successor(world: Batches, number: int) -> None:
    """Not even the zombie's calls after the successor's do harm."""
    batch = world.sent(*ITEMS)
    zombies = world.taken()
    left = iter(range(1, number))

    def hook(_: str) -> None:
        if next(left, None) is None:
            world.heal()
            world.clock.advance(seconds=400)
            assert set(world.work()) <= {RunOutcome.DONE, RunOutcome.DELETED}

    world.hook = hook
    world.process(zombies, by="zombie")

    finish(world, batch)
    assert world.split_of(batch).attempts[-1].worker == "worker-1"


def test_two_batches_with_the_same_items_are_split_at_the_same_time(world: Batches) -> None:
    first = world.sent(*ITEMS)
    second = world.sent(*reversed(ITEMS))
    one, other = world.taken(), world.taken()
    left = iter(range(4))

    def hook(_: str) -> None:
        if next(left, None) is None:
            world.heal()
            world.process(other, by="other")

    world.hook = hook
    world.process(one, by="one")

    finish(world, first)
    assert world.statuses()[second] is EventStatus.DONE


def test_a_replay_while_it_is_being_split_repeats_nothing(world: Batches) -> None:
    batch = world.sent(*ITEMS)
    left = iter(range(4))

    def hook(_: str) -> None:
        if next(left, None) is None:
            world.heal()
            world.replay(event_ids=[batch], handler=SPLIT, force=True)

    world.hook = hook
    world.work_once()

    finish(world, batch)


@pytest.mark.usefixtures("_short_strides")
def test_a_batch_that_storage_never_took_is_dead_and_replay_goes_on(world: Batches) -> None:
    batch = world.sent(*mails(15))
    world.plan.fail("PutItem", skip=12, times=1000)
    world.run_until_quiet()
    run = world.split_of(batch)
    assert run.status is Status.DEAD_LETTER
    assert run.last_error.startswith("exhausted: dynamodb PutItem")
    world.heal()

    world.replay(source="mail")

    finish(world, batch, *(f"mail-{n}" for n in range(15)))


def test_a_batch_whose_message_was_lost_is_split_all_the_same(world: Batches) -> None:
    batch = world.sent(*ITEMS)
    world.drop_messages()
    world.pass_minutes(15)
    finish(world, batch)


def test_copies_of_the_message_change_nothing(world: Batches) -> None:
    batch = world.sent(*ITEMS)
    for _ in range(3):
        world.lanes.send([("default", RunMessage("mail", batch, SPLIT))])
    finish(world, batch)
    assert world.split_of(batch).attempt_count == 1


def test_an_event_that_is_gone_when_its_batch_is_replayed_is_taken_anew(world: Batches) -> None:
    batch = world.sent(*ITEMS)
    world.run_until_quiet()
    expired = world.now + timedelta(days=34)
    assert world.statuses()[batch] is EventStatus.DONE
    world.clock.advance(seconds=(expired - world.now).total_seconds())
    world.replay(event_ids=[batch], handler=SPLIT, force=True)
    finish(world, batch)
