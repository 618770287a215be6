"""Burying, and SQS's own redrive: a new id, a new SentTimestamp, receive count 1."""

import pytest

from tests.unit.support.world import MAX_RECEIVES, World
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Key, Outgoing
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import RunOutcome


def dead_and_in_the_dlq(world: World) -> None:
    world.dead()
    world.work()
    assert len(world.dlqs["default"]) == 1
    world.clock.advance(minutes=1)


# -- redrive


def test_a_redrive_leads_to_a_new_attempt(world: World) -> None:
    dead_and_in_the_dlq(world)
    assert world.redrive() == 1
    assert world.work() == [RunOutcome.DONE]
    run = world.run()
    assert (run.status, run.attempt_count, run.attempts_in_round) == (Status.DONE, 2, 1)


def test_a_redriven_message_is_a_new_one(world: World) -> None:
    dead_and_in_the_dlq(world)
    died_with = world.run().message_id
    world.redrive()
    message = world.taken()
    assert message.id != died_with
    assert message.receive_count == 1
    assert message.sent_at == world.now


def test_a_redriven_run_has_a_whole_round_of_attempts(world: World) -> None:
    dead_and_in_the_dlq(world)
    world.fails("acme.fulfil", Transient("down"))
    world.redrive()
    world.run_until_quiet()
    run = world.run()
    assert (run.status, run.attempt_count) == (Status.DEAD_LETTER, 1 + 3)
    assert len(world.dlqs["default"]) == 1


def test_a_run_may_be_redriven_again_and_again(world: World) -> None:
    for times in range(1, 4):
        world.fails("acme.fulfil", Permanent("no"))
        if times == 1:
            world.deliver()
        else:
            assert world.redrive() == 1
        world.work()
        world.clock.advance(minutes=1)
        assert world.run().attempt_count == times
    world.behaviours.clear()
    world.redrive()
    assert world.work() == [RunOutcome.DONE]


def test_a_redrive_of_a_run_that_was_replayed_meanwhile_is_dropped(world: World) -> None:
    dead_and_in_the_dlq(world)
    dlq_copy = world.dlqs["default"].bodies[0]
    world.replay(event_ids=["evt-1"])
    world.work()
    world.queues["default"].send([Outgoing(dlq_copy)])
    assert world.work() == [RunOutcome.DELETED]
    assert len(world.handled) == 2


@pytest.mark.parametrize("ahead", [1, 4])
def test_a_workers_clock_that_is_ahead_does_not_redrive_by_itself(world: World, ahead: int) -> None:
    """A death on a slow clock is dated by the message, not before it."""
    world.fails("acme.fulfil", Permanent("no"))
    world.deliver()
    message = world.taken()
    world.clock.advance(seconds=-ahead)
    world.process(message)
    world.clock.advance(seconds=ahead + 400)
    outcomes = set(world.work())
    assert outcomes == {RunOutcome.TO_DLQ}
    assert len(world.handled) == 1


def test_two_messages_of_one_dead_run_are_both_buried(world: World) -> None:
    world.fails("acme.fulfil", Permanent("no"))
    world.deliver()
    world.deliver()  # the run has no row yet, so it is sent again
    world.work()
    assert len(world.handled) == 1
    assert len(world.dlqs["default"]) == 2


def test_a_redrive_of_both_copies_makes_one_attempt(world: World) -> None:
    world.fails("acme.fulfil", Permanent("no"))
    world.deliver()
    world.deliver()
    world.work()
    world.behaviours.clear()
    world.clock.advance(minutes=1)
    world.redrive()
    assert sorted(world.work()) == [RunOutcome.DELETED, RunOutcome.DONE]


# -- burying


def test_burying_sends_nothing_to_the_dlq_by_hand(world: World) -> None:
    world.fails("acme.fulfil", Permanent("no"))
    world.deliver()
    world.plan.operations()
    world.work()
    assert "SendMessageBatch" not in world.plan.operations()
    assert len(world.dlqs["default"]) == 1


def test_burying_takes_what_receives_are_left_and_no_time(world: World) -> None:
    world.fails("acme.fulfil", Permanent("no"))
    world.deliver()
    before = world.now
    assert len(world.work()) == MAX_RECEIVES
    assert world.now == before


