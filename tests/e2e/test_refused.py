"""An unverified delivery gets a meaningful status and stores no event."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.e2e.http_call import call, insist
from tests.e2e.inquiry import fresh
from tests.e2e.test_accepted import sample, unique_issue
from tests.e2e.whole_inbox import WholeInbox
from webhook_inbox.domain.secret_document import SOURCES

BODY = b'{"action": "opened"}'
MINUTES = timedelta(minutes=1)


def test_a_delivery_whose_signature_does_not_fit_leaves_no_event(inbox: WholeInbox) -> None:
    event_id = fresh()
    headers = inbox.signed("github", "issues.opened", BODY, event_id=event_id)

    answer = inbox.post("github", BODY + b" ", headers)

    assert (answer.status, answer.json["reason"]) == (401, "invalid-signature")
    assert inbox.overview("github", event_id) is None
    # The same headers with the body that was signed are fine.
    assert inbox.post("github", BODY, headers).was_accepted


def test_a_forged_delivery_under_a_real_id_changes_nothing(inbox: WholeInbox) -> None:
    issue, event_id = unique_issue(), fresh()
    inbox.deliver("github", "issues.opened", issue, event_id=event_id)
    before = inbox.settled("github", event_id)
    forged = inbox.signed("github", "issues.opened", BODY, event_id=event_id, secret="guessed")

    assert inbox.post("github", BODY, forged).status == 401
    assert inbox.overview("github", event_id) == before


@pytest.mark.parametrize("header", ["X-Hub-Signature-256", "x-hub-signature-256"])
def test_a_header_may_be_spelt_in_any_case_and_must_be_there(
    inbox: WholeInbox, header: str
) -> None:
    body = fresh().encode()
    headers = inbox.signed("github", "push", body, event_id=fresh())
    signature = headers.pop("x-hub-signature-256")

    assert inbox.post("github", body, headers).status == 401
    assert inbox.post("github", body, {**headers, header: signature}).was_accepted


@pytest.mark.parametrize(
    ("off", "reason"), [(-20 * MINUTES, "stale"), (20 * MINUTES, "future")], ids=["stale", "future"]
)
def test_a_time_outside_the_window_is_refused(
    inbox: WholeInbox, off: timedelta, reason: str
) -> None:
    event_id = fresh()
    headers = inbox.signed("lab", "task", b"{}", event_id=event_id, now=datetime.now(UTC) + off)

    answer = inbox.post("lab", b"{}", headers)

    assert (answer.status, answer.json["reason"]) == (400, reason)
    assert inbox.overview("lab", event_id) is None


def test_an_unknown_source_is_not_found(inbox: WholeInbox) -> None:
    headers = inbox.signed("github", "push", BODY, event_id=fresh())

    assert inbox.post("unknown", BODY, headers).status == 404


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_a_wrong_method_is_told_the_right_one(inbox: WholeInbox, method: str) -> None:
    answer = insist(lambda: call(f"{inbox.front_url}/webhooks/github", method))

    assert (answer.status, answer.headers["allow"]) == (405, "POST")


def test_slack_gets_its_challenge_back(inbox: WholeInbox) -> None:
    answer = inbox.deliver(
        "slack", "url_verification", sample("slack", "url_verification__challenge")
    )

    challenge: dict[str, Any] = sample("slack", "url_verification__challenge")
    assert (answer.status, answer.body.decode()) == (200, challenge["challenge"])


def test_an_unsigned_challenge_is_refused(inbox: WholeInbox) -> None:
    body = b'{"type": "url_verification", "challenge": "guess"}'

    assert inbox.post("slack", body, {"content-type": "application/json"}).status == 401


def test_a_source_without_a_secret_asks_for_patience_until_it_is_set(inbox: WholeInbox) -> None:
    inbox.documents.remove(SOURCES, "newcomer")
    # Workers know the secret for a minute; new ones read the document.
    inbox.kill_workers("ingest")
    body, event_id = fresh().encode(), fresh()
    headers = inbox.signed("newcomer", "push", body, event_id=event_id)

    answer = inbox.post("newcomer", body, headers)

    assert (answer.status, answer.json["reason"]) == (503, "no-secret")
    assert int(answer.headers["retry-after"]) > 0
    assert inbox.overview("newcomer", event_id) is None
    kept = inbox.rows("rejected#newcomer")
    assert {row["reason"] for row in kept} == {"no-secret"}
    assert len(kept) <= answer.sendings

    inbox.documents.set(SOURCES, "newcomer", inbox.secrets["newcomer"])
    inbox.kill_workers("ingest")
    assert inbox.post("newcomer", body, headers).was_accepted


def test_during_a_rotation_both_secrets_are_good(inbox: WholeInbox) -> None:
    inbox.documents.set(SOURCES, "rotated", "whsec_the_new_one")
    inbox.kill_workers("ingest")
    event = sample("stripe", "invoice.payment_succeeded__subscription")

    for place, secret in enumerate(["whsec_the_new_one", inbox.secrets["rotated"]]):
        event_id = fresh()
        body = json.dumps({**event, "id": event_id}).encode()
        headers = inbox.signed("rotated", "", body, event_id=event_id, secret=secret)
        answer = inbox.post("rotated", body, headers)
        assert answer.was_accepted, answer
        found = inbox.overview("rotated", event_id)
        assert found is not None
        assert found.event.verified_with == place
    forged = inbox.signed("rotated", "", b"{}", event_id="", secret="whsec_another")
    assert inbox.post("rotated", b"{}", forged).status == 401
