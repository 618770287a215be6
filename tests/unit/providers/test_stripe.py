from datetime import UTC, datetime

import pytest

from tests.unit.providers.deliveries import (
    NOW,
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
from webhook_inbox.domain.provider import Identity, Verified

PROVIDER = provider_of("stripe")
SENT = signed("stripe")
TIME, RIGHT = SENT.headers["stripe-signature"].split(",")
WRONG = signed("stripe", secret=OTHER).headers["stripe-signature"].partition(",")[2]


def judged(value: str) -> Verified | Reason:
    return verdict(PROVIDER, with_header(SENT, "stripe-signature", value))


@pytest.mark.parametrize("value", [
    f"{TIME},{RIGHT},{WRONG}",
    f"{TIME},{WRONG},{RIGHT}",
    f"{RIGHT},{TIME}",
    f"{TIME},v0={'0' * 64},{RIGHT}",
    f"{TIME},scheme=1,{RIGHT},,",
])  # fmt: skip
def test_one_right_v1_entry_is_enough(value: str) -> None:
    assert isinstance(judged(value), Verified)


@pytest.mark.parametrize("value", [
    f"{TIME},{RIGHT.replace('v1=', 'v0=')}",
    f"{TIME},{RIGHT.replace('v1=', 'v2=')}",
    f"{TIME},{RIGHT.replace('v1=', 'V1=')}",
    f"{TIME}, {RIGHT}",
    f"{TIME};{RIGHT}",
    TIME,
    RIGHT,
    f"{TIME},{TIME},{RIGHT}",
    f"t=1,{TIME},{RIGHT}",
    f"{TIME},v1",
    f"{TIME},v1=",
])  # fmt: skip
def test_the_right_digest_under_another_label_or_time_is_malformed(value: str) -> None:
    assert judged(value) is Reason.MALFORMED


@pytest.mark.parametrize("entries", [f"{WRONG},{WRONG}", f"{RIGHT}=", f"{RIGHT}0", RIGHT[:-1]])
def test_only_wrong_v1_entries_are_a_forgery(entries: str) -> None:
    assert judged(f"{TIME},{entries}") is Reason.INVALID_SIGNATURE


def test_the_secret_is_text_and_not_base64_behind_its_prefix() -> None:
    sent = signed("stripe", secret="whsec_" + SECRET)

    assert isinstance(verdict(PROVIDER, sent, ("whsec_" + SECRET,)), Verified)
    assert verdict(PROVIDER, sent, (SECRET,)) is Reason.INVALID_SIGNATURE


def test_it_is_named_by_its_body() -> None:
    body = b'{"id":"evt_9","object":"event","type":"charge.failed","created":1700000000}'

    assert name_of(PROVIDER, delivery({}, body)) == Identity(
        "evt_9", "charge.failed", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{}", Reason.MISSING_EVENT_ID),
        (b'{"id":""}', Reason.MISSING_EVENT_ID),
        (b'{"id":null}', Reason.MISSING_EVENT_ID),
        (b'["evt_1"]', Reason.MISSING_EVENT_ID),
        (b'"evt_1"', Reason.MISSING_EVENT_ID),
        (b'{"id":true}', Reason.MALFORMED),
        (b'{"id":1.5}', Reason.MALFORMED),
        (b'{"id":NaN}', Reason.MALFORMED),
        (b'{"id":{"a":1}}', Reason.MALFORMED),
        (b'{"id":["evt_1"]}', Reason.MALFORMED),
        (b'{"id":"  "}', Reason.MALFORMED),
        (b'{"id":"a\\u0000b"}', Reason.MALFORMED),
        (b'{"id":"a\\nb"}', Reason.MALFORMED),
        (b'{"id":"\\ud800"}', Reason.MALFORMED),
        (b"not json", Reason.MALFORMED),
        (b"", Reason.MALFORMED),
        (b"\xff", Reason.MALFORMED),
        (b"[" * 100_000, Reason.MALFORMED),
        (b'{"id":' + b"1" * 4301 + b"}", Reason.MALFORMED),
    ],
    ids=range(19),
)
def test_a_body_without_a_usable_id_is_rejected(body: bytes, reason: Reason) -> None:
    assert name_of(PROVIDER, delivery({}, body)) is reason


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        (b'{"id":"e"}', "unknown"),
        (b'{"id":"e","type":""}', "unknown"),
        (b'{"id":"e","type":7}', "7"),
        (b'{"id":"e","type":true}', "unknown"),
        (b'{"id":"e","type":["a"]}', "unknown"),
        (b'{"id":"e","type":"\\ud800"}', "unknown"),
        (b'{"id":"e","type":"a\\u001b[2J"}', "unknown"),
        (b'{"id":"e","type":"' + b"x" * 300 + b'"}', "x" * 256),
    ],
    ids=range(8),
)
def test_no_event_is_lost_for_its_type(body: bytes, type_: str) -> None:
    named = name_of(PROVIDER, delivery({}, body))

    assert isinstance(named, Identity)
    assert named.type == type_


def test_what_changes_between_honest_retries_is_declared() -> None:
    assert PROVIDER.volatile == ("pending_webhooks",)
    assert PROVIDER.guard is None


def test_it_signs_like_stripe() -> None:
    headers = SENT.headers

    assert f"t={int(NOW.timestamp())}" == TIME
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert set(headers) == {"stripe-signature", "content-type"}
