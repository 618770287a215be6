"""Every state an event can be in has words that say what to do, or when to look again."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webhook_inbox.client.effects import Standing, effects_of
from webhook_inbox.client.next_action import next_steps, replay_command, run_steps
from webhook_inbox.client.suggestions import PLAIN
from webhook_inbox.domain.model import Attempt, Overview, Run, Status, StoredEvent
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.approvals.hold import ApprovalRequest

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
REPLAY = "webhookctl replay evt_1 --source stripe --handler stripe.fulfil --yes"


def run(status: Status, **changes: Any) -> Run:
    return replace(Run("stripe", "evt_1", "stripe.fulfil", "invoice.paid", status), **changes)


def overview(*runs: Run, **changes: Any) -> Overview:
    return Overview(replace(EVENT, **changes), runs)


def words(status: Status, *, limit: int | None = None, **changes: Any) -> str:
    return run_action(run(status, **changes), now=NOW, limit=limit)


def next_action(*given: Any, **options: Any) -> str:
    return " ".join(next_steps(*given, **options))


def run_action(*given: Any, **options: Any) -> str:
    return " ".join(run_steps(*given, **options))


# -- events


def test_an_event_without_handlers_needs_nothing() -> None:
    said = next_action(overview(runs=()), now=NOW)
    assert (
        said == "Nothing to do: no handler wanted the type 'invoice.paid' when the event arrived."
        " To add a handler's run: webhookctl replay evt_1 --source stripe --handler NAME"
    )


def test_a_done_event_needs_nothing() -> None:
    assert next_action(overview(run(Status.DONE)), now=NOW) == "Nothing to do: every run is done."


def test_a_skipped_event_says_why() -> None:
    said = next_action(overview(run(Status.SKIPPED, last_error="no longer wanted")), now=NOW)
    assert said == (
        "Nothing to do: stripe.fulfil is skipped (no longer wanted). To run it all the same:"
        " webhookctl replay evt_1 --source stripe --handler stripe.fulfil --force --reason TEXT"
    )


def test_a_young_event_that_has_not_begun_is_waited_for() -> None:
    said = next_action(overview(), now=NOW)
    assert said == "Wait: stripe.fulfil is queued and has not started."


def test_a_held_event_whose_runs_have_no_rows_yet_is_not_replayed() -> None:
    found = overview()
    event = replace(found.event, runs=("h",), identical_to="evt-0", held=True)
    told = next_action(replace(found, event=event), now=NOW + timedelta(hours=1))
    assert "received before as evt-0" in told
    assert "replay" not in told


def test_only_the_runs_without_a_row_are_named_as_not_begun() -> None:
    done = replace(run(Status.DONE), handler="stripe.welcome")
    said = next_action(overview(done, runs=("stripe.welcome", "stripe.fulfil")), now=NOW)
    assert said == "Wait: stripe.fulfil is queued and has not started."


def test_an_older_event_that_has_not_begun_points_at_processor_and_reconciler() -> None:
    said = next_action(overview(received_at=NOW - 22 * MINUTE), now=NOW)
    assert said.startswith("Check that the processor and the reconciler run: stripe.fulfil has not")
    assert "started 22 min after the event arrived" in said
    assert said.endswith(f"To send it now: {REPLAY}")


def test_several_runs_that_have_not_begun_are_sent_by_one_command() -> None:
    late = overview(runs=("a.one", "a.two"), received_at=NOW - 22 * MINUTE)
    said = next_action(late, now=NOW)
    assert "a.one, a.two has not started" in said
    assert said.endswith("webhookctl replay evt_1 --source stripe --yes")


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
    assert "Fix stripe.fulfil" in said
    assert "Fix stripe.welcome" in said


def test_a_handlers_limit_shows_where_it_is_known() -> None:
    failed = run(Status.FAILED, attempt_count=3, attempts_in_round=3, next_attempt_at=NOW + MINUTE)
    said = next_action(overview(failed), now=NOW, max_attempts={"stripe.fulfil": 8})
    assert "attempt 4 of stripe.fulfil (5 of 8 left)" in said


# -- pending


def test_a_run_sent_again_is_waited_for() -> None:
    said = words(Status.PENDING, last_at=NOW - 5 * MINUTE)
    assert said == (
        "Wait: stripe.fulfil was sent again 5 min ago and has not started; if its message is lost,"
        " the reconciler sends it in 22 min."
    )


def test_a_run_sent_again_long_ago_points_at_the_processor() -> None:
    said = words(Status.PENDING, last_at=NOW - 60 * MINUTE, resends=2)
    assert said.startswith("Check that the processor runs: stripe.fulfil was sent again 1 h ago")
    assert said.endswith("the reconciler has sent it again 2 times.")


# -- processing


def test_a_live_lease_is_waited_for() -> None:
    said = words(Status.PROCESSING, attempt_count=2, claimed_until=NOW + 12 * SECOND)
    assert said == "Wait: stripe.fulfil is in attempt 2, which ends in 12 s at the latest."


def test_a_lease_within_the_clocks_skew_still_counts_as_live() -> None:
    said = words(Status.PROCESSING, attempt_count=2, claimed_until=NOW - 4 * SECOND)
    assert "is in attempt 2" in said


def test_an_expired_lease_says_when_the_message_comes_back() -> None:
    said = words(Status.PROCESSING, attempt_count=2, claimed_until=NOW - 41 * SECOND)
    assert said == (
        "Wait: the worker of stripe.fulfil stopped without a result in attempt 2 (its lease expired"
        " 41 s ago); its message becomes visible again within 5 min 19 s."
    )


def test_an_expired_lease_whose_message_did_not_come_back_is_the_reconcilers() -> None:
    said = words(Status.PROCESSING, attempt_count=2, claimed_until=NOW - 7 * MINUTE)
    assert said.endswith("the reconciler sends it in 20 min.")


def test_an_expired_lease_without_a_new_attempt_points_at_processor_and_reconciler() -> None:
    said = words(Status.PROCESSING, attempt_count=2, claimed_until=NOW - 57 * MINUTE)
    assert said.startswith("Check that the processor and the reconciler run: the worker of")
    assert said.endswith("it should have been sent again 30 min ago.")


def test_a_reconciler_that_has_not_acted_either_is_named() -> None:
    said = words(Status.PENDING, last_at=NOW - 60 * MINUTE)
    assert said.endswith("the reconciler has not sent it again yet.")


# -- failed and deferred


def test_a_failed_run_says_when_it_is_tried_again_and_how_not_to_wait() -> None:
    said = words(Status.FAILED, attempt_count=3, next_attempt_at=NOW + 3 * MINUTE)
    assert said == (
        "Wait: attempt 4 of stripe.fulfil begins in 3 min (2026-11-21T08:03:00Z)."
        f" To retry now: {REPLAY}"
    )


def test_a_parked_run_is_sent_by_the_reconciler() -> None:
    said = words(Status.FAILED, attempt_count=3, next_attempt_at=NOW + 180 * MINUTE, parked=True)
    assert "begins in 3 h (2026-11-21T11:00:00Z), sent by the reconciler." in said


def test_a_parked_run_that_is_due_is_sent_within_minutes() -> None:
    said = words(Status.DEFERRED, next_attempt_at=NOW - MINUTE, parked=True)
    assert said.endswith("is due; the reconciler sends it within minutes.")


def test_a_failed_run_that_is_due_has_its_message_on_the_way() -> None:
    said = words(Status.FAILED, attempt_count=1, next_attempt_at=NOW - MINUTE)
    assert "was due 1 min ago and its message is on its way" in said
    assert "the reconciler sends it in 26 min." in said


def test_an_overdue_run_points_at_the_processor() -> None:
    said = words(Status.FAILED, attempt_count=1, next_attempt_at=NOW - 60 * MINUTE, resends=1)
    assert said.startswith("Check that the processor runs: attempt 2 of stripe.fulfil")
    assert "was due 1 h ago, and the reconciler has sent it again once." in said


def test_no_more_attempts_are_left_than_there_are() -> None:
    said = words(Status.FAILED, limit=2, attempts_in_round=3, next_attempt_at=NOW + MINUTE)
    assert "(0 of 2 left)" in said


def test_a_deferred_run_says_what_it_waits_for() -> None:
    said = words(
        Status.DEFERRED, next_attempt_at=NOW + 3 * MINUTE, last_error="the breaker is open"
    )
    assert said == (
        "Wait: stripe.fulfil, deferred without an attempt, begins in 3 min"
        " (2026-11-21T08:03:00Z). It waits for something outside: the breaker is open"
    )


def test_a_run_whose_handler_is_unknown_asks_for_a_deployment() -> None:
    said = words(Status.DEFERRED, unknown_since=NOW - 20 * MINUTE, next_attempt_at=NOW)
    assert said == (
        "Deploy a version that has the handler stripe.fulfil: the run is given up in 40 min"
        " (2026-11-21T08:40:00Z)."
    )


# -- held


def held(**changes: Any) -> Run:
    about = {"subject": "effect:refund", "reason": "refund started and did not commit"}
    asked = {**about, "shows": '{"amount": 42}', "fingerprint": "f", "at": to_ms(NOW - MINUTE)}
    return run(Status.HELD, held={**asked, **changes}, attempt_count=1)


def answer(verb: str, of: Run) -> str:
    return (
        f"webhookctl hold {verb} evt_1 --source stripe --handler stripe.fulfil"
        f" --hold {ApprovalRequest(of).id} --reason TEXT"
    )


def test_a_held_run_asks_for_a_decision_and_names_the_commands() -> None:
    asked = held(subject="policy", reason="over 1000 EUR", shows="")
    assert run_action(asked, now=NOW) == (
        "Decide: stripe.fulfil waits for approval: over 1000 EUR."
        f" To approve: {answer('approve', asked)} To deny: {answer('deny', asked)}"
    )


def test_a_held_run_shows_what_is_decided_about() -> None:
    asked = held(subject="policy")
    assert (
        """approval: refund started and did not commit. It shows {"amount": 42}. To approve"""
        in (run_action(asked, now=NOW))
    )


def test_a_run_that_is_held_without_a_word_says_its_last_error() -> None:
    said = words(Status.HELD, last_error="needs approval")
    assert said.startswith("Decide: stripe.fulfil waits for approval: needs approval.")


def test_a_held_effect_in_doubt_has_three_answers() -> None:
    asked = held()
    said = next_action(Overview(EVENT, (asked,), (row("refund"),)), now=NOW)
    approve = answer("approve", asked)
    assert "Ask the destination, once its slow calls have ended, whether refund happened." in said
    again = "do it again with the same key (twice where the destination ignores keys)"
    assert f"If not, {again}: {approve} To deny:" in said
    told = "If it happened, record its result, as in a run that is done:"
    assert f"{told} {approve} --happened --result JSON If not" in said
    assert f"To deny: {answer('deny', asked)} Effects:" in said


def test_an_effect_that_happened_without_a_record_asks_what_it_was() -> None:
    asked = held()
    done = row("refund", status="committed", unrecorded="its result has 400 KB")
    said = next_action(Overview(EVENT, (asked,), (done,)), now=NOW)
    assert f"To record its result: {answer('approve', asked)} --happened --result JSON" in said
    assert "again with the same key" not in said


def test_a_command_that_answers_survives_a_shell() -> None:
    odd = replace(held(), event_id="a b;rm -rf $HOME'")
    assert """hold approve 'a b;rm -rf $HOME'"'"'' --source""" in run_action(odd, now=NOW)


# -- what it waits for


def test_a_run_that_waits_for_a_destination_names_it() -> None:
    said = words(
        Status.DEFERRED,
        next_attempt_at=NOW + MINUTE,
        waits_for="destination crm",
        last_error="circuit open",
    )
    assert said.endswith("It waits for destination crm: circuit open")


def test_a_run_of_a_paused_handler_says_how_to_resume_it() -> None:
    said = words(
        Status.DEFERRED,
        next_attempt_at=NOW + MINUTE,
        parked=True,
        waits_for="resumption",
        last_error="handler stripe.fulfil is paused: the CRM moves",
    )
    assert said == (
        "Resume: stripe.fulfil was paused (handler stripe.fulfil is paused: the CRM moves); its"
        " run continues within two minutes of: webhookctl handlers resume stripe.fulfil"
        " To see the pause: webhookctl handlers list"
    )


# -- what is said of effects


def row(name: str, **changes: Any) -> dict[str, Any]:
    """Returns an effect's row, in doubt unless told otherwise."""
    return {
        "pk": "event#stripe#evt_1",
        "sk": f"effect#stripe.fulfil#{name}",
        "name": name,
        "status": "started",
        "source": "stripe",
        "event_id": "evt_1",
        "handler": "stripe.fulfil",
        "lease_id": "lease-1",
        "started_at": to_ms(NOW - 60 * MINUTE),
        "doubtful_since": to_ms(NOW - 60 * MINUTE),
        "busy_until": to_ms(NOW - 59 * MINUTE),
        "in_doubt": "retry",
        "key_lifetime": 86400,
        **changes,
    }


