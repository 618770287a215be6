"""Every state an event can be in has words that say what to do, or when to look again."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webhook_inbox.model import Overview, Run, Status, StoredEvent
from webhook_inbox.next_action import next_action, replay_command, run_action

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

EVENT = StoredEvent(
    source="stripe",
    event_id="evt_1",
    type="invoice.paid",
    received_at=NOW - MINUTE,
    body=b"",
    fingerprint="f",
    headers={},
    runs=("stripe.fulfil",),
)
REPLAY = "webhookctl replay --source stripe --event-id evt_1 --handler stripe.fulfil --yes"


def run(status: Status, **changes: Any) -> Run:
    return replace(Run("stripe", "evt_1", "stripe.fulfil", "invoice.paid", status), **changes)


def overview(*runs: Run, **changes: Any) -> Overview:
    return Overview(replace(EVENT, **changes), runs)


def words(status: Status, *, limit: int | None = None, **changes: Any) -> str:
    return run_action(run(status, **changes), now=NOW, limit=limit)


# -- events


def test_an_event_without_handlers_needs_nothing() -> None:
    said = next_action(overview(runs=()), now=NOW)
    assert said == "Nothing to do: no handler wanted the type 'invoice.paid' when the event came."


def test_a_done_event_needs_nothing() -> None:
    assert next_action(overview(run(Status.DONE)), now=NOW) == "Nothing to do: every run is done."


def test_a_skipped_event_says_why() -> None:
    said = next_action(overview(run(Status.SKIPPED, last_error="no longer wanted")), now=NOW)
    assert said == "Nothing to do: stripe.fulfil is skipped (no longer wanted)."


def test_a_young_event_that_has_not_begun_is_waited_for() -> None:
    said = next_action(overview(), now=NOW)
    assert said == "Wait: stripe.fulfil was sent to the queue and has not begun."


def test_only_the_runs_without_a_row_are_named_as_not_begun() -> None:
    done = replace(run(Status.DONE), handler="stripe.welcome")
    said = next_action(overview(done, runs=("stripe.welcome", "stripe.fulfil")), now=NOW)
    assert said == "Wait: stripe.fulfil was sent to the queue and has not begun."


def test_an_older_event_that_has_not_begun_points_at_processor_and_reconciler() -> None:
    said = next_action(overview(received_at=NOW - 22 * MINUTE), now=NOW)
    assert said.startswith("Check that the processor and the reconciler run: stripe.fulfil has not")
    assert "begun 22m after the event came" in said
    assert said.endswith(f"To send it now: {REPLAY}")


def test_several_runs_that_have_not_begun_are_sent_by_one_command() -> None:
    late = overview(runs=("a.one", "a.two"), received_at=NOW - 22 * MINUTE)
    said = next_action(late, now=NOW)
    assert "a.one, a.two has not begun" in said
    assert said.endswith("webhookctl replay --source stripe --event-id evt_1 --yes")


def test_the_runs_that_decide_the_status_are_spoken_of_and_no_others() -> None:
    failed = run(Status.FAILED, next_attempt_at=NOW + MINUTE)
    dead = replace(run(Status.DEAD_LETTER, last_error="permanent: 422"), handler="stripe.welcome")
    said = next_action(overview(failed, dead), now=NOW)
    assert "stripe.welcome" in said
    assert "stripe.fulfil" not in said


def test_each_of_several_deciding_runs_is_spoken_of() -> None:
    one = run(Status.DEAD_LETTER, last_error="permanent: 422")
    two = replace(one, handler="stripe.welcome", last_error="exhausted: 503")
    said = next_action(overview(one, two), now=NOW)
    assert "Mend stripe.fulfil" in said
    assert "Mend stripe.welcome" in said


def test_a_handlers_limit_shows_where_it_is_known() -> None:
    failed = run(Status.FAILED, attempt_count=3, attempts_in_round=3, next_attempt_at=NOW + MINUTE)
    said = next_action(overview(failed), now=NOW, max_attempts={"stripe.fulfil": 8})
    assert "attempt 4 of stripe.fulfil (5 of 8 left)" in said


# -- pending


def test_a_run_sent_again_is_waited_for() -> None:
    said = words(Status.PENDING, last_at=NOW - 5 * MINUTE)
    assert said == (
        "Wait: stripe.fulfil was sent again 5m ago and has not begun; should its message be lost,"
        " the reconciler sends it in 22m."
    )


def test_a_run_sent_again_long_ago_points_at_the_processor() -> None:
    said = words(Status.PENDING, last_at=NOW - 60 * MINUTE, resends=2)
    assert said.startswith("Check that the processor runs: stripe.fulfil was sent again 1h ago")
    assert said.endswith("the reconciler has sent it again 2 times.")


# -- processing


def test_a_live_lease_is_waited_for() -> None:
    said = words(Status.PROCESSING, attempt_count=2, claimed_until=NOW + 12 * SECOND)
    assert said == "Wait: stripe.fulfil is in attempt 2, which ends in 12s at the latest."


def test_a_lease_within_the_clocks_skew_still_counts_as_live() -> None:
    said = words(Status.PROCESSING, attempt_count=2, claimed_until=NOW - 4 * SECOND)
    assert "is in attempt 2" in said


def test_an_expired_lease_says_when_the_message_comes_back() -> None:
    said = words(Status.PROCESSING, attempt_count=2, claimed_until=NOW - 41 * SECOND)
    assert said == (
        "Wait: the worker of stripe.fulfil stopped silently in attempt 2 (its lease expired"
        " 41s ago); its message comes back within 5m 19s."
    )


def test_an_expired_lease_whose_message_did_not_come_back_is_the_reconcilers() -> None:
    said = words(Status.PROCESSING, attempt_count=2, claimed_until=NOW - 7 * MINUTE)
    assert said.endswith("the reconciler sends it in 20m.")


def test_an_expired_lease_that_nobody_took_up_points_at_processor_and_reconciler() -> None:
    said = words(Status.PROCESSING, attempt_count=2, claimed_until=NOW - 57 * MINUTE)
    assert said.startswith("Check that the processor and the reconciler run: the worker of")
    assert said.endswith("it should have been sent again 30m ago.")


def test_a_reconciler_that_has_not_acted_either_is_named() -> None:
    said = words(Status.PENDING, last_at=NOW - 60 * MINUTE)
    assert said.endswith("the reconciler has not sent it again yet.")


# -- failed and deferred


def test_a_failed_run_says_when_it_is_tried_again_and_how_not_to_wait() -> None:
    said = words(Status.FAILED, attempt_count=3, next_attempt_at=NOW + 3 * MINUTE)
    assert said == (
        "Wait: attempt 4 of stripe.fulfil begins in 3m (2026-11-21T08:03:00Z)."
        f" To try at once: {REPLAY}"
    )


def test_a_parked_run_is_sent_by_the_reconciler() -> None:
    said = words(Status.FAILED, attempt_count=3, next_attempt_at=NOW + 180 * MINUTE, parked=True)
    assert "begins in 3h (2026-11-21T11:00:00Z), sent by the reconciler." in said


def test_a_parked_run_that_is_due_is_sent_within_minutes() -> None:
    said = words(Status.DEFERRED, next_attempt_at=NOW - MINUTE, parked=True)
    assert said.endswith("is due; the reconciler sends it within minutes.")


def test_a_failed_run_that_is_due_has_its_message_on_the_way() -> None:
    said = words(Status.FAILED, attempt_count=1, next_attempt_at=NOW - MINUTE)
    assert "was due 1m ago and its message is on its way" in said
    assert "the reconciler sends it in 26m." in said


def test_an_overdue_run_points_at_the_processor() -> None:
    said = words(Status.FAILED, attempt_count=1, next_attempt_at=NOW - 60 * MINUTE, resends=1)
    assert said.startswith("Check that the processor runs: attempt 2 of stripe.fulfil")
    assert "was due 1h ago, and the reconciler has sent it again once." in said


def test_no_more_attempts_are_left_than_there_are() -> None:
    said = words(Status.FAILED, limit=2, attempts_in_round=3, next_attempt_at=NOW + MINUTE)
    assert "(0 of 2 left)" in said


def test_a_deferred_run_says_what_it_waits_for() -> None:
    said = words(
        Status.DEFERRED, next_attempt_at=NOW + 3 * MINUTE, last_error="the breaker is open"
    )
    assert said == (
        "Wait: stripe.fulfil, deferred without spending an attempt, begins in 3m"
        " (2026-11-21T08:03:00Z). It waits for something outside: the breaker is open"
    )


def test_a_run_whose_handler_is_unknown_asks_for_a_deployment() -> None:
    said = words(Status.DEFERRED, unknown_since=NOW - 20 * MINUTE, next_attempt_at=NOW)
    assert said == (
        "Deploy a version that has the handler stripe.fulfil: the run is given up in 40m"
        " (2026-11-21T08:40:00Z)."
    )


# -- held and dead


def test_a_held_run_asks_for_a_decision() -> None:
    said = words(Status.HELD, last_error="needs approval")
    assert said == (
        f"Decide: stripe.fulfil waits for a person: needs approval. To let it run: {REPLAY}"
    )


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("permanent: 422", "no repetition helps as it is; mend the cause, deploy, replay it"),
        ("exhausted: 503", "every attempt failed; when the cause is gone, replay it"),
        ("expired: it waited until its event's end", "it waited for too long"),
        ("lost: sent 6 times, never received", "its messages were never received"),
        ("", "when the cause is gone, replay it"),
    ],
)
def test_a_dead_run_says_what_to_mend_by_why_it_died(error: str, remedy: str) -> None:
    said = words(Status.DEAD_LETTER, last_error=error)
    assert said.startswith(f"Mend stripe.fulfil: {remedy}")
    assert REPLAY in said
    assert said.endswith(f"(last error: {error or 'none'})")


def test_a_long_error_of_many_lines_is_told_in_short() -> None:
    said = words(Status.DEAD_LETTER, last_error="permanent: one\n  two\n" + "x" * 900)
    assert "(last error: permanent: one two xxx" in said
    assert said.endswith("x…)")
    assert len(said) < 450


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_words_even_with_nothing_else_known(status: Status) -> None:
    assert words(status).split(" ")[0] in {"Nothing", "Wait:", "Check", "Decide:", "Mend"}


def test_a_command_survives_a_shell_whatever_the_event_is_called() -> None:
    odd = replace(EVENT, event_id="a b;rm -rf $HOME'")
    command = replay_command(odd, ["stripe.fulfil"])
    assert """--event-id 'a b;rm -rf $HOME'"'"''""" in command