def test_a_message_that_cannot_be_shown_again_is_buried_more_slowly(world: World) -> None:
    world.fails("acme.fulfil", Permanent("no"))
    world.deliver()
    world.plan.fail("ChangeMessageVisibility", times=3)
    for _ in range(3):
        world.work()
        world.clock.advance(minutes=6)
    world.work()
    assert len(world.dlqs["default"]) == 1


def test_a_death_whose_answer_was_lost_is_buried_on_the_next_receive(world: World) -> None:
    world.fails("acme.fulfil", Permanent("no"))
    world.deliver()
    world.plan.fail("UpdateItem", Fault.AFTER, skip=1)
    assert world.work() == [RunOutcome.UNAVAILABLE]
    world.clock.advance(minutes=6)
    assert set(world.work()) == {RunOutcome.TO_DLQ}
    assert len(world.handled) == 1


# -- messages that are not ours

FOREIGN = [
    "hello",
    "[]",
    "null",
    "{}",
    '{"v":2,"source":"acme","event_id":"e","handler":"h","generation":0}',
    '{"v":1,"source":"acme","event_id":"e","handler":"h","generation":"0"}',
    '{"v":1,"source":"acme","event_id":"e","handler":"h","generation":-1}',
    '{"v":1,"source":"acme","event_id":"e","handler":"h","generation":true}',
    '{"v":1,"source":"acme","event_id":"e","handler":"h"}',
    '{"v":1,"source":"","event_id":"e","handler":"h","generation":0}',
    '{"v":1,"source":"acme","event_id":5,"handler":"h","generation":0}',
    '{"v":1,"source":"acme","event_id":"\\ud800","handler":"h","generation":0}',
    '{"v":1,"source":"acme","event_id":"' + "x" * 3000 + '","handler":"h","generation":0}',
    '{"v":1,"source":"acme","event_id":"e","handler":"' + "h" * 1100 + '","generation":0}',
    '{"v":1,"source":"acme","event_id":"e","handler":"h","generation":' + "9" * 60 + "}",
    "[" * 100_000,
]


@pytest.mark.parametrize("body", FOREIGN, ids=range(len(FOREIGN)))
def test_a_message_that_no_inbox_wrote_is_buried_with_a_reason(world: World, body: str) -> None:
    world.queues["default"].send([Outgoing(body)])
    result = world.work_once()
    assert result is not None
    assert result.outcome is RunOutcome.FOREIGN
    assert result.detail
    world.work()
    assert world.dlqs["default"].bodies == [body]
    assert list(world.table) == []


def test_a_foreign_message_costs_others_nothing(world: World) -> None:
    world.queues["default"].send([Outgoing("hello")])
    world.deliver()
    assert RunOutcome.DONE in world.work()


def test_a_message_of_an_event_that_is_not_there_yet_is_waited_for(world: World) -> None:
    world.deliver()
    row = world.event_row()
    assert row is not None
    world.table.delete(Key(row["pk"], row["sk"]))
    assert world.work() == [RunOutcome.UNAVAILABLE]
    world.table.put(row)
    world.clock.advance(minutes=6)
    assert world.work() == [RunOutcome.DONE]


def test_a_message_of_an_event_that_never_came_is_buried_after_a_quarter_of_an_hour(
    world: World,
) -> None:
    reference = RunMessage("acme", "never", "acme.fulfil")
    world.queues["default"].send([Outgoing(reference.encode())])
    seen = []
    for _ in range(4):
        seen += world.work()
        world.clock.advance(minutes=6)
    assert seen[:3] == [RunOutcome.UNAVAILABLE] * 3
    assert set(seen[3:]) == {RunOutcome.FOREIGN}
    assert len(world.dlqs["default"]) == 1


def test_a_message_of_an_expired_event_is_buried(world: World) -> None:
    world.deliver()
    body = world.queues["default"].bodies[0]
    world.clock.advance(days=36)
    world.queues["default"].send([Outgoing(body)])
    world.clock.advance(minutes=16)
    assert world.work()[0] is RunOutcome.FOREIGN
    assert world.handled == []


def test_absent_or_not_the_table_is_asked_consistently(world: World) -> None:
    world.table.lag = lambda unseen: unseen
    world.deliver()
    assert world.work() == [RunOutcome.DONE]
