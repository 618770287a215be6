"""`on_dead = "block"`: after a death the ordering key stands still until that run is finished."""

from typing import Any

import pytest

from tests.unit.support.people import person
from tests.unit.support.serial import BILL, LANE, SerialWorld, blocking, serial
from tests.unit.support.world import VISIBILITY, handler, with_handlers
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import Status
from webhook_inbox.queue.line import READ_AHEAD, TURN
from webhook_inbox.queue.outcomes import RunOutcome
from webhook_inbox.reconciler.report import Action
from webhook_inbox.replay.skip import skip

DAY = 86400


@pytest.fixture
def world() -> SerialWorld:
    return SerialWorld(blocking())


@pytest.fixture
def stopped(world: SerialWorld) -> SerialWorld:
    """An ordering key that stands still since a1 died; a2 and a3 wait."""
    world.fail_for("a1", Permanent("a 422"))
    world.accept_all("a1", "a2", "a3")
    assert world.outcomes() == [RunOutcome.DEAD, RunOutcome.DEFERRED, RunOutcome.DEFERRED]
    assert (len(world.queues[LANE]), world.line()) == (0, ["a1", "a2", "a3"])
    return world


def test_after_a_death_the_next_ones_wait_visibly(stopped: SerialWorld) -> None:
    stopped.wait(3600)

    assert stopped.order() == ["a1"]
    run = stopped.bill("a2")
    assert (run.status, run.attempt_count, run.waits_for) == (Status.DEFERRED, 0, TURN)
    assert "a1" in run.last_error


def test_the_dead_one_shows_that_it_stops_its_ordering_key(stopped: SerialWorld) -> None:
    assert stopped.bill("a1").blocking

    stopped.replay(event_ids=["a1"])

    assert not stopped.bill("a1").blocking


def test_other_ordering_keys_go_on(stopped: SerialWorld) -> None:
    stopped.accept("b1", "cus_2")

    assert stopped.outcomes() == [RunOutcome.DONE]


def test_the_ordering_key_of_another_handler_goes_on(world: SerialWorld) -> None:
    world.deploy(with_handlers(blocking(), serial("acme.mail")))
    world.fail_for("a1", Permanent("a 422"))
    world.accept_all("a1", "a2")

    world.outcomes()

    assert [event_id for name, event_id, _ in world.handled if name == "acme.mail"] == ["a1", "a2"]


def test_a_replay_passes_those_that_wait_for_it_and_then_they_go_on_in_order(
    stopped: SerialWorld,
) -> None:
    stopped.wait(3600)

    assert stopped.replay(event_ids=["a1"]).counts == {"replayed": 1}
    stopped.outcomes()

    assert stopped.order() == ["a1", "a1", "a2", "a3"]
    assert (len(stopped.queues[LANE]), stopped.line()) == (0, [])


def test_what_comes_while_the_line_moves_waits_behind_it(stopped: SerialWorld) -> None:
    stopped.replay(event_ids=["a1"])
    stopped.accept("a4")

    stopped.outcomes()

    assert stopped.order() == ["a1", "a1", "a2", "a3", "a4"]
    assert stopped.line() == []


def test_a_hundred_runs_behind_a_dead_one_leave_no_message_in_the_queue(
    stopped: SerialWorld,
) -> None:
    ids = [f"b{n:03}" for n in range(100)]
    stopped.accept_all(*ids)
    stopped.outcomes()
    assert (len(stopped.queues[LANE]), stopped.line()) == (0, ["a1", "a2", "a3", *ids])
    stopped.wait(3 * DAY)
    assert stopped.order() == ["a1"]

    stopped.replay(event_ids=["a1"])
    stopped.outcomes()

    assert stopped.order() == ["a1", "a1", "a2", "a3", *ids]


def test_a_reader_reads_the_first_rows_of_a_line_only(stopped: SerialWorld) -> None:
    asked: list[int | None] = []
    query = stopped.table.query

    def spy(*args: Any, limit: int | None = None, **options: Any) -> Any:
        asked.append(limit)
        return query(*args, limit=limit, **options)

    stopped.table.query = spy  # type: ignore[method-assign]
    stopped.accept("a4")
    stopped.outcomes()

    assert set(asked) == {READ_AHEAD}


