"""`latest`: an older version is skipped, and one ordering key has one run at a time."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.handlers.ordering.stage import HANDLER, Stage
from webhook_inbox import Deferred, Held, Permanent, Skipped, Transient, latest
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.timestamps import from_ms, to_seconds
from webhook_inbox.handlers.ordering.key_state import STATE_LIFE, ordering_key_pk
from webhook_inbox.ledger.lease import CLOCK_SKEW
from webhook_inbox.ledger.schema import ID_LIMIT


@pytest.fixture
def stage() -> Stage:
    return Stage(latest("id", "n"))


def body(version: Any, ordering_key: Any = "cus_1") -> dict[str, Any]:
    return {"id": ordering_key, "n": version}


def done(stage: Stage, event_id: str, version: Any, ordering_key: Any = "cus_1") -> Run:
    """Accepts an event and works until its run has ended."""
    stage.accept(event_id, body(version, ordering_key))
    stage.work()
    return stage.run(event_id)


def begun(stage: Stage, event_id: str, version: Any) -> Run:
    """Lets a worker begin a run and be lost in its handler: it holds the ordering key."""
    return stage.begin(event_id, body(version))


def ending(stage: Stage, error: BaseException) -> None:
    """Lets the next attempt end so, and those after it well."""
    errors = [error]

    def act(event_id: str, body: Any) -> None:
        if errors:
            raise errors.pop()

    stage.act = act


# -- older and newer


def test_versions_are_applied_as_they_come_while_they_grow(stage: Stage) -> None:
    for version in (1, 2, 30):
        assert done(stage, f"evt_{version}", version).status is Status.DONE
    assert stage.order() == ["evt_1", "evt_2", "evt_30"]


def test_an_older_version_is_skipped_and_says_why(stage: Stage) -> None:
    done(stage, "evt_9", 5)
    run = done(stage, "evt_3", 3)
    assert run.status is Status.SKIPPED
    assert run.last_error == "stale: version 3, and 5 was applied by evt_9"
    assert stage.order() == ["evt_9"]


def test_what_was_applied_stays_after_something_stale(stage: Stage) -> None:
    done(stage, "evt_9", 5)
    done(stage, "evt_3", 3)
    assert stage.state("cus_1")["applied"] == "5"
    assert stage.state("cus_1")["applied_by"] == "evt_9"
    assert done(stage, "evt_4", 4).status is Status.SKIPPED


def test_something_stale_costs_no_write_of_the_ordering_key(stage: Stage) -> None:
    done(stage, "evt_9", 5)
    before = stage.state("cus_1")
    done(stage, "evt_3", 3)
    assert stage.state("cus_1") == before


def test_an_equal_version_of_another_event_is_applied(stage: Stage) -> None:
    done(stage, "evt_1", "2026-01-02T00:00:00Z")
    assert done(stage, "evt_2", "2026-01-02T01:00:00+01:00").status is Status.DONE
    assert stage.state("cus_1")["applied_by"] == "evt_2"


def test_ordering_keys_do_not_know_each_other(stage: Stage) -> None:
    done(stage, "evt_1", 5, "cus_1")
    assert done(stage, "evt_2", 3, "cus_2").status is Status.DONE


def test_an_ordering_key_is_the_same_as_number_and_as_text(stage: Stage) -> None:
    done(stage, "evt_1", 5, 17)
    assert done(stage, "evt_2", 3, "17").status is Status.SKIPPED


def test_versions_of_two_kinds_are_permanent(stage: Stage) -> None:
    done(stage, "evt_1", 5)
    run = done(stage, "evt_2", "2026-01-02")
    assert run.status is Status.DEAD_LETTER
    assert "'2026-01-02' is a time, and '5', which came before, a number" in run.last_error


@pytest.mark.parametrize("bad", [{"id": "cus_1"}, {"n": 5}, {"id": [], "n": 5}, [], None, "text"])
def test_a_body_without_a_place_is_permanent_and_names_the_handler(stage: Stage, bad: Any) -> None:
    stage.accept("evt_1", bad)
    stage.work()
    run = stage.run("evt_1")
    assert run.status is Status.DEAD_LETTER
    assert f"handler {HANDLER!r} needs the " in run.last_error


def test_a_handler_without_an_order_has_its_turn_at_once(stage: Stage) -> None:
    stage.accept("evt_1", None)
    message = stage.receive()
    assert message is not None
    spec = type(stage.spec)(HANDLER, "m", "f", "shop", ("*",))
    run = stage.claimed(message)
    with stage.orders.turn(spec, run, None, backfill=None, lane="default"):
        pass
    assert [row for row in stage.table if row["pk"].startswith("ordering_key#")] == []


# -- what the ordering key remembers


def test_a_long_ordering_key_is_named_by_its_hash() -> None:
    assert ordering_key_pk("h", "x" * ID_LIMIT) == f"ordering_key#h#{'x' * ID_LIMIT}"
    pk = ordering_key_pk("h", "x" * (ID_LIMIT + 1))
    assert pk.startswith("ordering_key#h#sha256:")
    assert pk != ordering_key_pk("h", "y" * (ID_LIMIT + 1))


def test_a_long_ordering_key_is_kept_in_order(stage: Stage) -> None:
    done(stage, "evt_1", 5, "x" * 3000)
    assert done(stage, "evt_2", 3, "x" * 3000).status is Status.SKIPPED
    assert done(stage, "evt_3", 3, "y" * 3000).status is Status.DONE


def test_each_event_lets_the_state_live_as_long_as_ever(stage: Stage) -> None:
    done(stage, "evt_1", 1)
    stage.clock.advance(days=300)
    done(stage, "evt_2", 2)
    assert stage.state("cus_1")["expires_at"] == to_seconds(stage.now() + STATE_LIFE)
    assert timedelta(days=400) == STATE_LIFE


def test_a_state_that_has_expired_and_is_still_there_is_used(stage: Stage) -> None:
    done(stage, "evt_9", 9)
    stage.clock.advance(days=500)
    assert done(stage, "evt_3", 3).status is Status.SKIPPED


def test_an_applied_ordering_key_is_not_held(stage: Stage) -> None:
    done(stage, "evt_1", 1)
    assert stage.state("cus_1").keys().isdisjoint({"holder", "lease_id", "held_at", "held_until"})


# -- what was begun


@pytest.mark.parametrize(
    "error", [Transient("down"), ValueError("?"), Held("may I?"), Permanent("422")]
)
def test_an_older_version_does_not_come_after_one_that_failed(
    stage: Stage, error: BaseException
) -> None:
    ending(stage, error)
    done(stage, "evt_9", 5)
    older = done(stage, "evt_3", 3)
    assert older.status is Status.SKIPPED
    assert older.last_error == "stale: version 3, and 5 was begun by evt_9"


def test_what_failed_is_tried_again_and_applied(stage: Stage) -> None:
    ending(stage, Transient("down"))
    done(stage, "evt_9", 5)
    assert "applied" not in stage.state("cus_1")
    stage.run_until_quiet()
    assert stage.run("evt_9").status is Status.DONE
    assert stage.state("cus_1")["applied"] == "5"


def test_a_newer_version_goes_ahead_of_one_that_failed(stage: Stage) -> None:
    ending(stage, Transient("down"))
    done(stage, "evt_5", 5)
    assert done(stage, "evt_6", 6).status is Status.DONE
    stage.run_until_quiet()
    assert stage.run("evt_5").status is Status.SKIPPED
    assert stage.order() == ["evt_6"]


def test_a_run_that_is_skipped_by_its_handler_counts_as_applied(stage: Stage) -> None:
    ending(stage, Skipped("nothing to do"))
    assert done(stage, "evt_5", 5).last_error == "nothing to do"
    assert stage.state("cus_1")["applied"] == "5"


def test_after_a_deferral_the_same_version_goes_on(stage: Stage) -> None:
    ending(stage, Deferred(stage.now() + timedelta(minutes=5)))
    assert done(stage, "evt_5", 5).status is Status.DEFERRED
    stage.run_until_quiet()
    assert stage.order() == ["evt_5"]


# -- one at a time


def test_another_event_waits_while_one_is_worked_on(stage: Stage) -> None:
    begun(stage, "evt_1", 1)
    run = done(stage, "evt_2", 2)
    assert run.status is Status.DEFERRED
    assert run.last_error == "cus_1 is held by evt_1"
    assert run.attempt_count == 0
    assert not run.parked


def test_an_older_one_does_not_wait_for_a_newer_one_that_is_worked_on(stage: Stage) -> None:
    begun(stage, "evt_2", 2)
    assert done(stage, "evt_1", 1).status is Status.SKIPPED


def test_it_waits_as_long_as_it_has_been_held_within_bounds(stage: Stage) -> None:
    begun(stage, "evt_1", 1)
    waits = []
    for number, seconds in enumerate((0, 7, 30)):
        stage.clock.advance(seconds=seconds)
        due = done(stage, f"other_{number}", 2).next_attempt_at
        assert due is not None
        waits.append((due - stage.now()).total_seconds())
    assert waits == [2, 7, 20]


def test_the_hold_ends_with_the_lease_of_the_run(stage: Stage) -> None:
    run = begun(stage, "evt_1", 1)
    assert run.claimed_until is not None
    assert from_ms(stage.state("cus_1")["held_until"]) == run.claimed_until
    margin = run.claimed_until + CLOCK_SKEW - stage.now()
    stage.clock.advance(seconds=margin.total_seconds())
    assert done(stage, "evt_2", 2).status is Status.DEFERRED
    stage.clock.advance(seconds=0.001)
    assert done(stage, "evt_3", 3).status is Status.DONE


def test_the_next_attempt_of_a_lost_run_takes_over_its_own_hold(stage: Stage) -> None:
    begun(stage, "evt_1", 1)
    stage.clock.advance(seconds=71)
    stage.send("evt_1")
    stage.work()
    assert stage.run("evt_1").status is Status.DONE


def test_a_worker_that_lost_its_hold_records_nothing(stage: Stage) -> None:
    begun(stage, "evt_1", 1)
    stage.clock.advance(seconds=71)
    done(stage, "evt_2", 2)
    (turn,) = stage.open
    with pytest.raises(Transient, match="lost hold of cus_1"):
        turn.__exit__(None, None, None)
    assert stage.state("cus_1")["applied"] == "2"


def test_a_worker_that_lost_its_hold_does_not_take_it_from_another(stage: Stage) -> None:
    begun(stage, "evt_1", 1)
    stage.clock.advance(seconds=71)
    begun(stage, "evt_2", 2)
    error = ValueError("late")
    turn = stage.open[0]
    assert not turn.__exit__(ValueError, error, None)
    assert stage.state("cus_1")["holder"] == "evt_2"


# -- when the ledger fails


def failing(stage: Stage, operation: str, fault: Fault, *, skip: int) -> None:
    """Lets one call of an operation fail."""
    left = [skip]

    def faults(service: str, called: str) -> Fault | None:
        if called != operation:
            return None
        left[0] -= 1
        return fault if left[0] == -1 else None

    stage.table.faults = faults


@pytest.mark.parametrize("fault", list(Fault))
def test_a_ledger_that_cannot_be_read_costs_no_attempt(stage: Stage, fault: Fault) -> None:
    failing(stage, "GetItem", fault, skip=0)
    run = done(stage, "evt_1", 1)
    assert run.status is Status.DEFERRED
    assert run.last_error.startswith("its position cannot be read: dynamodb GetItem")
    assert run.attempt_count == 0
    stage.run_until_quiet()
    assert stage.order() == ["evt_1"]


@pytest.mark.parametrize("fault", list(Fault))
def test_a_hold_whose_answer_was_lost_is_taken_over(stage: Stage, fault: Fault) -> None:
    failing(stage, "UpdateItem", fault, skip=1)  # the first one claims
    assert done(stage, "evt_1", 1).status is Status.DEFERRED
    stage.run_until_quiet()
    assert stage.order() == ["evt_1"]


@pytest.mark.parametrize("fault", list(Fault))
def test_what_cannot_be_recorded_is_done_again(stage: Stage, fault: Fault) -> None:
    failing(stage, "UpdateItem", fault, skip=2)
    run = done(stage, "evt_1", 1)
    assert run.status is Status.DEFERRED
    assert run.last_error.startswith("its position cannot be recorded: dynamodb UpdateItem")
    stage.run_until_quiet()
    assert stage.order() == ["evt_1", "evt_1"]
    assert stage.run("evt_1").status is Status.DONE


def test_a_crash_before_the_settlement_lets_this_one_run_again_and_no_older_one(
    stage: Stage,
) -> None:
    failing(stage, "UpdateItem", Fault.BEFORE, skip=3)
    done(stage, "evt_5", 5)
    assert stage.run("evt_5").status is Status.PROCESSING
    assert stage.state("cus_1")["applied"] == "5"
    assert done(stage, "evt_4", 4).status is Status.SKIPPED
    stage.run_until_quiet()
    assert stage.order() == ["evt_5", "evt_5"]


def test_an_ordering_key_that_cannot_be_let_go_is_free_after_the_lease(stage: Stage) -> None:
    ending(stage, Permanent("422"))
    failing(stage, "UpdateItem", Fault.BEFORE, skip=2)
    done(stage, "evt_1", 1)
    assert stage.state("cus_1")["holder"] == "evt_1"
    assert done(stage, "evt_2", 2).status is Status.DEFERRED
    stage.run_until_quiet()
    assert stage.order() == ["evt_2"]


# -- operators


def test_a_replayed_dead_letter_is_stale_after_a_newer_one(stage: Stage) -> None:
    ending(stage, Permanent("422"))
    done(stage, "evt_1", 1)
    done(stage, "evt_2", 2)
    stage.replay("evt_1")
    stage.work()
    assert stage.run("evt_1").status is Status.SKIPPED


def test_a_replayed_dead_letter_that_is_still_the_newest_is_applied(stage: Stage) -> None:
    ending(stage, Permanent("422"))
    done(stage, "evt_1", 1)
    stage.replay("evt_1")
    stage.work()
    assert stage.state("cus_1")["applied"] == "1"


def test_what_an_operator_forces_runs_and_does_not_set_the_ordering_key_back(stage: Stage) -> None:
    done(stage, "evt_2", 2)
    done(stage, "evt_1", 1)
    stage.replay("evt_1", forced=True)
    stage.work()
    assert stage.run("evt_1").status is Status.DONE
    assert stage.order() == ["evt_2", "evt_1"]
    state = stage.state("cus_1")
    assert (state["applied"], state["begun"], state["begun_by"]) == ("2", "2", "evt_2")
    assert "holder" not in state


def test_what_an_operator_forces_waits_for_its_turn_too(stage: Stage) -> None:
    done(stage, "evt_1", 1)
    begun(stage, "evt_2", 2)
    stage.replay("evt_1", forced=True)
    stage.work()
    assert stage.run("evt_1").status is Status.DEFERRED
