"""`on_dead = "block"`: after a death the ordering key stands still until that run is finished."""

import pytest

from tests.unit.support.serial import BILL, LANE, SerialWorld, blocking, serial
from tests.unit.support.world import VISIBILITY, with_handlers
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.model import Status
from webhook_inbox.ledger.schema import run_key
from webhook_inbox.queue.outcomes import RunOutcome

DAY = 86400


@pytest.fixture
def world() -> SerialWorld:
    return SerialWorld(blocking())


@pytest.fixture
def stopped(world: SerialWorld) -> SerialWorld:
    """An ordering key that stands still since a1 died; a2 and a3 wait."""
    world.fail_for("a1", Permanent("a 422"))
    world.accept_all("a1", "a2", "a3")
    assert world.outcomes() == [RunOutcome.DEAD, RunOutcome.DEFERRED]
    return world


def blocks(world: SerialWorld) -> list[str]:
    """Returns the events whose runs stop an ordering key."""
    return sorted(row["event_id"] for row in world.rows(f"ordering_key#{BILL}#"))


def test_after_a_death_the_next_ones_wait_visibly(stopped: SerialWorld) -> None:
    stopped.wait(3600)

    assert stopped.order() == ["a1"]
    run = stopped.bill("a2")
    assert (run.status, run.attempt_count, run.waits_for) == (Status.DEFERRED, 0, "event a1")
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
    assert stopped.order() == ["a1", "a1"]

    stopped.wait(1260)
    assert stopped.order() == ["a1", "a1", "a2", "a3"]
    assert len(stopped.queues[LANE]) == 0


def test_what_stopped_an_ordering_key_is_cleared_away_by_who_comes_next(
    stopped: SerialWorld,
) -> None:
    assert blocks(stopped) == ["a1"]
    stopped.replay(event_ids=["a1"])

    stopped.wait(120)

    assert blocks(stopped) == []


def test_a_run_that_an_operator_skips_lets_its_ordering_key_go_on(stopped: SerialWorld) -> None:
    row = stopped.row("a1", BILL)
    assert row is not None
    stopped.table.put({**row, "status": "skipped"})

    stopped.wait(120)

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

    stopped.wait(3600)
    stopped.reconcile()
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


def test_one_that_was_never_received_and_waits_is_not_taken_for_lost(
    stopped: SerialWorld,
) -> None:
    for _ in range(6 * 24):
        stopped.clock.advance(seconds=3600)
        stopped.reconcile()

    assert "a3" not in [
        run.event_id for run in stopped.ledger.due_runs() if run.status is Status.DEAD_LETTER
    ]


# -- crashes


def test_a_crash_before_the_death_is_settled_neither_loses_nor_frees_it(
    world: SerialWorld,
) -> None:
    world.fail_for("a1", *[Permanent("a 422")] * 2)
    world.accept_all("a1", "a2")
    world.plan.fail("UpdateItem", skip=2)  # the claim and the block are written, the death is not

    message = world.taken(LANE)
    assert world.process(message, lane=LANE).outcome is RunOutcome.UNAVAILABLE
    world.plan.heal()
    assert blocks(world) == ["a1"]
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
    assert blocks(world) == []


def test_one_whose_workers_all_died_stops_its_ordering_key_as_well(world: SerialWorld) -> None:
    world.accept_all("a1", "a2")
    for _ in range(3):
        world.claim_and_die(world.taken(LANE), lane=LANE)
        world.clock.advance(seconds=VISIBILITY + 1)

    world.outcomes()

    assert world.bill("a1").status is Status.DEAD_LETTER
    assert blocks(world) == ["a1"]
    assert world.bill("a2").status is Status.DEFERRED


def test_one_that_waited_until_its_event_s_end_stops_nobody(world: SerialWorld) -> None:
    world.fail_for("a1", Transient("once"))
    world.accept("a1")
    world.outcomes()
    world.drop_messages()
    for _ in range(36):
        world.drop_messages()
        world.clock.advance(seconds=DAY)
        world.reconcile()

    assert world.row("a1", BILL) is not None
    assert blocks(world) == []
    world.drop_messages()
    world.accept("a2")
    assert world.outcomes() == [RunOutcome.DONE]


# -- several deaths


def test_of_several_dead_ones_the_first_has_to_go_first(stopped: SerialWorld) -> None:
    row = stopped.row("a2", BILL)
    assert row is not None
    # As one that dies of something else than its handler: too old, or of a lost ordering key.
    stopped.clock.advance(seconds=60)
    stopped.deploy(with_handlers(serial()))
    stopped.fail_for("a2", Permanent("a 409"))
    stopped.deploy(with_handlers(blocking()))
    stopped.table.put(
        {**row, "status": "dead_letter", "dead_at": row["last_at"], "attempts_in_round": 0}
    )
    stopped.table.put(
        {
            "pk": f"ordering_key#{BILL}#cus_1",
            "sk": "blocked#a2",
            "source": "acme",
            "event_id": "a2",
            "since": row["last_at"] + 1,
            "expires_at": row["expires_at"],
        }
    )
    stopped.behaviours.clear()

    stopped.replay(event_ids=["a2"])
    stopped.wait(3600)
    assert stopped.order() == ["a1"]

    stopped.replay(event_ids=["a1"])
    stopped.wait(2400)
    assert stopped.order() == ["a1", "a1", "a2", "a3"]
    assert blocks(stopped) == []


def test_one_that_dies_again_keeps_its_place_among_the_dead(stopped: SerialWorld) -> None:
    [before] = stopped.rows(f"ordering_key#{BILL}#")
    stopped.fail_for("a1", Permanent("again"))
    stopped.clock.advance(seconds=60)
    stopped.replay(event_ids=["a1"])
    stopped.outcomes()

    [after] = stopped.rows(f"ordering_key#{BILL}#")
    assert after["since"] == before["since"]


# -- deployments and ends


def test_a_handler_that_blocks_no_more_goes_on_at_its_next_look(stopped: SerialWorld) -> None:
    stopped.deploy(with_handlers(serial()))

    stopped.wait(120)

    assert stopped.order() == ["a1", "a2", "a3"]


def test_a_block_ends_with_the_event_that_it_names(stopped: SerialWorld) -> None:
    stopped.clock.advance(seconds=34 * DAY)
    stopped.drop_messages()
    stopped.accept("a9")
    assert stopped.outcomes() == [RunOutcome.DEFERRED]

    stopped.wait(DAY + 3600)

    assert stopped.order() == ["a1", "a9"]


def test_a_block_whose_run_is_gone_is_cleared_away(stopped: SerialWorld) -> None:
    stopped.table.delete(run_key("acme", "a1", BILL))

    stopped.wait(120)

    assert stopped.order() == ["a1", "a2", "a3"]
    assert blocks(stopped) == []


def test_a_handler_that_does_not_block_asks_for_no_blocks() -> None:
    world = SerialWorld(serial())
    world.accept("a1")
    world.plan.operations()

    world.outcomes()

    assert "Query" not in world.plan.operations()
