"""The exact answers to providers: status, body and headers."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.functions.faults import Faults
from tests.functions.inbox import SECRET, Inbox
from tests.functions.invocations import http_event
from webhook_inbox.domain.timestamps import to_ms

JSON = {"content-type": "application/json"}
OTHER = "bm90IHRoZSBzZWNyZXQgZWl0aGVy"
SIGNATURE = "x-acme-signature"
BODY = b'{"type":"lab.fine"}'
Break = dict[str, Any]


def respond(inbox: Inbox, event: Any) -> dict[str, Any]:
    """Returns what API Gateway gets, whole."""
    response: dict[str, Any] = inbox.invoke("ingest", event, remaining=10)
    return response


def acme(inbox: Inbox, **changes: Any) -> dict[str, Any]:
    """Returns a valid delivery for the source `acme`, and what is changed of it."""
    headers = inbox.sign("acme", BODY)
    for name, value in changes.pop("headers", {}).items():
        headers[name] = value
        if value is None:
            del headers[name]
    return {**http_event("/webhooks/acme", headers=headers, body=BODY), **changes}


def test_a_new_event_is_accepted_with_two_calls(inbox: Inbox, faults: Faults) -> None:
    inbox.deliver("lab.fine", event_id="warms-the-secrets-up")
    faults.clear()

    response = respond(inbox, acme(inbox))

    assert response == {
        "statusCode": 202,
        "headers": JSON,
        "body": '{"status": "accepted", "event_id": "evt-1"}',
    }
    assert faults.calls == ["PutItem", "SendMessageBatch"]
    assert inbox.account.handlers_sent() == ["lab.fine", "lab.fine"]


def test_a_duplicate_is_answered_200_and_sends_nothing_that_has_begun(
    inbox: Inbox, faults: Faults
) -> None:
    inbox.deliver("lab.fine")
    inbox.work()
    faults.clear()

    answer = inbox.deliver("lab.fine")

    assert (answer.status, answer.headers) == (200, JSON)
    assert answer.json == {"status": "duplicate", "event_id": "evt-1"}
    assert faults.calls == ["PutItem", "Query"]
    assert inbox.account.receive() == []


def test_an_old_duplicate_costs_one_call(inbox: Inbox, faults: Faults) -> None:
    inbox.deliver("lab.fine")
    row = inbox.account.event("acme", "evt-1")
    assert row is not None
    inbox.account.table.put({**row, "received_at": row["received_at"] - 16 * 60_000})
    faults.clear()

    assert inbox.deliver("lab.fine").json["status"] == "duplicate"
    assert faults.calls == ["PutItem"]


def test_the_same_id_with_other_content_is_refused_and_kept(inbox: Inbox) -> None:
    inbox.deliver("lab.fine")

    answer = inbox.deliver("lab.fine", amount=2)

    assert (answer.status, answer.headers) == (409, JSON)
    assert answer.json == {"status": "conflict", "event_id": "evt-1"}
    [kept] = inbox.account.rows("conflict#acme#evt-1")
    stored = inbox.account.event("acme", "evt-1")
    assert stored is not None
    assert kept["stored_fingerprint"] == stored["fingerprint"].hex() != kept["fingerprint"]
    assert json.loads(kept["body"]) == {"type": "lab.fine", "amount": 2}


@pytest.mark.parametrize(
    ("broken", "status", "reason"),
    [
        ({SIGNATURE: None}, 401, "missing-signature"),
        ({SIGNATURE: ""}, 401, "missing-signature"),
        ({SIGNATURE: "sha256=" + "0" * 64}, 401, "invalid-signature"),
        ({SIGNATURE: "sha256=" + "0" * 63}, 401, "invalid-signature"),
        ({SIGNATURE: "sha256=ünïcode"}, 401, "invalid-signature"),
        ({SIGNATURE: "md5=abc"}, 400, "malformed"),
        ({"x-acme-timestamp": None}, 400, "malformed"),
        ({"x-acme-timestamp": "yesterday"}, 400, "malformed"),
        ({"x-acme-timestamp": "1"}, 400, "malformed"),
        ({"x-acme-timestamp": "1000000000"}, 401, "invalid-signature"),
        ({"x-acme-event-id": None}, 400, "malformed"),
        ({"x-acme-event-id": "a\x00b"}, 401, "invalid-signature"),
    ],
)
def test_a_valid_delivery_with_one_header_broken_is_rejected(
    inbox: Inbox, broken: dict[str, str | None], status: int, reason: str
) -> None:
    response = respond(inbox, acme(inbox, headers=broken))

    assert (response["statusCode"], response["headers"]) == (status, JSON)
    assert json.loads(response["body"]) == {"status": "rejected", "reason": reason}
    assert inbox.account.rows("event#") == []
    assert inbox.account.receive() == []


@pytest.mark.parametrize(("minutes", "reason"), [(-6, "stale"), (6, "future")])
def test_a_signed_time_far_from_ours_is_rejected(inbox: Inbox, minutes: int, reason: str) -> None:
    at = datetime.now(UTC) + timedelta(minutes=minutes)

    answer = inbox.post("acme", BODY, inbox.sign("acme", BODY, at=at))

    assert (answer.status, answer.json) == (400, {"status": "rejected", "reason": reason})
    assert inbox.account.rows("event#") == []


def test_a_body_changed_by_one_byte_is_rejected(inbox: Inbox) -> None:
    answer = inbox.post("acme", BODY + b" ", inbox.sign("acme", BODY))

    assert (answer.status, answer.json["reason"]) == (401, "invalid-signature")


def test_a_forgery_with_a_real_id_changes_nothing(inbox: Inbox) -> None:
    """G6: neither a duplicate's answer, which would tell that the id exists, nor a row."""
    inbox.deliver("lab.fine")
    before = inbox.account.rows("event#")

    answer = inbox.post("acme", BODY, inbox.sign("acme", BODY, secret=OTHER))

    assert (answer.status, answer.json["reason"]) == (401, "invalid-signature")
    assert inbox.account.rows("event#") == before