def test_a_run_that_an_operator_skips_lets_its_ordering_key_go_on(stopped: SerialWorld) -> None:
    run = stopped.bill("a1")
    assert skip(
        stopped.table, stopped.randomness, run, by=person("kim"), reason="obsolete", now=stopped.now
    )

    stopped.wait(60)

    assert stopped.order() == ["a1", "a2", "a3"]


def test_a_replay_that_fails_keeps_them_waiting(stopped: SerialWorld) -> None:
    stopped.fail_for("a1", *[Transient("a 500")] * 3)
    stopped.replay(event_ids=["a1"])

    stopped.wait(3600)

    assert stopped.order() == ["a1"] * 4
    assert stopped.bill("a1").status is Status.DEAD_LETTER
    assert stopped.bill("a2").status is Status.DEFERRED


def test_a_replay_whose_message_is_lost_is_sent_again_past_those_that_wait(
    stopped: SerialWorld,
) -> None:
    stopped.plan.fail("SendMessageBatch")
    assert stopped.replay(event_ids=["a1"]).counts == {"unsent": 1}
    stopped.plan.heal()

    stopped.wait(1800)

    assert stopped.order() == ["a1", "a1", "a2", "a3"]


def test_those_that_wait_are_neither_lost_nor_expire_in_a_week(stopped: SerialWorld) -> None:
    for _ in range(7 * 24):
        stopped.wait(3600)
        stopped.reconcile()

    assert stopped.bill("a2").status is Status.DEFERRED
    assert stopped.order() == ["a1"]
    stopped.replay(event_ids=["a1"])
    stopped.wait(3600)
    assert stopped.order() == ["a1", "a1", "a2", "a3"]


def test_those_that_wait_raise_the_alarm_before_their_events_end(stopped: SerialWorld) -> None:
    stopped.clock.advance(seconds=28 * DAY + 3600)

    assert stopped.reconcile().count(Action.LAST_CALL) == 2


def test_a_worker_that_stops_after_its_run_has_ended_leaves_the_line_to_its_message(
    stopped: SerialWorld,
) -> None:
    stopped.replay(event_ids=["a1"])
    message = stopped.taken(LANE)
    stopped.plan.fail("DeleteItem")
    assert stopped.process(message, lane=LANE).outcome is RunOutcome.UNAVAILABLE
    stopped.plan.heal()
    assert stopped.bill("a1").status is Status.DONE

    stopped.wait(VISIBILITY + 1)

    assert stopped.order() == ["a1", "a1", "a2", "a3"]


@pytest.mark.parametrize("crash", range(1, 7))
def test_a_crash_while_a_line_moves_stops_it_for_a_time_only(
    stopped: SerialWorld, crash: int
) -> None:
    stopped.replay(event_ids=["a1"])
    message = stopped.taken(LANE)
    stopped.plan.fail("UpdateItem", skip=crash)
    stopped.plan.fail("DeleteItem", skip=crash - 1)
    stopped.plan.fail("SendMessageBatch", skip=crash - 1)
    stopped.process(message, lane=LANE)
    stopped.outcomes()
    stopped.plan.heal()

    stopped.wait(7 * 3600)

    assert list(dict.fromkeys(stopped.order())) == ["a1", "a2", "a3"]
    assert stopped.line() == []


# -- crashes


def test_a_crash_before_the_death_is_settled_neither_loses_nor_frees_it(
    world: SerialWorld,
) -> None:
    world.fail_for("a1", *[Permanent("a 422")] * 2)
    world.accept_all("a1", "a2")
    world.plan.fail("UpdateItem", skip=2)  # the claim and the entry are written, the death is not

    message = world.taken(LANE)
    assert world.process(message, lane=LANE).outcome is RunOutcome.UNAVAILABLE
    world.plan.heal()
    assert world.line() == ["a1"]
    assert world.bill("a1").status is Status.PROCESSING

    world.wait(VISIBILITY + 60)
    assert world.bill("a1").status is Status.DEAD_LETTER
    assert world.order() == ["a1", "a1"]