def told(*rows: dict[str, Any], status: Status = Status.FAILED, **changes: Any) -> str:
    """Returns what is said of the effects of a run in this status."""
    one = run(status, attempt_count=1, next_attempt_at=NOW + MINUTE, **changes)
    said = next_action(Overview(EVENT, (one,), rows), now=NOW)
    return said.partition(" Effects: ")[2]


def test_a_run_whose_effects_failed_for_certain_is_retry_safe() -> None:
    assert told(row("create-order", status="failed")) == ("retry-safe, side effect not committed.")


def test_a_run_that_began_no_effect_says_so() -> None:
    assert told() == "retry-safe, side effect not committed: none was begun with ctx.effect."


def test_a_committed_effect_is_named_as_not_repeated() -> None:
    done = row("create-order", status="committed")
    assert told(done) == "retry-safe: create-order is committed and will not be repeated."


@pytest.mark.parametrize(
    ("status", "number", "effect"),
    [("again", 1, "transfer"), ("failed", 1, "transfer"), ("again", 2, "transfer:2")],
)
def test_a_job_that_failed_is_started_anew_by_a_retry(
    status: str, number: int, effect: str
) -> None:
    """It was started, and that is committed; but a retry is not without effect."""
    pk = row("order")["pk"]
    job = {"pk": pk, "sk": f"wait#stripe.fulfil#{effect}", "name": "transfer"}
    job |= {"handler": "stripe.fulfil", "since": to_ms(NOW), "until": to_ms(NOW + MINUTE)}
    job |= {"status": status, "number": number}
    rows = (row("order", status="committed"), row(effect, status="committed"))
    one = run(Status.FAILED, attempt_count=1, next_attempt_at=NOW + MINUTE)
    said = next_action(Overview(EVENT, (one,), rows, (job,)), now=NOW)
    assert said.endswith(
        f"Effects: the job that {effect} started has failed: a retry starts another; order is"
        " committed and will not be repeated."
    )
    waiting = {**job, "status": "waiting"}
    calm = next_action(Overview(EVENT, (one,), rows, (waiting,)), now=NOW)
    assert "retry-safe" in calm


