import hashlib
import hmac
import json
from urllib.parse import urlencode

import pytest

from tests.unit.providers.deliveries import (
    SAMPLES,
    SECRET,
    delivery,
    name_of,
    provider_of,
    signed,
    verdict,
    with_header,
)
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.provider import Identity, Sample, Verified

PROVIDER = provider_of("github")
NAMED = {"X-GitHub-Delivery": "72d3162e", "X-GitHub-Event": "issues"}


def type_of(body: bytes, event: str = "issues") -> str:
    named = name_of(PROVIDER, delivery({**NAMED, "X-GitHub-Event": event}, body))
    assert isinstance(named, Identity)
    return named.type


def test_upper_case_hex_is_refused_as_githubs_own_libraries_do() -> None:
    sent = signed("github")
    digest = sent.headers["x-hub-signature-256"].removeprefix("sha256=")

    shouted = with_header(sent, "x-hub-signature-256", "sha256=" + digest.upper())

    assert verdict(PROVIDER, shouted) is Reason.INVALID_SIGNATURE


def test_the_sha1_header_never_counts() -> None:
    body = SAMPLES["github"].body
    old = hmac.digest(SECRET.encode(), body, hashlib.sha1).hex()

    alone = delivery({**NAMED, "X-Hub-Signature": f"sha1={old}"}, body)
    moved = delivery({**NAMED, "X-Hub-Signature-256": f"sha1={old}"}, body)
    relabelled = delivery({**NAMED, "X-Hub-Signature-256": f"sha256={old}"}, body)

    assert verdict(PROVIDER, alone) is Reason.MISSING_SIGNATURE
    assert verdict(PROVIDER, moved) is Reason.MALFORMED
    assert verdict(PROVIDER, relabelled) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize("value", ["sha256=", "sha256", "=", "SHA256=" + "0" * 64])
def test_a_prefix_alone_or_another_one_is_malformed(value: str) -> None:
    sent = with_header(signed("github"), "x-hub-signature-256", value)

    assert verdict(PROVIDER, sent) is Reason.MALFORMED


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        (b'{"action":"opened"}', "issues.opened"),
        (b'{"ref":"refs/heads/main"}', "issues"),
        (b'{"action":null}', "issues"),
        (b'{"action":""}', "issues"),
        (b'{"action":7}', "issues"),
        (b'{"action":{"a":1}}', "issues"),
        (b'[{"action":"opened"}]', "issues"),
        (b"Hello, World!", "issues"),
        (b"\xff\xfe", "issues"),
        (b"", "issues"),
        (b"[" * 100_000, "issues"),
        (b'{"action":"' + b"x" * 400 + b'"}', "issues." + "x" * 249),
        (urlencode({"payload": '{"action":"closed"}'}).encode(), "issues.closed"),
        (urlencode({"payload": "not json"}).encode(), "issues"),
        (b"payload=%ff", "issues"),
        (b"payload=1" + b"&a=1" * 5000, "issues"),
    ],
    ids=range(16),
)
def test_the_type_is_the_event_and_the_action_of_a_body_that_has_one(
    body: bytes, type_: str
) -> None:
    assert type_of(body) == type_


def test_a_ping_is_an_event_of_its_own_type() -> None:
    assert type_of(b'{"zen":"Keep it logically awesome.","hook_id":1}', "ping") == "ping"


def test_a_delivery_without_an_event_header_is_kept_as_unknown() -> None:
    sent = delivery({"X-GitHub-Delivery": "1"}, b'{"action":"opened"}')

    assert name_of(PROVIDER, sent) == Identity("1", "unknown")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, Reason.MISSING_EVENT_ID),
        ("", Reason.MISSING_EVENT_ID),
        ("a\x00b", Reason.MALFORMED),
        ("\ud800", Reason.MALFORMED),
        ("\x85", Reason.MALFORMED),
    ],
)
def test_the_delivery_header_is_the_id(value: str | None, reason: Reason) -> None:
    sent = with_header(signed("github"), "x-github-delivery", value)

    assert name_of(PROVIDER, sent) is reason


def test_the_guard_is_the_body_whatever_id_or_event_it_comes_under() -> None:
    first = signed("github")
    again = with_header(first, "x-github-delivery", "another")
    assert PROVIDER.guard is not None

    for sent in (first, again):
        verified = verdict(PROVIDER, sent)
        assert isinstance(verified, Verified)
        assert PROVIDER.guard(verified, ()) == first.body


def test_it_signs_like_github() -> None:
    body = json.dumps({"action": "opened"}).encode()

    sent = signed("github", sample=Sample("id-1", "issues.opened", body))

    assert sent.headers["x-github-event"] == "issues"
    assert sent.headers["x-github-delivery"] == "id-1"
    assert sent.headers["content-type"] == "application/json"
    assert name_of(PROVIDER, sent) == Identity("id-1", "issues.opened")
