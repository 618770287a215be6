"""`sequence`: runs in the order of their numbers; an early run waits until it is woken."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.handlers.ordering.stage import SOURCE, Stage
from webhook_inbox import Deferred, Permanent, Skipped, Transient, sequence
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.adapters.memory.system import START
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Change, Key
from webhook_inbox.domain.timestamps import from_ms, to_seconds
from webhook_inbox.handlers.ordering.gaps import OutOfTurn
from webhook_inbox.ledger.schema import run_key

AN_HOUR = timedelta(hours=1)


@pytest.fixture
def stage() -> Stage:
    return Stage(sequence("account", "seq", timeout="1h"))


def body(number: Any) -> dict[str, Any]:
    return {"account": "acct_1", "seq": number}


def come(stage: Stage, *numbers: int) -> None:
    """Accepts an event of each number, and works on all that is visible after each."""
    for number in numbers:
        stage.accept(f"evt_{number}", body(number))
        stage.work()


def applied(stage: Stage) -> list[int]:
    return [given["seq"] for _, given in stage.applied]


def ending(stage: Stage, error: BaseException) -> None:
    """Lets the next attempt end so, and those after it well."""
    errors = [error]

    def act(event_id: str, body: Any) -> None:
        if errors:
            raise errors.pop()

    stage.act = act


# -- in order


def test_numbers_that_come_in_order_are_applied_at_once(stage: Stage) -> None:
    come(stage, 1, 2, 3)
    assert applied(stage) == [1, 2, 3]
    assert {run.generation for run in stage.runs().values()} == {0}


def test_the_common_path_costs_two_writes_and_two_reads(stage: Stage) -> None:
    come(stage, 1)
    calls: list[str] = []
    stage.accept("evt_2", body(2))

    def note(service: str, operation: str) -> None:
        calls.append(operation)

    stage.table.faults = note
    stage.work()
    claimed, *ordered, settled = calls
    assert claimed == settled == "UpdateItem"
    assert ordered == ["GetItem", "UpdateItem", "UpdateItem", "Query"]


def test_a_sequence_may_begin_with_another_number() -> None:
    stage = Stage(sequence("account", "seq", first=0))
    come(stage, 0, 1)
    assert applied(stage) == [0, 1]


def test_a_number_before_the_first_was_never_to_be_applied(stage: Stage) -> None:
    come(stage, 0)
    run = stage.run("evt_0")
    assert run.status is Status.SKIPPED
    assert run.last_error == "already applied: number 0, and the last is 0"


def test_ordering_keys_have_sequences_of_their_own(stage: Stage) -> None:
    come(stage, 1)
    stage.accept("other", {"account": "acct_2", "seq": 1})
    stage.work()
    assert applied(stage) == [1, 1]


@pytest.mark.parametrize("bad", [{"account": "a"}, {"seq": 1}, {"account": "a", "seq": "x"}, 7])
def test_a_body_without_a_place_is_permanent(stage: Stage, bad: Any) -> None:
    stage.accept("evt_1", bad)
    stage.work()
    assert stage.run("evt_1").status is Status.DEAD_LETTER
    assert stage.run("evt_1").last_error.startswith("handler 'shop.sync' needs the ")


# -- too early


def test_a_number_that_comes_too_early_waits_without_a_message(stage: Stage) -> None:
    come(stage, 3)
    run = stage.run("evt_3")
    assert (run.status, run.parked, run.attempt_count) == (Status.DEFERRED, True, 0)
    assert run.last_error == "waits for numbers 1 to 2 of acct_1"
    assert run.waits_for == "order"
    assert len(stage.queue) == 0


def test_applying_the_predecessor_wakes_it(stage: Stage) -> None:
    come(stage, 3, 2, 1)
    assert applied(stage) == [1, 2, 3]
    assert {run.status for run in stage.runs().values()} == {Status.DONE}


def test_it_looks_again_by_itself_ever_more_rarely_until_its_timeout(stage: Stage) -> None:
    stage = Stage(sequence("account", "seq", timeout="4h"))
    come(stage, 3)
    minutes = []
    while stage.run("evt_3").status is Status.DEFERRED:
        due = stage.run("evt_3").next_attempt_at
        assert due is not None
        minutes.append((due - START) / timedelta(minutes=1))
        stage.clock.advance(seconds=(due - stage.now()).total_seconds())
        stage.reconcile()
        stage.work()
    assert minutes == [15, 30, 60, 120, 180, 240]


def test_no_run_is_woken_before_the_predecessor_is_applied(stage: Stage) -> None:
    come(stage, 3, 1)
    assert applied(stage) == [1]
    assert stage.run("evt_3").status is Status.DEFERRED


def test_a_run_that_was_woken_keeps_its_generation(stage: Stage) -> None:
    come(stage, 2)
    generation = stage.run("evt_2").generation
    come(stage, 1)
    assert stage.run("evt_2").generation == generation == 1


def test_who_waits_is_noted_as_long_as_its_run_lives(stage: Stage) -> None:
    come(stage, 7)
    (row,) = [row for row in stage.table if row["sk"].startswith("waiter#")]
    expires = stage.run("evt_7").expires_at
    assert expires is not None
    assert row["sk"] == "waiter#00000000000000000007#evt_7"
    assert row["expires_at"] == to_seconds(expires)
    assert from_ms(row["since"]) == stage.now()


def test_what_has_waited_is_forgotten_once_it_was_applied(stage: Stage) -> None:
    come(stage, 3, 2)
    assert sorted(stage.waiters()) == [2, 3]
    come(stage, 1)
    assert stage.waiters() == []


def test_numbers_are_not_ordered_as_text(stage: Stage) -> None:
    come(stage, *range(11, 0, -1))
    assert applied(stage) == list(range(1, 12))


def test_text_and_number_are_one(stage: Stage) -> None:
    stage.accept("evt_2", body("2"))
    stage.accept("evt_1", body(1))
    stage.work()
    assert applied(stage) == [1, "2"]


def test_a_skipped_run_counts_as_applied_and_wakes_its_successor(stage: Stage) -> None:
    ending(stage, Skipped("not for us"))
    come(stage, 2, 1)
    assert stage.run("evt_1").last_error == "not for us"
    assert applied(stage) == [2]


@pytest.mark.parametrize("error", [Transient("down"), ValueError("?")])
def test_a_failed_run_wakes_no_other_until_it_is_applied(
    stage: Stage, error: BaseException
) -> None:
    ending(stage, error)
    come(stage, 2, 1)
    assert stage.run("evt_2").status is Status.DEFERRED
    assert stage.run("evt_1").status is Status.FAILED
    assert "holder" not in stage.state("acct_1")
    stage.run_until_quiet()
    assert applied(stage) == [1, 2]


def test_a_deferral_of_the_handler_keeps_the_place(stage: Stage) -> None:
    ending(stage, Deferred(stage.now() + timedelta(minutes=5)))
    come(stage, 2, 1)
    assert applied(stage) == []
    stage.run_until_quiet()
    assert applied(stage) == [1, 2]


# -- twice


def test_of_two_events_with_one_number_the_second_is_skipped(stage: Stage) -> None:
    come(stage, 1)
    stage.accept("again", body(1))
    stage.work()
    assert stage.run("again").status is Status.SKIPPED
    assert stage.run("again").last_error == "already applied: number 1, and the last is 1 by evt_1"


def test_two_that_wait_with_one_number_are_both_woken(stage: Stage) -> None:
    come(stage, 2)
    stage.accept("again", body(2))
    stage.work()
    come(stage, 1)
    stage.run_until_quiet()
    assert applied(stage) == [1, 2]
    assert {stage.run(name).status for name in ("evt_2", "again")} == {Status.DONE, Status.SKIPPED}
    assert stage.now() - START < timedelta(minutes=1)
    assert stage.waiters() == []


def test_two_of_one_number_are_not_worked_on_at_once(stage: Stage) -> None:
    stage.begin("evt_1", body(1))
    stage.accept("again", body(1))
    stage.work()
    run = stage.run("again")
    assert (run.status, run.parked) == (Status.DEFERRED, False)
    assert run.last_error == "acct_1 is held by evt_1"


def test_a_copy_of_a_message_wakes_no_run_twice(stage: Stage) -> None:
    come(stage, 2)
    stage.send("evt_2")
    come(stage, 1)
    stage.send("evt_1")
    stage.work()
    assert applied(stage) == [1, 2]


# -- no wake is lost


def in_between(stage: Stage, *numbers: int) -> None:
    """Lets these numbers come and be applied before the next attempt is settled."""

    def settling() -> None:
        stage.settling = lambda: None
        come(stage, *numbers)

    stage.settling = settling


def test_a_predecessor_that_is_applied_before_the_run_is_parked_does_not_leave_it_waiting(
    stage: Stage,
) -> None:
    in_between(stage, 1)
    come(stage, 2)
    assert applied(stage) == [1, 2]


def test_a_later_look_leaves_a_run_that_has_to_wait(stage: Stage) -> None:
    in_between(stage, 1)
    come(stage, 3)
    assert applied(stage) == [1]
    assert stage.run("evt_3").status is Status.DEFERRED
    come(stage, 2)
    assert applied(stage) == [1, 2, 3]


def test_a_run_whose_number_was_applied_meanwhile_is_skipped(stage: Stage) -> None:
    def settling() -> None:
        stage.settling = lambda: None
        stage.accept("other", body(2))
        come(stage, 1)

    stage.settling = settling
    come(stage, 2)
    stage.run_until_quiet()
    assert sorted(applied(stage)) == [1, 2]
    ended = {stage.run("evt_2").status, stage.run("other").status}
    assert ended == {Status.DONE, Status.SKIPPED}


def test_only_a_run_that_came_too_early_looks_again(stage: Stage) -> None:
    come(stage, 1)
    run = stage.run("evt_1")
    calls: list[str] = []
    stage.table.faults = lambda service, operation: calls.append(operation)
    for error in (None, Transient("down"), Deferred(stage.now())):
        stage.orders.settled(error, run, lane="default")
    assert calls == []


def test_to_look_again_never_raises(stage: Stage) -> None:
    come(stage, 2)
    stage.table.faults = lambda service, operation: Fault.BEFORE
    error = OutOfTurn(stage.now(), "waits", ordering_key="acct_1", number=2)
    stage.orders.settled(error, stage.run("evt_2"), lane="default")


def test_a_run_that_is_parked_for_something_else_is_left_alone(stage: Stage) -> None:
    come(stage, 2)
    key = run_key(SOURCE, "evt_2", "shop.sync")
    stage.table.update(key, Change(set={"waits_for": "resumption"}))
    come(stage, 1)
    assert stage.run("evt_2").status is Status.DEFERRED


def test_a_run_whose_message_carries_its_wait_is_left_to_it(stage: Stage) -> None:
    come(stage, 2)
    stage.table.update(run_key(SOURCE, "evt_2", "shop.sync"), Change(remove=("parked",)))
    come(stage, 1)
    assert stage.run("evt_2").status is Status.DEFERRED
    assert len(stage.queue) == 0


def test_a_wake_that_fails_costs_the_predecessor_nothing(stage: Stage) -> None:
    come(stage, 2)
    sent: list[Fault] = []

    def faults(service: str, operation: str) -> Fault | None:
        failing = operation == "Query" and not sent
        sent.extend([Fault.BEFORE] if failing else [])
        return Fault.BEFORE if failing else None

    stage.table.faults = faults
    come(stage, 1)
    assert stage.run("evt_1").status is Status.DONE
    assert stage.run("evt_2").status is Status.DEFERRED
    stage.run_until_quiet()
    assert applied(stage) == [1, 2]


def test_a_predecessor_that_crashed_before_it_woke_its_successor_wakes_it_when_it_comes_again(
    stage: Stage,
) -> None:
    come(stage, 2)
    begun = stage.now()
    stage.begin("evt_1", body(1))
    left = [2]  # its record, and then all fails

    def faults(service: str, operation: str) -> Fault | None:
        left[0] -= 1
        return None if left[0] >= 1 else Fault.BEFORE

    stage.table.faults = faults
    stage.open[0].__exit__(None, None, None)
    stage.table.faults = lambda service, operation: None
    assert stage.state("acct_1")["applied"] == "1"
    assert stage.run("evt_1").status is Status.PROCESSING
    stage.run_until_quiet()
    assert stage.now() - begun < timedelta(minutes=15), "when it would have looked by itself"
    # A recorded run that was not settled is attempted again, as any lost attempt, and ends done.
    assert applied(stage) == [1, 2]
    assert stage.run("evt_1").status is Status.DONE


def test_a_run_that_changes_while_it_is_woken_is_left_to_that_change(stage: Stage) -> None:
    come(stage, 2)
    update = stage.table.update
    key = run_key(SOURCE, "evt_2", "shop.sync")

    def replayed_first(at: Any, change: Change, **parts: Any) -> Any:
        if at == key and change.set.get("status") == "pending":
            update(key, Change(set={"generation": 9}))
        return update(at, change, **parts)

    stage.table.update = replayed_first  # type: ignore[method-assign]
    come(stage, 1)
    assert len(stage.queue) == 0
    assert stage.run("evt_2").status is Status.DEFERRED


def test_a_wake_whose_answer_was_lost_is_recognised(stage: Stage) -> None:
    come(stage, 2)
    update = stage.table.update
    key = run_key(SOURCE, "evt_2", "shop.sync")

    def twice(at: Any, change: Change, **parts: Any) -> Any:
        if at == key and change.set.get("status") == "pending":
            update(at, change, **parts)
        return update(at, change, **parts)

    stage.table.update = twice  # type: ignore[method-assign]
    come(stage, 1)
    assert applied(stage) == [1, 2]


# -- an ordering key that changes between a look and a write


def after_reading_the_ordering_key(stage: Stage, *then: Callable[[], object]) -> None:
    """Does these, one after each read of an ordering key that follows."""
    get, left = stage.table.get, list(then)

    def read(key: Key, **parts: Any) -> Any:
        row = get(key, **parts)
        if key.pk.startswith("ordering_key#") and left:
            left.pop(0)()
        return row

    stage.table.get = read  # type: ignore[method-assign]


def test_a_run_that_was_overtaken_looks_again_at_once(stage: Stage) -> None:
    after_reading_the_ordering_key(stage, lambda: come(stage, 1))
    stage.accept("again", body(1))
    stage.work()
    assert stage.run("again").last_error.startswith("already applied: number 1")
    assert stage.run("again").generation == 0


def test_a_worker_that_records_late_is_not_overlooked(stage: Stage) -> None:
    stage.begin("evt_1", body(1))
    stage.clock.advance(seconds=71)
    late = stage.open[0]
    after_reading_the_ordering_key(stage, lambda: late.__exit__(None, None, None))
    stage.accept("again", body(1))
    stage.work()
    assert stage.run("again").last_error == (
        "already applied: number 1, and the last is 1 by evt_1"
    )
    assert applied(stage) == []


def test_an_ordering_key_that_changes_all_the_time_is_left_for_a_moment(stage: Stage) -> None:
    update = stage.table.update

    def overtaken(at: Key, change: Change, **parts: Any) -> Any:
        if at.pk.startswith("ordering_key#"):
            update(at, Change(add={"revision": 1}))
        return update(at, change, **parts)

    stage.table.update = overtaken  # type: ignore[method-assign]
    come(stage, 1)
    run = stage.run("evt_1")
    assert (run.status, run.attempt_count) == (Status.DEFERRED, 0)
    assert run.last_error == "acct_1 keeps changing"
    stage.table.update = update  # type: ignore[method-assign]
    stage.run_until_quiet()
    assert applied(stage) == [1]


# -- writes whose answer was lost, tried again by the SDK


def test_a_hold_that_was_taken_by_our_own_first_try_is_ours(stage: Stage) -> None:
    update = stage.table.update

    def twice(at: Any, change: Change, **parts: Any) -> Any:
        if at.pk.startswith("ordering_key#"):
            update(at, change, **parts)
        return update(at, change, **parts)

    stage.table.update = twice  # type: ignore[method-assign]
    come(stage, 2, 1)
    assert applied(stage) == [1, 2]
    assert stage.run("evt_1").generation == 0


def test_a_waiter_that_was_noted_by_our_own_first_try_waits_once(stage: Stage) -> None:
    put = stage.table.put

    def twice(item: Any, **parts: Any) -> None:
        try:
            put(item, **parts)
        finally:
            put(item, **parts)

    stage.table.put = twice  # type: ignore[method-assign]
    come(stage, 2)
    assert stage.run("evt_2").status is Status.DEFERRED
    assert stage.waiters() == [2]


# -- each call failing once


@pytest.mark.parametrize("fault", list(Fault))
def test_whichever_single_call_fails_all_are_applied_in_order(fault: Fault) -> None:
    for place in range(60):
        stage = Stage(sequence("account", "seq", timeout="24h"))
        calls = [0]

        def faults(
            service: str, operation: str, calls: list[int] = calls, place: int = place
        ) -> Fault | None:
            calls[0] += 1
            return fault if calls[0] == place else None

        for number in (3, 1, 2):
            stage.accept(f"evt_{number}", body(number))
        stage.table.faults = stage.queue.faults = faults
        stage.run_until_quiet()
        assert sorted(set(applied(stage))) == [1, 2, 3], place
        assert applied(stage) == sorted(applied(stage)), place
        assert stage.now() - START < AN_HOUR, "nothing waited for the timeout"
    assert calls[0] < 60, "more calls than faults"


# -- operators


def test_a_dead_predecessor_that_is_replayed_wakes_its_successor(stage: Stage) -> None:
    ending(stage, Permanent("422"))
    come(stage, 2, 1)
    assert stage.run("evt_1").status is Status.DEAD_LETTER
    assert stage.run("evt_2").status is Status.DEFERRED
    stage.replay("evt_1")
    stage.work()
    assert applied(stage) == [1, 2]


def test_a_replay_of_what_was_applied_is_skipped(stage: Stage) -> None:
    come(stage, 1, 2)
    stage.replay("evt_1")
    stage.work()
    assert stage.run("evt_1").status is Status.SKIPPED


def test_what_an_operator_forces_runs_again_and_does_not_set_the_ordering_key_back(
    stage: Stage,
) -> None:
    come(stage, 1, 2)
    stage.replay("evt_1", forced=True)
    stage.work()
    assert applied(stage) == [1, 2, 1]
    assert stage.state("acct_1")["applied"] == "2"
    assert stage.state("acct_1")["applied_by"] == "evt_2"


def test_what_was_recorded_and_not_settled_is_not_done_again_once_its_successor_has_begun(
    stage: Stage,
) -> None:
    come(stage, 2)
    stage.begin("evt_1", body(1))
    stage.open[0].__exit__(None, None, None)  # recorded, its successor woken, and then it is lost
    ending(stage, Permanent("half done"))
    stage.work()
    assert stage.run("evt_2").status is Status.DEAD_LETTER
    stage.run_until_quiet()
    assert applied(stage) == []
    assert stage.run("evt_1").status is Status.SKIPPED
    assert stage.run("evt_1").last_error.startswith("already applied: number 1")
