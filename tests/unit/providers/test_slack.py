import json
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import urlencode

import pytest

from tests.unit.providers.deliveries import (
    OTHER,
    SECRET,
    delivery,
    name_of,
    provider_of,
    signed,
    verdict,
    with_header,
)
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.model import TypeDoubt
from webhook_inbox.domain.provider import Answer, Identity, Sample, Verified

PROVIDER = provider_of("slack")
URL_VERIFICATION = b'{"token":"t","challenge":"3eZbrw1a","type":"url_verification"}'


def answer(body: bytes) -> Answer | None:
    assert PROVIDER.handshake is not None
    return PROVIDER.handshake(delivery({}, body), SECRET)


def named(body: bytes) -> Identity:
    identity = name_of(PROVIDER, delivery({}, body))
    assert isinstance(identity, Identity)
    return identity


def content(body: bytes) -> str:
    return "sha256:" + sha256(body).hexdigest()


def test_a_repetition_says_which_it_is_and_why() -> None:
    again = {"x-slack-retry-num": "2", "x-slack-retry-reason": "http_timeout"}
    first = name_of(PROVIDER, delivery({}, b'{"event_id":"Ev1"}'))
    second = name_of(PROVIDER, delivery(again, b'{"event_id":"Ev1"}'))

    assert isinstance(first, Identity)
    assert (first.retry, first.retry_reason) == (None, "")
    assert second == replace(first, retry=2, retry_reason="http_timeout")


def test_url_verification_is_signed_and_answered_with_the_challenge() -> None:
    sent = signed("slack", sample=Sample("", "url_verification", URL_VERIFICATION))

    assert isinstance(verdict(PROVIDER, sent), Verified)
    assert verdict(PROVIDER, sent, (OTHER,)) is Reason.INVALID_SIGNATURE
    assert answer(sent.body) == Answer(200, b"3eZbrw1a", "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    "body",
    [
        b'{"type":"event_callback","event_id":"Ev1","event":{"text":"url_verification"}}',
        b'{"type":"event_callback","challenge":"url_verification"}',
        b'{"type":"url_verification"}',
        b'{"type":"url_verification","challenge":7}',
        b'{"type":"url_verification","challenge":null}',
        b'["url_verification"]',
        b"url_verification",
        b"[" * 100_000 + b"url_verification",
        b"",
    ],
    ids=range(9),
)
def test_nothing_else_is_a_handshake(body: bytes) -> None:
    assert answer(body) is None


def test_a_challenge_that_is_no_text_does_not_break_the_answer() -> None:
    body = b'{"type":"url_verification","challenge":"a\\ud800b"}'

    assert answer(body) == Answer(200, b"a?b")


def test_an_event_is_named_by_its_id_and_the_inner_type() -> None:
    body = json.dumps(
        {
            "type": "event_callback",
            "event_id": "Ev0PV52K25",
            "event": {"type": "app_mention"},
            "event_time": 1700000000,
        }
    ).encode()

    assert named(body) == Identity(
        "Ev0PV52K25", "app_mention", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    )


def test_a_callback_without_an_inner_event_is_named_by_its_own_type_and_content() -> None:
    body = b'{"type":"app_rate_limited","minute_rate_limited":1518467820}'

    assert named(body) == Identity(content(body), "app_rate_limited")


def test_a_slash_command_is_named_by_its_trigger() -> None:
    body = urlencode({"command": "/deploy", "trigger_id": "398.47", "text": "now"}).encode()

    assert named(body) == Identity("398.47", "/deploy")


def test_an_interaction_is_named_by_the_trigger_in_its_payload() -> None:
    payload = json.dumps({"type": "block_actions", "trigger_id": "12.34"})

    assert named(urlencode({"payload": payload}).encode()) == Identity("12.34", "block_actions")


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        (urlencode({"payload": '{"type":"view_closed"}'}).encode(), "view_closed"),
        (urlencode({"command": "/deploy"}).encode(), "/deploy"),
        (urlencode({"text": "now"}).encode(), "unknown"),
    ],
    ids=range(3),
)
def test_what_has_no_id_is_named_by_its_content(body: bytes, type_: str) -> None:
    assert named(body) == Identity(content(body), type_)


@pytest.mark.parametrize(
    "body",
    [
        b"payload=not-json",
        b"",
        b"\xff\xfe",
        b"&" * 5000 + b"a=1&" * 5000,
        b"[" * 100_000,
        b'{"type": "a=b',
    ],
    ids=range(6),
)
def test_a_body_that_is_neither_json_nor_a_form_leaves_the_type_in_doubt(body: bytes) -> None:
    assert named(body) == Identity(content(body), "unknown", doubt=TypeDoubt.UNREADABLE)


def test_the_version_label_and_the_time_are_part_of_what_is_signed() -> None:
    sent = signed("slack")
    signature = sent.headers["x-slack-signature"]

    other_version = with_header(sent, "x-slack-signature", signature.replace("v0=", "v1="))
    other_time = with_header(sent, "x-slack-request-timestamp", "1795248001")

    assert verdict(PROVIDER, other_version) is Reason.MALFORMED
    assert verdict(PROVIDER, other_time) is Reason.INVALID_SIGNATURE


def test_bytes_cannot_move_between_time_and_body() -> None:
    sent = signed("slack")
    stamp = sent.headers["x-slack-request-timestamp"]
    moved = replace(
        with_header(sent, "x-slack-request-timestamp", stamp[:-1]),
        body=stamp[-1:].encode() + b":" + sent.body,
    )

    assert isinstance(verdict(PROVIDER, moved), Reason)


def test_a_missing_time_is_malformed() -> None:
    sent = with_header(signed("slack"), "x-slack-request-timestamp", None)

    assert verdict(PROVIDER, sent) is Reason.MALFORMED


def test_slack_is_answered_200_and_needs_no_guard() -> None:
    assert PROVIDER.accepted_status == 200
    assert PROVIDER.guard is None


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"type":"event_callback"}', "application/json"),
        (b"command=%2Fdeploy", "application/x-www-form-urlencoded"),
    ],
)
def test_it_signs_with_the_content_type_of_the_body(body: bytes, kind: str) -> None:
    sent = signed("slack", sample=Sample("", "", body))

    assert sent.headers["content-type"] == kind
    assert isinstance(verdict(PROVIDER, sent), Verified)
