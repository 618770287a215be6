"""The explanation of a run that waits for a job."""

import pytest

from tests.unit.handlers.completions.job_stage import Labour
from webhook_inbox.client.next_action import next_steps


@pytest.fixture
def labour() -> Labour:
    return Labour()


def told(labour: Labour) -> str:
    return " ".join(next_steps(labour.world.overview(), now=labour.world.now))


def test_it_is_named_with_its_times_and_the_command_that_completes_it(labour: Labour) -> None:
    labour.begin()

    assert told(labour).startswith(
        "Wait: acme.fulfil continues when its job render is completed"
        " (started 2026-01-01T00:00:00Z, to end by 2026-01-02T00:00:00Z);"
        " it checks by itself in 15 min. To record the result: webhookctl complete evt-1"
        " --source acme --handler acme.fulfil --effect render --result JSON"
    )
    assert told(labour).endswith("retry-safe: render is committed and will not be repeated.")


def test_a_look_that_is_due_is_not_announced(labour: Labour) -> None:
    labour.begin()
    labour.world.clock.advance(minutes=20)

    assert "checks by itself" not in told(labour)


def test_a_completed_run_has_nothing_to_do(labour: Labour) -> None:
    labour.begin()
    labour.complete()
    labour.world.work()

    assert told(labour) == "Nothing to do: every run is done."


def test_the_ledger_tells_the_waits_of_an_event(labour: Labour) -> None:
    labour.begin()
    (row,) = labour.world.overview().waits
    assert (row["name"], row["status"]) == ("render", "waiting")
