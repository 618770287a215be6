"""Runs in memory: the real code from a delivery to a settled run."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.testing.shop import broken, fulfil, shop
from webhook_inbox.domain.model import Status
from webhook_inbox.ledger.schema import event_key
from webhook_inbox.testing import Fake, Inbox, KitError


@pytest.fixture
def crm() -> Fake:
    return Fake()


@pytest.fixture
def inbox(crm: Fake) -> Inbox:
    return Inbox(shop, destinations={"crm": crm, "old": Fake(idempotency=False)})


def test_a_handler_is_run_in_one_line(inbox: Inbox, crm: Fake) -> None:
    run = inbox.run("shop.fulfil", {"id": "evt-9", "sku": "cups"})

    assert (run.status, run.error, run.attempts) == ("done", "", 1)
    order = run.effects["order"]
    assert (order.committed, order.starts, order.result) == (True, 1, {"id": "crm-1"})
    assert order.key == "order:shop.fulfil:shop:evt-9"
    assert [(r.method, r.path, r.json) for r in crm.done] == [
        ("POST", "/orders", {"sku": "cups"}),
        ("POST", "/notes", {"order": "crm-1"}),
    ]
    assert crm.requests[0].key == order.key
    assert list(run.effects) == ["note", "order"]


def test_the_function_itself_names_its_handler(inbox: Inbox) -> None:
    assert inbox.run(fulfil, {}).handler == "shop.fulfil"


def test_a_failed_attempt_is_due_again_and_settling_makes_it(inbox: Inbox, crm: Fake) -> None:
    crm.answers(500)

    run = inbox.run("shop.fulfil", {})

    assert run.status is Status.FAILED
    assert run.error == "crm: POST /orders answered 500"
    assert run.due is not None
    assert run.effects["order"].in_doubt
    assert run.settle().status == "done"
    assert (run.attempts, run.effects["order"].starts, len(crm.done)) == (2, 2, 2)
    assert inbox.now >= run.row.attempts[0].ended_at


def test_a_run_that_never_succeeds_is_dead_and_can_be_replayed(inbox: Inbox) -> None:
    run = inbox.run(broken, {}).settle()

    assert (run.status, run.attempts) == ("dead_letter", 2)
    assert run.error == "exhausted: it is raining"
    assert run.replay().settle().attempts == 4


def test_what_is_wrong_for_good_is_dead_at_once(inbox: Inbox) -> None:
    run = inbox.run("shop.wrong", {})
    assert (run.status, run.error) == ("dead_letter", "permanent: no such thing")


def test_a_run_that_is_done_is_replayed_by_force_alone(inbox: Inbox, crm: Fake) -> None:
    run = inbox.run("shop.fulfil", {})

    assert run.replay().attempts == 1
    assert run.replay(force=True).attempts == 2
    assert len(crm.requests) == 2


def test_a_duplicate_is_no_second_run(inbox: Inbox, crm: Fake) -> None:
    run = inbox.run("shop.fulfil", {})

    assert run.redeliver() == "duplicate"

    assert (run.attempts, len(crm.requests)) == (1, 2)


def test_an_effect_waits_for_approval(inbox: Inbox) -> None:
    run = inbox.run("shop.refund", {"amount": 7})

    assert run.status == "held"
    assert run.error == "effect 'refund' waits for approval"
    assert run.row.held["shows"] == '{"amount": 7}'
    assert "refund" not in run.effects
    assert run.approve().status == "done"
    assert run.effects["refund"].result == {"refunded": 7}


def test_what_is_denied_is_skipped(inbox: Inbox) -> None:
    run = inbox.run("shop.refund", {"amount": 7}).deny("too much")

    assert run.status == "skipped"
    assert run.error == "denied by tester: too much"


def test_a_policy_is_asked_first(inbox: Inbox) -> None:
    run = inbox.run("shop.ask", {})
    assert (run.status, run.error) == ("held", "who is that?")
    assert run.approve().effects["greet"].result == "hello"


def test_a_person_may_say_that_an_effect_in_doubt_has_happened(inbox: Inbox) -> None:
    old = inbox.destinations["old"].stalls()
    run = inbox.run("shop.keyless", {}).settle()
    assert run.status == "held"
    assert "it is unknown whether it happened" in run.error

    run.happened({"status": 200, "headers": {}, "text": "printed"})

    assert run.status == "done"
    assert len(old.requests) == 1


def test_a_keyless_effect_that_did_not_happen_is_made_on_approval(inbox: Inbox) -> None:
    old = inbox.destinations["old"].stalls(done=False)
    run = inbox.run("shop.keyless", {}).settle().approve()
    assert (run.status, len(old.done)) == ("done", 1)


def test_a_run_that_was_not_held_cannot_be_decided_about(inbox: Inbox) -> None:
    run = inbox.run("shop.fulfil", {})
    with pytest.raises(KitError, match=r"it is not held: HandlerRun\(shop.fulfil of evt-1: done\)"):
        run.approve()


def test_a_deferred_run_waits_as_long_as_it_said(inbox: Inbox) -> None:
    run = inbox.run("shop.wait", {})
    assert (run.status, run.attempts) == ("deferred", 0)

    inbox.advance(hours=1, minutes=59)
    assert run.status == "deferred"


def test_settling_a_run_that_waits_in_a_circle_says_so(inbox: Inbox) -> None:
    inbox.run("shop.never", {}, event_id="evt-1")
    with pytest.raises(KitError, match="a run still waits after 2000 steps in time"):
        inbox.settle()


def test_a_job_that_takes_longer_is_completed(inbox: Inbox) -> None:
    run = inbox.run("shop.job", {})
    assert run.status == "deferred"

    run.complete("render", {"pages": 3}).settle()

    assert run.status == "done"
    assert run.effects["file"].result == {"pages": 3}


def test_a_job_that_failed_ends_its_run(inbox: Inbox) -> None:
    run = inbox.run("shop.job", {}).fail("render", "no paper").settle()
    assert run.status == "dead_letter"
    assert "no paper" in run.error


def test_a_job_without_a_waiting_run_cannot_be_completed(inbox: Inbox) -> None:
    run = inbox.run("shop.fulfil", {})
    with pytest.raises(KitError, match=r"no run waits for it: unknown: shop.fulfil has never"):
        run.complete("render")


def test_secrets_are_given_and_rotated(crm: Fake) -> None:
    inbox = Inbox(shop, destinations={"crm": crm}, secrets={"password": "abc"})
    assert inbox.run("shop.whisper", {}).effects["whisper"].result == {"letters": 3}

    inbox.secrets.rotate("password", "abcdef")
    inbox.advance(minutes=2)

    assert inbox.run("shop.whisper", {}).effects["whisper"].result == {"letters": 6}


def test_a_secret_that_is_not_set_is_a_failure_as_in_production(inbox: Inbox) -> None:
    run = inbox.run("shop.whisper", {})
    assert run.error == "secret 'password' is not set: webhookctl secrets set password"


def test_the_time_is_what_the_test_says() -> None:
    at = datetime(2027, 3, 28, 1, tzinfo=UTC)
    inbox = Inbox(shop, destinations={"crm": Fake()}, at=at)
    run = inbox.run("shop.fulfil", {})
    inbox.advance(days=1, seconds=5)
    assert run.row.done_at == at + timedelta(milliseconds=1)
    assert inbox.now == at + timedelta(days=1, seconds=5.001)


def test_effects_print_what_they_are(inbox: Inbox) -> None:
    effects = inbox.run("shop.refund", {"amount": 7}).approve().effects
    assert repr(effects) == (
        "Effects([Effect(name='refund', status='committed',"
        " key='refund:shop.refund:shop:evt-1', starts=1, result={'refunded': 7}, error='')])"
    )


def test_what_has_expired_is_gone(inbox: Inbox) -> None:
    run = inbox.run("shop.fulfil", {})
    inbox.advance(days=36)
    with pytest.raises(KitError, match=r"no event 'evt-1' of 'shop': it has expired"):
        assert run.status


def test_an_effect_that_is_not_there_is_named_with_those_that_are(inbox: Inbox) -> None:
    run = inbox.run("shop.fulfil", {})
    with pytest.raises(
        KitError, match=r"no effect 'oder' \(did you mean \"order\"\?\); there are: note, order"
    ):
        run.effects["oder"]
    assert ("oder" in run.effects, "order" in run.effects, len(run.effects)) == (False, True, 2)


def test_an_event_of_another_type_is_refused(inbox: Inbox) -> None:
    with pytest.raises(KitError, match=r"shop.fulfil takes paid, and this is 'lost'"):
        inbox.run("shop.fulfil", {"type": "lost"})


def test_a_handler_that_is_not_there_is_refused(inbox: Inbox) -> None:
    with pytest.raises(KitError, match=r'no handler .*\(did you mean "shop.fulfil"\?\)'):
        inbox.run("shop.fulfill", {})


def test_another_body_under_a_known_id_is_no_event(inbox: Inbox) -> None:
    inbox.run("shop.fulfil", {"sku": "tea"}, event_id="evt-1")
    with pytest.raises(KitError, match=r"\(conflict\): evt-\S+ was received before with another"):
        inbox.run("shop.fulfil", {"sku": "cups"}, event_id="evt-1")


def test_headers_and_agent_are_the_events(crm: Fake) -> None:
    inbox = Inbox(shop, destinations={"crm": crm})
    trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

    run = inbox.run("shop.fulfil", {}, headers={"traceparent": trace}, agent="planner")

    assert crm.requests[0].headers["traceparent"].split("-")[1] == trace.split("-")[1]
    event = inbox.table.get(event_key("shop", run.event_id)) or {}
    assert event["agent"] == "planner"


def test_all_runs_of_a_handler_are_listed(inbox: Inbox) -> None:
    for _ in range(3):
        inbox.run("shop.fulfil", {})
    assert {run.event_id for run in inbox.runs("shop.fulfil")} == {"evt-1", "evt-2", "evt-3"}
