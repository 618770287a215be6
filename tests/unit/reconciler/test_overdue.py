"""Runs whose time has come: sent again, resumed, given up; never dead from time alone."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tests.unit.support.world import World
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Deferred, Transient
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Backlog, Outgoing
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger.schema import WAKE, due_bucket, run_key
from webhook_inbox.queue.lanes import LARGE_BACKLOG
from webhook_inbox.reconciler.due_index import DRAIN
from webhook_inbox.reconciler.report import Action

FIVE_MINUTES = timedelta(minutes=5)


def waiting(world: World, *, wait: timedelta = FIVE_MINUTES, event_id: str = "evt-1") -> Run:
    """Returns a failed run whose message is lost."""
    world.script("acme.fulfil", Transient("down", retry_after=wait))
    world.deliver(event_id)
    world.work()
    for queue in world.queues.values():
        queue._messages.clear()
    return world.run(event_id)


def looks(world: World, *, until: timedelta) -> Iterator[tuple[datetime, dict[str, int]]]:
    """Reconciles whenever the index says so; every message is lost again."""
    end = world.now + until
    while world.now < end:
        row = world.row()
        assert row is not None
        at = from_ms(row["due_at"])
        if at > end:
            return
        world.clock.advance(seconds=max(0.0, (at - world.now).total_seconds()))
        if world.now.minute % 5 == 0 or world.now.minute in {7, 37}:
            world.clock.advance(seconds=61)
        report = world.reconcile()
        for queue in world.queues.values():
            queue._messages.clear()
        yield world.now, report.counts


def overdue(world: World, **parts: timedelta) -> None:
    """Brings a run to the time when it is sent again for the first time."""
    waiting(world, **parts)
    row = world.row()
    assert row is not None
    at = from_ms(row["due_at"])
    world.clock.advance(seconds=(at - world.now).total_seconds())


# -- lost messages


def test_an_overdue_run_is_sent_again_with_its_current_generation(world: World) -> None:
    overdue(world)
    assert world.reconcile().count(Action.RESENT) == 1
    assert world.generations() == [1]
    world.work()
    assert world.run().status is Status.DONE


def test_it_is_overdue_after_two_visibilities_and_a_quarter_of_an_hour(world: World) -> None:
    due = waiting(world).next_attempt_at
    row = world.row()
    assert due is not None
    assert row is not None
    assert from_ms(row["due_at"]) == due + timedelta(minutes=12 + 15)


def test_before_that_nothing_is_sent(world: World) -> None:
    waiting(world)
    world.clock.advance(minutes=31)
    assert world.reconcile().count(Action.RESENT) == 0


def test_it_is_sent_again_ever_more_rarely_and_is_then_lost(world: World) -> None:
    run = waiting(world)
    assert run.next_attempt_at is not None
    seen = list(looks(world, until=timedelta(days=10)))
    times = [at - run.next_attempt_at for at, counts in seen if counts.get(Action.RESENT)]
    hours = [round(time / timedelta(hours=1), 1) for time in times]
    assert hours == pytest.approx([0.5, 1.5, 5.5, 29.5, 53.5, 77.5], abs=0.2)
    assert [counts for _, counts in seen if counts.get(Action.LOST)] == [{Action.LOST: 1}]
    lost = world.run()
    assert lost.status is Status.DEAD_LETTER
    assert lost.last_error.startswith("lost: sent 6 times, never received; last error: down")


def test_a_lost_run_can_be_replayed(world: World) -> None:
    waiting(world)
    list(looks(world, until=timedelta(days=10)))
    assert world.replay().counts == {"replayed": 1}
    world.work()
    assert world.run().status is Status.DONE


def test_a_run_that_was_received_meanwhile_begins_its_resends_anew(world: World) -> None:
    overdue(world)
    world.reconcile()
    assert world.run().resends == 1
    world.script("acme.fulfil", Transient("down again"))
    world.work()
    assert world.run().resends == 0


def test_a_message_that_arrives_late_makes_no_second_attempt(world: World) -> None:
    overdue(world)
    world.reconcile()
    (body,) = world.queues["default"].bodies
    world.work()
    world.queues["default"].send([Outgoing(body)])
    world.work()
    assert len(world.handled) == 2


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "never begun"])
def test_a_pending_run_is_sent_again_too(world: World, begun: bool) -> None:
    if begun:
        world.dead()
    else:
        world.deliver()
        world.drop_messages()
    world.plan.fail("SendMessageBatch")
    world.replay(event_ids=["evt-1"])
    world.clock.advance(minutes=28)
    assert world.reconcile().count(Action.RESENT) == 1
    world.work()
    assert world.run().status is Status.DONE


def test_a_run_whose_worker_died_and_whose_message_is_lost_is_sent_again(world: World) -> None:
    world.script("acme.fulfil", Transient("down"))
    world.deliver()
    world.work()
    world.clock.advance(seconds=60)
    world.claim_and_die(world.taken())
    world.drop_messages()
    world.pass_minutes(35)
    assert world.run().status is Status.DONE


# -- a backlog is not a death


def backlog(world: World, visible: int = 0, oldest: timedelta | None = None) -> None:
    world.queues["default"].backlog = lambda: Backlog(visible, oldest)  # type: ignore[method-assign]


def test_behind_a_large_backlog_nothing_is_sent_and_nothing_counted(world: World) -> None:
    overdue(world)
    backlog(world, LARGE_BACKLOG + 1)
    before = world.row()
    for _ in range(20):
        assert world.reconcile().counts == {}
        world.clock.advance(hours=1)
    assert world.row() == before
    assert world.messages() == []


def test_however_long_the_backlog_lasts_the_run_is_not_given_up(world: World) -> None:
    waiting(world)
    backlog(world, LARGE_BACKLOG + 1)
    for _ in range(5 * 24):
        world.clock.advance(hours=1)
        world.reconcile()
    assert world.run().status is Status.FAILED
    assert world.run().resends == 0


def test_it_is_looked_at_once_a_day(world: World) -> None:
    overdue(world)
    backlog(world, LARGE_BACKLOG + 1)
    counts = []
    for _ in range(4 * 24 + 1):
        counts.append(world.reconcile().count(Action.POSTPONED))
        world.clock.advance(hours=1)
    assert sum(counts) == 4


def test_once_the_backlog_is_gone_it_is_sent_at_once(world: World) -> None:
    overdue(world)
    backlog(world, LARGE_BACKLOG + 1)
    world.clock.advance(hours=30)
    world.reconcile()
    backlog(world, 3)
    assert world.reconcile().count(Action.RESENT) == 1


def test_the_age_of_the_oldest_message_postpones_too(world: World) -> None:
    overdue(world)
    backlog(world, 10, timedelta(hours=3))
    before = world.row()
    world.clock.advance(hours=2, minutes=58)
    assert world.reconcile().counts == {}
    assert world.row() == before
    world.clock.advance(minutes=3)
    assert world.reconcile().count(Action.RESENT) == 1


@pytest.mark.usefixtures("due_index_only")
def test_no_row_is_read_while_the_backlog_explains_the_wait(world: World) -> None:
    overdue(world)
    backlog(world, LARGE_BACKLOG + 1)
    world.plan.operations()
    world.reconcile()
    assert "BatchGetItem" not in world.plan.operations()


def test_with_nothing_due_no_backlog_is_asked_for(world: World) -> None:
    world.reconcile()
    world.clock.advance(minutes=1)
    world.plan.operations()
    world.reconcile()
    assert "GetQueueAttributes" not in world.plan.operations()


def test_a_queue_whose_age_is_not_known_postpones_nothing(world: World) -> None:
    overdue(world)
    backlog(world, 10, None)
    assert world.reconcile().count(Action.RESENT) == 1


def test_each_lanes_backlog_is_asked_for_once_a_pass(world: World) -> None:
    for number in range(5):
        waiting(world, event_id=f"evt-{number}")
    world.clock.advance(minutes=33)
    world.plan.operations()
    assert world.reconcile().count(Action.RESENT) == 5
    assert world.plan.operations().count("GetQueueAttributes") == 1


# -- parked


def park(world: World, event_id: str = "evt-1", *, hours: float = 1) -> None:
    world.script("acme.fulfil", Deferred(world.now + timedelta(hours=hours)))
    world.deliver(event_id)
    world.work()


def test_a_parked_run_is_woken_when_it_is_due(world: World) -> None:
    park(world)
    world.clock.advance(minutes=59)
    assert world.reconcile().count(Action.RESUMED) == 0
    world.clock.advance(minutes=1, seconds=1)
    assert world.reconcile().count(Action.RESUMED) == 1
    run = world.run()
    assert (run.status, run.parked, run.generation) == (Status.PENDING, False, 1)
    assert world.generations() == [1]


def test_a_woken_run_is_sent_again_if_its_message_is_lost(world: World) -> None:
    park(world)
    world.clock.advance(hours=1, seconds=1)
    world.plan.fail("SendMessageBatch")
    world.reconcile()
    assert world.messages() == []
    world.pass_minutes(29)
    assert world.run().status is Status.DONE


def test_so_many_parked_runs_are_woken_a_minute_and_no_more(world: World) -> None:
    for number in range(DRAIN + 30):
        park(world, f"evt-{number}")
    world.clock.advance(hours=2)
    assert world.reconcile().count(Action.RESUMED) == DRAIN
    assert world.reconcile().count(Action.RESUMED) == 30


def test_so_many_overdue_runs_are_sent_again_a_minute_and_no_more(world: World) -> None:
    for number in range(DRAIN + 30):
        waiting(world, event_id=f"evt-{number}")
    world.clock.advance(hours=2, minutes=1)
    assert world.reconcile().count(Action.RESENT) == DRAIN
    world.drop_messages()
    assert world.reconcile().count(Action.RESENT) == 30


def test_a_run_parked_for_longer_than_a_day_is_looked_at_daily(world: World) -> None:
    park(world, hours=24 * 5)
    resumed = [
        at for at, counts in looks(world, until=timedelta(days=6)) if Action.RESUMED in counts
    ]
    assert len(resumed) == 1


# -- held


def hold(world: World) -> None:
    world.deliver()
    world.claim_and_die(world.taken())
    world.alter(
        status="held",
        lease_id=None,
        claimed_until=None,
        due_bucket=due_bucket(run_key("acme", "evt-1", "acme.fulfil"), WAKE),
        due_at=to_ms(world.now + timedelta(days=28)),
    )
    world.drop_messages()


def test_a_held_run_waits_for_a_person(world: World) -> None:
    hold(world)
    counts = [counts for _, counts in looks(world, until=timedelta(days=34))]
    assert world.run().status is Status.HELD
    assert all(Action.RESENT not in count for count in counts)
    assert world.messages() == []


def test_what_still_waits_is_called_out_daily_in_its_events_last_week(world: World) -> None:
    hold(world)
    calls = [at for at, counts in looks(world, until=timedelta(days=34)) if "last_call" in counts]
    assert 6 <= len(calls) <= 7


@pytest.mark.parametrize("situation", ["held", "parked", "failed"])
def test_what_waits_until_its_events_end_is_expired(world: World, situation: str) -> None:
    if situation == "held":
        hold(world)
    elif situation == "parked":
        park(world, hours=24 * 13)
        world.alter(next_attempt_at=to_ms(world.now + timedelta(days=60)))
    else:
        waiting(world)
        backlog(world, LARGE_BACKLOG + 1)
    world.clock.advance(days=35, minutes=2)
    report = world.reconcile()
    assert report.counts[Action.EXPIRED] == 1
    row = world.row()
    assert row is not None
    assert row["status"] == "dead_letter"
    assert row["last_error"].startswith("expired: it waited until its event's end")


# -- others at work


def test_a_live_lease_is_watched_from_afar(world: World) -> None:
    world.script("acme.fulfil", Transient("down"))
    world.deliver()
    world.work()
    world.clock.advance(seconds=60)
    world.claim_and_die(world.taken())
    # Longer ago than the age of the lane's oldest message.
    world.alter(due_at=to_ms(world.now - timedelta(minutes=5)))
    report = world.reconcile()
    assert report.counts == {Action.POSTPONED: 1}
    assert world.messages() != []


def test_a_run_that_is_being_worked_on_when_its_event_ends_is_not_given_up(world: World) -> None:
    world.script("acme.fulfil", Transient("down"))
    world.deliver()
    world.work()
    world.clock.advance(days=35, seconds=30)
    until = to_ms(world.now + timedelta(seconds=20))
    world.alter(status="processing", claimed_until=until, due_at=to_ms(world.now))
    report = world.reconcile()
    assert Action.EXPIRED not in report.counts
    row = world.row()
    assert row is not None
    assert row["status"] == "processing"


def test_an_entry_that_lags_behind_its_row_is_passed_over(world: World) -> None:
    overdue(world)
    world.table.lag = lambda unseen: 0
    world.reconcile()
    world.queues["default"]._messages.clear()
    world.table.lag = lambda unseen: unseen
    world.alter(status="done", due_bucket=None, due_at=None)
    report = world.reconcile()
    assert report.count(Action.RESENT) == 0
    assert world.messages() == []


def test_two_reconcilers_at_once_send_once(world: World) -> None:
    overdue(world)
    send, sent = world.queues["default"].send, []

    def overlapped(messages: object) -> object:
        sent.append(list(messages))  # type: ignore[call-overload]
        return send(sent[-1])

    world.queues["default"].send = overlapped  # type: ignore[method-assign,assignment]
    world.table.lag = lambda unseen: unseen  # both read the same old entry
    first = world.reconcile()
    world.clock.advance(seconds=1)
    second = world.reconcile()
    assert (first.count(Action.RESENT), second.count(Action.RESENT)) == (1, 0)
    assert second.count(Action.MOVED_ON) == 1
    assert len(sent) == 1


def test_a_resend_that_the_sdk_tried_twice_is_ours(world: World) -> None:
    overdue(world)
    update = world.table.update

    def twice(key: object, change: object, **parts: object) -> object:
        update(key, change, **parts)  # type: ignore[arg-type]
        return update(key, change, **parts)  # type: ignore[arg-type]

    world.table.update = twice  # type: ignore[method-assign,assignment]
    assert world.reconcile().count(Action.RESENT) == 1
    assert len(world.messages()) == 1


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("operation", ["UpdateItem", "SendMessageBatch", "GetQueueAttributes"])
def test_a_resend_that_fails_heals(world: World, operation: str, fault: Fault) -> None:
    overdue(world)
    world.plan.fail(operation, fault)
    assert world.reconcile().count(Action.FAILED) == 1
    world.run_until_quiet()
    assert world.run().status is Status.DONE


def test_a_dead_run_is_left_alone_for_as_long_as_it_is_listed(world: World) -> None:
    world.dead()
    world.clock.advance(days=30)
    before = world.row()
    assert world.reconcile().counts == {}
    assert world.row() == before


def _ms(moment: datetime) -> datetime:
    return from_ms(to_ms(moment))