@pytest.mark.parametrize(
    "path",
    ["/webhooks/unknown", "/webhooks/", "/webhooks/ACME", "/webhooks/acme/", "/", "/webhooks/%00",
     "/webhooks/__proto__", "/webhooks/" + "x" * 5000],
)  # fmt: skip
def test_an_unknown_source_is_not_found(inbox: Inbox, path: str) -> None:
    event = acme(inbox, rawPath=path)
    del event["pathParameters"]

    assert respond(inbox, event) == {
        "statusCode": 404,
        "headers": JSON,
        "body": '{"status": "unknown-source"}',
    }


@pytest.mark.parametrize("name", ["approvals", "completions", "status"])
@pytest.mark.parametrize(
    "path", ["/webhooks/{}/acme", "/webhooks/acme/{}/1", "/prod/webhooks/{}/x"]
)
def test_a_source_or_a_tenant_may_have_the_name_of_another_route(
    inbox: Inbox, path: str, name: str
) -> None:
    answer = inbox.request({**http_event(path.format(name)), "pathParameters": {"source": name}})

    assert (answer.status, answer.json) == (404, {"status": "unknown-source"})


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_another_method_is_refused_and_told_which_one_to_use(inbox: Inbox, method: str) -> None:
    assert respond(inbox, http_event("/webhooks/acme", method=method)) == {
        "statusCode": 405,
        "headers": {**JSON, "allow": "POST"},
        "body": '{"status": "wrong-method"}',
    }


def test_a_source_without_a_secret_keeps_the_delivery_and_asks_for_it_again(
    inbox: Inbox,
) -> None:
    body = b'{"type":"order.paid"}'
    headers = inbox.sign("cycles", body, event_type="order.paid")

    answer = inbox.post("cycles", body, headers)

    assert (answer.status, answer.headers) == (503, {**JSON, "retry-after": "60"})
    assert answer.json == {"status": "no-secret", "reason": "no-secret"}
    [kept] = inbox.account.rows("rejected#cycles")
    assert (kept["body"], kept["reason"]) == (body, "no-secret")
    assert inbox.account.rows("event#") == []


def test_the_secret_counts_two_seconds_after_it_is_set(inbox: Inbox) -> None:
    body = b'{"event_id":"e1","event_type":"order.paid"}'
    headers = inbox.sign("cycles", body, event_type="order.paid")
    assert inbox.post("cycles", body, headers).status == 503

    inbox.account.set_secret("cycles", SECRET)
    _age(inbox, seconds=2)

    assert inbox.post("cycles", body, headers).status == 202


def _age(inbox: Inbox, *, seconds: int) -> None:
    """Makes ingest's copy of the secrets older."""
    copies = inbox.module("ingest").ingest._secrets._copies
    copies[""] = replace(copies[""], read_at=copies[""].read_at - timedelta(seconds=seconds))


def test_a_secret_that_the_scheme_cannot_use_asks_for_the_delivery_again(inbox: Inbox) -> None:
    headers = inbox.sign("billing", BODY)
    inbox.account.set_secret("billing", "whsec_!!! this is no base64")

    answer = inbox.post("billing", BODY, headers)

    assert (answer.status, answer.headers) == (503, {**JSON, "retry-after": "60"})
    assert answer.json["reason"] == "no-secret"


def test_a_secret_rotated_a_moment_ago_is_found_without_a_refusal(inbox: Inbox) -> None:
    """The cache is asked again where the last look was not a moment ago."""
    inbox.deliver("lab.fine", event_id="caches")
    _age(inbox, seconds=11)
    inbox.account.set_secret("acme", OTHER)

    answer = inbox.post("acme", BODY, inbox.sign("acme", BODY, secret=OTHER))

    assert answer.status == 202


def test_a_type_that_the_source_does_not_store_is_acknowledged(inbox: Inbox) -> None:
    body = b'{"id":"evt_9","type":"customer.created"}'

    answer = inbox.post("stripe", body, inbox.sign("stripe", body))

    assert (answer.status, answer.json) == (200, {"status": "ignored", "event_id": "evt_9"})
    assert {row["pk"] for row in inbox.account.rows()} == {"ignored#stripe"}


