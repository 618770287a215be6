"""A run waits for its job, spends no attempt on it, and gets its result once and for ever."""

from datetime import timedelta

import pytest

from tests.unit.waits.labour import Labour
from webhook_inbox.completions import Outcome
from webhook_inbox.model import Status


@pytest.fixture
def labour() -> Labour:
    return Labour()


def test_a_run_waits_without_spending_an_attempt(labour: Labour) -> None:
    labour.begin()

    run = labour.world.run()
    assert (run.status, run.attempt_count, run.waits_for) == (
        Status.DEFERRED,
        0,
        "completion of render",
    )
    assert labour.returned == []


def test_a_completed_job_gives_its_result_at_once(labour: Labour) -> None:
    labour.begin()

    assert labour.complete() is Outcome.RECORDED
    labour.world.work()

    assert labour.returned == [{"pages": 3}]
    run = labour.world.run()
    assert (run.status, run.attempt_count) == (Status.DONE, 1)
    assert len(labour.started) == 1


def test_it_looks_by_itself_every_quarter_of_an_hour(labour: Labour) -> None:
    labour.begin()

    due = labour.world.run().next_attempt_at
    assert due is not None
    assert due - labour.world.now <= timedelta(minutes=15)
    assert not labour.world.run().parked