def test_what_is_committed_and_what_is_not_are_told_apart() -> None:
    rows = (row("order", status="committed"), row("note", status="failed"))
    more = row("mail", status="committed", started_at=to_ms(NOW - 30 * MINUTE))
    assert told(*rows, more) == (
        "retry-safe: order, mail are committed and will not be repeated; note is not committed."
    )


def test_an_effect_in_doubt_says_until_when_its_key_is_honoured() -> None:
    assert told(row("create-order")) == (
        "in doubt since 2026-11-21T07:00:00Z: create-order started and did not commit; its key is"
        " honoured until 2026-11-22T07:00:00Z: a retry that ends before then repeats it under the"
        " same key, a later one asks its probe, or holds the run."
    )


def test_an_effect_that_an_error_left_in_doubt_shows_the_last_error() -> None:
    doubted = row("create-order", error="crm: POST /orders answered 422:\n the key was used")
    assert "did not commit (last error: crm: POST /orders answered 422: the key was used); its" in (
        told(doubted, status=Status.DEAD_LETTER)
    )
    assert "did not commit (last error: crm: POST /orders answered 422: the key was used); its" in (
        told(doubted | {"key_lifetime": 3600}, status=Status.DEAD_LETTER)
    )
    assert "(last error: crm: POST /orders answered 422: the key was used), and is not repea" in (
        told(doubted | {"in_doubt": "hold"}, status=Status.DEAD_LETTER)
    )
    assert len(told(doubted | {"error": "x" * 512})) < 450


