"""The HMAC scheme in shapes that no provider of ours has yet."""

from datetime import UTC, datetime, timedelta

import pytest

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import text_at
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sample
from webhook_inbox.providers.schemes.signatures import encodings, keys
from webhook_inbox.providers.schemes.signatures.header_formats import Pairs, VersionedSignatures
from webhook_inbox.providers.schemes.signatures.hmac import Hmac
from webhook_inbox.providers.schemes.signatures.signed_content import Template
from webhook_inbox.providers.schemes.signatures.tolerance import Window, milliseconds

NOW = datetime(2026, 11, 21, 8, 0, 0, 500_000, tzinfo=UTC)
SAMPLE = Sample("id-1", "a.b", b"{}")

PADDLE = Hmac(
    headers=("paddle-signature",),
    layout=Pairs(signature="h1", timestamp="ts", separator=";"),
    signs=Template.parse("{timestamp}:{body}"),
    window=Window(tolerance=timedelta(seconds=5)),
)
PAGERDUTY = Hmac(headers=("sig",), layout=VersionedSignatures("v1", separator=",", mark="="))
TWITCH = Hmac(
    headers=("sig",),
    signs=Template.parse("{id}{timestamp}{body}"),
    window=Window(headers=("time",)),
    ids=("id",),
)
ADYEN = Hmac(headers=("sig",), encoding=encodings.base64, key=keys.hexadecimal)

CONTENTFUL = Window(tolerance=timedelta(seconds=30), clockwork=milliseconds, exclusive=True)


def delivery(headers: dict[str, str], body: bytes = b"{}") -> Delivery:
    return Delivery("it", "POST", "/webhooks/it", "", headers, body, NOW)


@pytest.mark.parametrize("scheme", [PADDLE, PAGERDUTY, TWITCH, ADYEN])
def test_a_scheme_verifies_what_it_signs_and_nothing_else(scheme: Hmac) -> None:
    sent = scheme.sign(SAMPLE, "00ff", NOW)

    assert scheme.verify(delivery(sent), ("00ff",)).secret == 0
    with pytest.raises(Rejected) as raised:
        scheme.verify(delivery(sent, b"[]"), ("00ff",))
    assert raised.value.reason is Reason.INVALID_SIGNATURE


def test_the_signed_time_is_the_second_that_was_signed() -> None:
    sent = PADDLE.sign(SAMPLE, "s", NOW)

    assert PADDLE.verify(delivery(sent), ("s",)).signed_at == NOW.replace(microsecond=0)


@pytest.mark.parametrize(("seconds", "reason"), [(-6, Reason.STALE), (7, Reason.FUTURE)])
def test_a_narrow_window_is_kept_on_either_side(seconds: int, reason: Reason) -> None:
    sent = PADDLE.sign(SAMPLE, "s", NOW + timedelta(seconds=seconds))

    with pytest.raises(Rejected) as raised:
        PADDLE.verify(delivery(sent), ("s",))

    assert raised.value.reason is reason


def test_a_time_that_is_claimed_but_not_part_of_the_scheme_is_ignored() -> None:
    scheme = Hmac(headers=("sig",), layout=Pairs(signature="v1", timestamp="t"))
    signature = Hmac(headers=("sig",)).sign(SAMPLE, "s", NOW)["sig"]

    verified = scheme.verify(delivery({"sig": f"t=\ud800,v1={signature}"}), ("s",))

    assert verified.signed_at is None


def test_the_first_of_several_headers_decides() -> None:
    scheme = Hmac(headers=("new", "old"))
    right = scheme.sign(SAMPLE, "s", NOW)["new"]

    assert scheme.verify(delivery({"old": right}), ("s",))
    assert scheme.verify(delivery({"new": right, "old": "0"}), ("s",))
    assert scheme.verify(delivery({"new": "", "old": right}), ("s",))
    with pytest.raises(Rejected):
        scheme.verify(delivery({"new": "0", "old": right}), ("s",))


def test_any_of_many_signatures_and_secrets_may_match() -> None:
    right = PAGERDUTY.sign(SAMPLE, "current", NOW)["sig"]
    sent = delivery({"sig": ",".join(["v1=0", "v2=1", "v1=\ud800", right])})

    assert PAGERDUTY.verify(sent, ("current", "previous")).secret == 0
    assert PAGERDUTY.verify(sent, ("next", "", "current")).secret == 2
    assert PAGERDUTY.verify(sent, ("current",)).signature == right.removeprefix("v1=")


@pytest.mark.parametrize("milliseconds_ago", [29_999, -30_000])
def test_what_is_within_an_exclusive_window_is_good(milliseconds_ago: int) -> None:
    moment = NOW - timedelta(milliseconds=milliseconds_ago)

    assert CONTENTFUL.judge(int(CONTENTFUL.write(moment)), now=NOW) == moment


def test_the_bound_of_an_exclusive_window_is_stale() -> None:
    with pytest.raises(Rejected) as raised:
        CONTENTFUL.judge(int(CONTENTFUL.write(NOW - timedelta(seconds=30))), now=NOW)
    assert raised.value.reason is Reason.STALE


LINEAR = Hmac(
    headers=("sig",),
    window=Window(clockwork=milliseconds, find=lambda sent: text_at(sent, "at")),
)


@pytest.mark.parametrize("body", [b"{}", b"{", b'{"at":"x"}', b'{"at":1}'])
def test_what_was_not_signed_is_called_forged_whatever_time_it_holds(body: bytes) -> None:
    sent = LINEAR.sign(SAMPLE, "another", NOW)

    with pytest.raises(Rejected) as raised:
        LINEAR.verify(delivery(sent, body), ("s",))
    assert raised.value.reason is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{}", Reason.MALFORMED),
        (b'{"at":"x"}', Reason.MALFORMED),
        (b'{"at":1}', Reason.MALFORMED),
        (b'{"at":1000000000000}', Reason.STALE),
    ],
)
def test_a_signed_body_is_asked_for_its_time(body: bytes, reason: Reason) -> None:
    sent = LINEAR.sign(Sample("id-1", "a.b", body), "s", NOW)

    with pytest.raises(Rejected) as raised:
        LINEAR.verify(delivery(sent, body), ("s",))
    assert raised.value.reason is reason


def test_a_time_in_the_body_is_the_signed_time() -> None:
    body = b'{"at":1795248000500}'
    sent = LINEAR.sign(Sample("id-1", "a.b", body), "s", NOW)

    assert LINEAR.verify(delivery(sent, body), ("s",)).signed_at == NOW
