"""A verified event is stored once and handled once, however often it is delivered."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.e2e.inquiry import fresh
from tests.e2e.project import REPOSITORY
from tests.e2e.whole_inbox import WholeInbox

SAMPLES = REPOSITORY / "events" / "ingest"


def sample(source: str, name: str, **changes: Any) -> dict[str, Any]:
    return {**json.loads((SAMPLES / source / f"{name}.json").read_text()), **changes}


def unique_issue() -> dict[str, Any]:
    """GitHub signs no id: each test needs a body of its own."""
    issue = sample("github", "issues.opened__label")
    issue["issue"]["title"] = fresh()
    return issue


def events() -> list[Any]:
    """(source, type, body, id, expected effects as path and number)"""
    stripe, slack, github = fresh(), fresh(), fresh()
    invoice = sample("stripe", "invoice.payment_succeeded__subscription", id=stripe)
    invoice["data"]["object"]["id"] = stripe  # its effect is named after the invoice
    mention = sample("slack", "app_mention__channel", event_id=slack)
    return [
        pytest.param(
            "github", "issues.opened", unique_issue(), github, ["/counts", "/messages"], id="github"
        ),
        pytest.param(
            "stripe", "invoice.payment_succeeded", invoice, stripe, ["/orders"], id="stripe"
        ),
        pytest.param("slack", "app_mention", mention, slack, ["/agent/tasks"], id="slack"),
    ]


@pytest.mark.parametrize(("source", "type_", "body", "event_id", "paths"), events())
def test_an_event_delivered_five_times_at_once_is_handled_once(
    inbox: WholeInbox, source: str, type_: str, body: Any, event_id: str, paths: list[str]
) -> None:
    answers = inbox.deliver_times(5, source, type_, body, event_id=event_id)

    outcomes = Counter(answer.json["status"] for answer in answers)
    # An answer that was lost and asked for again may have been the one that accepted.
    lost = any(answer.sendings > 1 for answer in answers)
    assert outcomes == {"accepted": 1, "duplicate": 4} or (lost and outcomes == {"duplicate": 5})
    assert {answer.json["event_id"] for answer in answers} == {event_id}
    found = inbox.settled(source, event_id)
    assert found.event.type == type_
    assert json.loads(found.event.body) == body
    assert [run.attempt_count for run in found.runs] == [1] * len(paths)
    effects = inbox.effects(event_id).values()
    assert sorted(effect["path"] for effect in effects) == paths
    assert {effect["requests"] for effect in effects} == {1}


def test_a_delivery_after_the_work_is_done_changes_nothing(inbox: WholeInbox) -> None:
    issue, event_id = unique_issue(), fresh()
    inbox.deliver("github", "issues.opened", issue, event_id=event_id)
    before = inbox.settled("github", event_id)

    answer = inbox.deliver("github", "issues.opened", issue, event_id=event_id)

    assert (answer.status, answer.json["status"]) == (200, "duplicate")
    assert inbox.overview("github", event_id) == before


def test_a_captured_body_under_a_fresh_id_is_not_run(inbox: WholeInbox) -> None:
    issue, event_id, forged_id = unique_issue(), fresh(), fresh()
    inbox.deliver("github", "issues.opened", issue, event_id=event_id)
    inbox.settled("github", event_id)

    answer = inbox.deliver("github", "issues.opened", issue, event_id=forged_id)

    assert (answer.status, answer.json["status"]) == (202, "held")
    held = inbox.overview("github", forged_id)
    assert held is not None
    assert (held.event.identical_to, held.status) == (event_id, "held")
    assert inbox.effects(forged_id) == {}


def test_another_body_under_a_known_id_is_refused_and_kept(inbox: WholeInbox) -> None:
    event_id = fresh()
    first, second = unique_issue(), unique_issue()
    inbox.deliver("github", "issues.opened", first, event_id=event_id)
    before = inbox.settled("github", event_id)

    answer = inbox.deliver("github", "issues.opened", second, event_id=event_id)

    assert (answer.status, answer.json["status"]) == (409, "conflict")
    assert inbox.overview("github", event_id) == before
    (kept,) = inbox.rows(f"conflict#github#{event_id}")
    assert kept["stored_fingerprint"] == before.event.fingerprint
    assert kept["fingerprint"] != before.event.fingerprint


def test_an_event_without_a_handler_is_stored_and_finished(inbox: WholeInbox) -> None:
    event_id = fresh()
    event = sample("stripe", "invoice.payment_succeeded__subscription", id=event_id)

    answer = inbox.deliver("stripe", "invoice.upcoming", {**event, "type": "invoice.upcoming"})

    assert (answer.status, answer.json["status"]) == (202, "accepted")
    found = inbox.overview("stripe", event_id)
    assert found is not None
    assert (found.status, found.runs) == ("skipped", ())


def test_a_type_that_is_not_wanted_is_acknowledged_and_not_stored(inbox: WholeInbox) -> None:
    event_id = fresh()
    event = sample("stripe", "invoice.payment_succeeded__subscription", id=event_id)

    answer = inbox.deliver("stripe", "customer.created", {**event, "type": "customer.created"})

    assert (answer.status, answer.json["status"]) == (200, "ignored")
    assert inbox.overview("stripe", event_id) is None


def test_a_tenant_in_the_path_is_recorded(inbox: WholeInbox) -> None:
    event_id, body = fresh(), b"{}"
    headers = inbox.signed("lab", "digest", body, event_id=event_id)
    assert inbox.post("lab/acct-7", body, headers).status in {200, 202}
    assert inbox.settled("lab", event_id).event.tenant == "acct-7"
    assert inbox.post("github/acct-7", body, headers).status == 404