def test_beyond_its_keys_lifetime_a_person_decides() -> None:
    assert told(row("create-order", key_lifetime=3600)) == (
        "in doubt since 2026-11-21T07:00:00Z, beyond its key's lifetime: create-order started and"
        " did not commit; its key was honoured until 2026-11-21T08:00:00Z; the next attempt asks"
        " its probe, or holds the run: see `webhookctl hold list`."
    )


def test_a_moment_before_that_a_retry_still_repeats_it() -> None:
    assert "repeats it under the same key" in told(row("create-order", key_lifetime=3601))


def test_an_effect_that_is_not_repeated_by_itself_says_so() -> None:
    assert told(row("create-order", in_doubt="hold")) == (
        "in doubt since 2026-11-21T07:00:00Z: create-order started and did not commit, and is not"
        " repeated by itself; the next attempt asks its probe, or holds the run: see `webhookctl"
        " hold list`."
    )


def test_of_a_held_run_the_commands_stand_above() -> None:
    said = next_action(Overview(EVENT, (held(),), (row("refund", in_doubt="hold"),)), now=NOW)
    assert said.endswith(
        "decide with `webhookctl hold approve` or `webhookctl hold deny`, as above."
    )


def test_doubt_outweighs_what_is_committed() -> None:
    said = told(row("order", status="committed"), row("note"), row("mail"))
    assert "retry-safe" not in said
    assert said.count("in doubt since ") == 2