def test_a_block_that_cannot_be_written_leaves_the_run_alive(world: SerialWorld) -> None:
    world.fail_for("a1", *[Permanent("a 422")] * 2)
    world.accept_all("a1", "a2")
    world.plan.fail("UpdateItem", skip=1)

    assert world.outcomes() == [RunOutcome.UNAVAILABLE]
    world.plan.heal()
    assert world.bill("a1").status is Status.PROCESSING

    world.wait(VISIBILITY + 60)
    assert world.bill("a1").status is Status.DEAD_LETTER
    assert world.bill("a2").status is Status.DEFERRED


def test_one_that_survives_its_crash_lets_its_ordering_key_go_on(world: SerialWorld) -> None:
    world.fail_for("a1", Permanent("a 422"))
    world.accept_all("a1", "a2")
    world.plan.fail("UpdateItem", skip=2)
    world.process(world.taken(LANE), lane=LANE)
    world.plan.heal()

    world.wait(VISIBILITY + 60)

    assert world.order() == ["a1", "a1", "a2"]
    assert world.line() == []


def test_one_whose_workers_all_died_stops_its_ordering_key_as_well(world: SerialWorld) -> None:
    world.accept_all("a1", "a2")
    for _ in range(3):
        world.claim_and_die(world.taken(LANE), lane=LANE)
        world.clock.advance(seconds=VISIBILITY + 1)

    world.outcomes()

    assert world.bill("a1").status is Status.DEAD_LETTER
    assert world.line() == ["a1", "a2"]
    assert world.bill("a2").status is Status.DEFERRED


def test_a_run_that_waited_until_its_event_expired_blocks_no_other(world: SerialWorld) -> None:
    world.fail_for("a1", Transient("once"))
    world.accept("a1")
    world.outcomes()
    world.drop_messages()
    for _ in range(36):
        world.drop_messages()
        world.clock.advance(seconds=DAY)
        world.reconcile()

    assert world.row("a1", BILL) is not None
    world.drop_messages()
    world.accept("a2")
    assert world.outcomes() == [RunOutcome.DONE]


# -- several deaths


def test_one_that_dies_again_keeps_its_place(stopped: SerialWorld) -> None:
    stopped.fail_for("a1", Permanent("again"))
    stopped.clock.advance(seconds=60)
    stopped.replay(event_ids=["a1"])
    stopped.outcomes()

    assert stopped.line() == ["a1", "a2", "a3"]


def test_after_a_death_in_the_line_the_next_one_has_to_be_finished(stopped: SerialWorld) -> None:
    stopped.fail_for("a2", Permanent("a 409"))
    stopped.replay(event_ids=["a1"])
    stopped.outcomes()
    assert (stopped.order(), stopped.line()) == (["a1", "a1", "a2"], ["a2", "a3"])

    stopped.replay(event_ids=["a3"])
    stopped.outcomes()
    assert stopped.order() == ["a1", "a1", "a2"]

    stopped.replay(event_ids=["a2"])
    stopped.outcomes()
    assert stopped.order() == ["a1", "a1", "a2", "a2", "a3"]


# -- deployments and ends


@pytest.mark.parametrize("becomes", [serial(), handler(BILL, lane=LANE)])
def test_a_handler_that_blocks_no_more_goes_on_at_the_next_check(
    stopped: SerialWorld, becomes: HandlerSpec
) -> None:
    stopped.deploy(with_handlers(becomes))

    stopped.wait(6 * 3600 + 60)

    assert stopped.order() == ["a1", "a2", "a3"]


def test_a_block_ends_with_the_event_that_it_names(stopped: SerialWorld) -> None:
    stopped.wait(34 * DAY)
    stopped.accept("a9")
    assert stopped.outcomes() == [RunOutcome.DEFERRED]

    stopped.wait(DAY + 7 * 3600)

    # The events of a2 and a3 have ended as well; their runs are dead.
    assert stopped.order() == ["a1", "a9"]
    row = stopped.row("a2", BILL)
    assert row is not None
    assert row["last_error"].startswith("expired")


def test_a_run_whose_key_has_no_line_costs_one_query_and_no_write_more() -> None:
    world = SerialWorld(serial())
    world.accept("a1")
    world.plan.operations()

    world.outcomes()

    made = world.plan.operations()
    assert (made.count("Query"), made.count("UpdateItem"), made.count("PutItem")) == (1, 2, 0)