def test_a_captured_body_under_a_fresh_id_is_recognised_and_not_run(inbox: Inbox) -> None:
    body = b'{"action":"opened","issue":{}}'
    first = inbox.sign("github", body, event_id="a", event_type="issues.opened")
    assert inbox.post("github", body, first).status == 202
    inbox.work()

    answer = inbox.post("github", body, {**first, "x-github-delivery": "b"})

    assert (answer.status, answer.json) == (202, {"status": "held", "event_id": "b"})
    event = inbox.account.event("github", "b")
    assert event is not None
    assert event["identical_to"] == "a"
    assert inbox.account.receive() == []


def test_slack_gets_its_200(inbox: Inbox) -> None:
    body = b'{"type":"event_callback","event_id":"Ev1","event":{"type":"app_mention"}}'

    answer = inbox.post("slack", body, inbox.sign("slack", body))

    assert (answer.status, answer.json) == (200, {"status": "accepted", "event_id": "Ev1"})


def test_slacks_challenge_is_answered_as_text_and_stored_nowhere(inbox: Inbox) -> None:
    body = b'{"type":"url_verification","challenge":"3eZbrw1a\xc3\xbc","token":"t"}'
    event = http_event("/webhooks/slack", headers=inbox.sign("slack", body), body=body)

    assert respond(inbox, event) == {
        "statusCode": 200,
        "headers": {"content-type": "text/plain; charset=utf-8"},
        "body": "3eZbrw1aü",
    }
    assert inbox.account.rows() == []


def test_a_forged_challenge_is_not_answered(inbox: Inbox) -> None:
    body = b'{"type":"url_verification","challenge":"x"}'

    answer = inbox.post("slack", body, inbox.sign("slack", body, secret=OTHER))

    assert (answer.status, answer.json["reason"]) == (401, "invalid-signature")


def test_header_names_count_in_any_case(inbox: Inbox) -> None:
    event = acme(inbox)
    shouted = {name.upper(): value for name, value in event["headers"].items()}

    assert respond(inbox, {**event, "headers": shouted})["statusCode"] == 202


def test_a_header_that_came_twice_is_no_signature(inbox: Inbox) -> None:
    """API Gateway joins them by a comma; a second value must not open a way past the first."""
    valid = acme(inbox)["headers"][SIGNATURE]
    forged = "sha256=" + "0" * 64

    for both in (f"{forged},{valid}", f"{valid},{forged}"):
        response = respond(inbox, acme(inbox, headers={SIGNATURE: both}))
        assert response["statusCode"] in {400, 401}
    assert inbox.account.rows("event#") == []


def test_two_spellings_of_a_header_are_one_header_that_came_twice(inbox: Inbox) -> None:
    event = acme(inbox)
    event["headers"][SIGNATURE.title()] = event["headers"][SIGNATURE]

    assert respond(inbox, event)["statusCode"] in {400, 401}


def test_one_of_stripes_several_signatures_is_enough(inbox: Inbox) -> None:
    body = b'{"id":"evt_9","type":"invoice.paid"}'
    headers = inbox.sign("stripe", body)
    time, _, rest = headers["stripe-signature"].partition(",")
    headers["stripe-signature"] = f"{time},v1={'0' * 64},v0=old,{rest}"

    assert inbox.post("stripe", body, headers).status == 202


@pytest.mark.parametrize(
    "event",
    [None, [], {}, "text", 7, {"version": "1.0", "httpMethod": "POST"},
     {"requestContext": {"http": None}}, {"rawPath": "/webhooks/acme", "requestContext": []}],
)  # fmt: skip
def test_an_invocation_by_hand_that_is_no_request_is_malformed(inbox: Inbox, event: Any) -> None:
    assert respond(inbox, event) == {
        "statusCode": 400,
        "headers": JSON,
        "body": '{"status": "rejected", "reason": "malformed"}',
    }


def test_a_crash_between_put_and_send_heals_on_the_providers_retry(inbox: Inbox) -> None:
    """G5: what was stored and never enqueued is enqueued by a duplicate."""
    inbox.deliver("lab.both")
    for message in inbox.account.receive():
        inbox.account.delete(message)

    answer = inbox.deliver("lab.both")

    assert answer.json["status"] == "duplicate"
    assert inbox.account.handlers_sent() == ["fragile.touch", "lab.beside", "lab.burn"]


def test_an_expired_event_counts_as_absent(inbox: Inbox) -> None:
    """DynamoDB deletes expired rows days late."""
    inbox.deliver("lab.fine")
    row = inbox.account.event("acme", "evt-1")
    assert row is not None
    inbox.account.table.put({**row, "expires_at": to_ms(datetime.now(UTC)) // 1000 - 1})

    assert inbox.deliver("lab.fine", new="content").json["status"] == "accepted"


def test_an_event_without_handlers_is_stored_and_sends_nothing(
    inbox: Inbox, faults: Faults
) -> None:
    assert inbox.deliver("nobody.cares").status == 202
    assert inbox.account.event("acme", "evt-1") is not None
    assert "SendMessageBatch" not in faults.calls