def test_an_effect_that_waits_for_approval_is_not_committed() -> None:
    said = next_action(Overview(EVENT, (held(),), ()), now=NOW)
    assert said.endswith("Effects: retry-safe, side effect not committed.")


@pytest.mark.parametrize("status", [Status.DONE, Status.SKIPPED])
def test_a_finished_run_is_not_judged(status: Status) -> None:
    assert told(row("create-order"), status=status) == ""


def test_while_its_attempt_is_on_nothing_is_in_doubt() -> None:
    busy = row("create-order", busy_until=to_ms(NOW + MINUTE))
    live = {"claimed_until": NOW + MINUTE, "lease_id": "lease-1"}
    assert told(busy, status=Status.PROCESSING, **live) == ""


def test_an_effect_of_a_worker_that_was_lost_is_in_doubt() -> None:
    lost = {"claimed_until": NOW - MINUTE, "lease_id": "lease-1"}
    said = told(row("order"), status=Status.PROCESSING, **lost)
    assert said.startswith("in doubt since 2026-11-21T07:00:00Z: order")


def test_an_effect_of_an_attempt_that_failed_is_in_doubt_though_its_lease_would_last() -> None:
    busy = row("order", busy_until=to_ms(NOW + MINUTE))
    said = told(busy, lease_id="lease-1")
    assert said.startswith("in doubt since 2026-11-21T07:00:00Z: order")


def test_a_shared_effect_that_another_event_is_at_is_under_way() -> None:
    busy = row("order", event_id="evt_2", busy_until=to_ms(NOW + MINUTE))
    overview = Overview(EVENT, (run(Status.FAILED),), (busy,))
    [effect] = effects_of(overview, "stripe.fulfil", now=NOW)
    assert effect.state is Standing.UNDER_WAY
    later = NOW + 2 * MINUTE
    assert effects_of(overview, "stripe.fulfil", now=later)[0].state is Standing.IN_DOUBT


def test_each_handler_has_its_own_effects() -> None:
    other = row("order") | {"sk": "effect#stripe.welcome#order"}
    overview = Overview(EVENT, (run(Status.FAILED),), (other,))
    assert effects_of(overview, "stripe.fulfil", now=NOW) == []


def test_a_batch_that_is_split_has_no_effects_to_judge() -> None:
    split = replace(run(Status.FAILED, attempt_count=1), handler="split")
    assert "Effects:" not in next_action(Overview(EVENT, (split,), ()), now=NOW)


# -- dead


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("permanent: 422", "retrying will not help; fix the cause, deploy, replay it"),
        ("exhausted: 503", "every attempt failed; after fixing the cause, replay it"),
        ("expired: it waited until its event's end", "it waited for too long"),
        ("lost: sent 6 times, never received", "its messages were never received"),
        ("", "after fixing the cause, replay it"),
    ],
)
def test_a_dead_run_says_what_to_mend_by_why_it_died(error: str, remedy: str) -> None:
    said = words(Status.DEAD_LETTER, last_error=error)
    assert said.startswith(f"Fix stripe.fulfil: {remedy}")
    assert REPLAY in said
    assert said.endswith(REPLAY)


def test_the_attempts_left_are_those_that_the_error_allows() -> None:
    attempts = tuple(Attempt(n, NOW, NOW, "failed", "no such host") for n in (1, 2))
    options = {"attempts": attempts, "attempts_in_round": 2, "last_error": "no such host"}
    assert "(1 of 3 left)" in words(
        Status.FAILED, limit=8, attempt_limit=3, next_attempt_at=NOW, **options
    )


def test_a_long_error_of_many_lines_is_told_in_short() -> None:
    said = words(Status.SKIPPED, last_error="closed: one\n  two\n" + "x" * 900)
    assert "is skipped (closed: one two xxx" in said
    assert "x…). To run it" in said
    assert len(said) < 450


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_words_even_with_nothing_else_known(status: Status) -> None:
    assert words(status).split(" ")[0] in {"Nothing", "Wait:", "Check", "Decide:", "Fix"}


def test_a_command_survives_a_shell_whatever_the_event_is_called() -> None:
    odd = replace(EVENT, event_id="a b;rm -rf $HOME'")
    command = replay_command(odd, ["stripe.fulfil"], PLAIN)
    assert """replay 'a b;rm -rf $HOME'"'"''""" in command
