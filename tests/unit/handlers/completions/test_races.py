"""Whenever a job ends, and whichever call fails then: its run goes on, once."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.handlers.completions.job_stage import Labour
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.model import Status
from webhook_inbox.handlers.completions.receiver import CompletionOutcome

FAULTS = [Fault.BEFORE, Fault.AFTER]
# The calls that a completion makes, in order.
CALLS = ["GetItem", "GetItem", "UpdateItem", "GetItem", "UpdateItem", "SendMessageBatch"]


@pytest.fixture
def labour() -> Labour:
    return Labour()


def finish(labour: Labour) -> None:
    """Lets everything happen that happens by itself; one result was returned in the end."""
    labour.world.run_until_quiet()
    assert labour.world.run().status is Status.DONE
    assert labour.returned == [{"pages": 3}]
    assert len(labour.started) == 1


def test_a_job_that_ends_while_it_is_started(labour: Labour) -> None:
    """Its end is there before its start is recorded, and long before the run waits."""

    def at_once(key: Any, token: Any) -> Any:
        assert labour.complete() is CompletionOutcome.RECORDED
        return {"job": key}

    labour.starting = at_once
    labour.begin()

    # The run looks once more when it has been parked, so it does not wait for a quarter of an hour.
    assert labour.returned == [{"pages": 3}]
    finish(labour)


def test_a_job_that_ends_while_its_run_goes_to_wait(labour: Labour) -> None:
    done: list[CompletionOutcome] = []

    def meanwhile(wait: Callable[[], Any]) -> Any:
        try:
            return wait()
        finally:
            if not done:
                done.append(labour.complete())

    labour.around = meanwhile
    labour.begin()

    assert done == [CompletionOutcome.RECORDED]
    assert labour.returned == [{"pages": 3}]
    finish(labour)


def test_a_worker_that_dies_before_it_looks_again_costs_a_quarter_of_an_hour(
    labour: Labour,
) -> None:
    def meanwhile(wait: Callable[[], Any]) -> Any:
        try:
            return wait()
        finally:
            if labour.row["status"] == "waiting":
                labour.complete()
                # Its own settling goes through; what it looks at afterwards does not.
                labour.world.plan.fail("GetItem", times=1)

    labour.around = meanwhile
    labour.begin()
    assert labour.world.run().status is Status.DEFERRED
    labour.world.plan.heal()

    labour.pass_seconds(15 * 60 + 1)
    finish(labour)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", range(len(CALLS)))
def test_each_call_of_a_completion_may_fail_and_its_repetition_heals(
    labour: Labour, call: int, fault: Fault
) -> None:
    labour.begin()
    labour.world.plan.operations()
    operation = CALLS[call]
    labour.world.plan.fail(operation, fault, skip=CALLS[:call].count(operation))

    assert labour.complete() is CompletionOutcome.UNAVAILABLE
    labour.world.plan.heal()
    assert labour.complete() in {CompletionOutcome.RECORDED, CompletionOutcome.REPEATED}
    labour.world.work()

    assert labour.returned == [{"pages": 3}]
    finish(labour)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", range(3, len(CALLS)))
def test_what_was_recorded_is_found_without_a_repetition(
    labour: Labour, call: int, fault: Fault
) -> None:
    """The job's worker is gone, and the completion is not repeated."""
    labour.begin()
    operation = CALLS[call]
    labour.world.plan.fail(operation, fault, skip=CALLS[:call].count(operation))
    assert labour.complete() is CompletionOutcome.UNAVAILABLE
    labour.world.plan.heal()

    finish(labour)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("call", range(12))
def test_each_call_of_the_run_may_fail(labour: Labour, call: int, fault: Fault) -> None:
    """The first attempt's and the last one's; the job is started under one key and one token."""
    labour.allow(9)
    labour.world.deliver()
    for operation in ("GetItem", "UpdateItem", "SendMessageBatch"):
        labour.world.plan.fail(operation, fault, skip=call)
    for _ in range(30):
        labour.pass_seconds(60)
        if labour.started:
            break
    labour.world.plan.heal()
    while labour.world.overview().status != "deferred":
        labour.pass_seconds(400)
    assert labour.complete() in {CompletionOutcome.RECORDED, CompletionOutcome.REPEATED}
    labour.world.run_until_quiet()

    assert labour.returned == [{"pages": 3}]
    assert len(set(labour.started)) == 1


def test_two_equal_ends_at_once_are_one(labour: Labour) -> None:
    labour.begin()
    raced: list[CompletionOutcome] = []

    def race(service: str, operation: str) -> None:
        if operation == "UpdateItem" and not raced:
            raced.append(CompletionOutcome.RECORDED)
            raced[0] = labour.complete()

    watch(labour, race)
    assert labour.complete() is CompletionOutcome.RECORDED
    assert raced == [CompletionOutcome.RECORDED]
    finish(labour)


def test_of_two_different_ends_at_once_the_first_counts(labour: Labour) -> None:
    labour.begin()
    raced: list[CompletionOutcome] = []

    def race(service: str, operation: str) -> None:
        if operation == "UpdateItem" and not raced:
            raced.append(CompletionOutcome.RECORDED)
            raced[0] = labour.complete()

    watch(labour, race)
    assert labour.complete(body={"result": "mine"}) is CompletionOutcome.CONFLICT
    assert raced == [CompletionOutcome.RECORDED]
    finish(labour)


def test_a_job_that_ends_as_its_time_does_has_ended() -> None:
    labour = Labour(timeout="1h")
    labour.begin()
    labour.world.clock.advance(minutes=59)
    labour.world.work()
    labour.world.clock.advance(minutes=2)
    raced: list[CompletionOutcome] = []

    def race(service: str, operation: str) -> None:
        expiring = operation == "UpdateItem" and len(labour.started) == 1
        if expiring and labour.world.run().status is Status.PROCESSING and not raced:
            raced.append(CompletionOutcome.RECORDED)
            raced[0] = labour.complete()

    watch(labour, race)
    labour.world.work()
    assert raced == [CompletionOutcome.RECORDED]
    finish(labour)


def test_a_run_that_is_replayed_while_it_waits_is_not_sent_twice_for_it(labour: Labour) -> None:
    labour.begin()
    labour.world.replay(requested_by="kim", reason="hurry", event_ids=["evt-1"], source="acme")
    assert labour.complete() is CompletionOutcome.RECORDED
    labour.world.work()

    finish(labour)


def test_the_reconciler_finds_a_run_whose_messages_are_all_lost(labour: Labour) -> None:
    labour.begin()
    labour.world.drop_messages()
    labour.complete()
    labour.world.drop_messages()

    finish(labour)


def watch(labour: Labour, before: Callable[[str, str], None]) -> None:
    """Lets something else happen right before a call."""
    plan = labour.world.plan

    def observed(service: str, operation: str) -> Any:
        labour.world.table.faults = plan
        try:
            before(service, operation)
        finally:
            labour.world.table.faults = observed
        return plan(service, operation)

    labour.world.table.faults = observed
