"""Every provider's valid vectors with one part broken: rejected for a reason, never a crash."""

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from hmac import digest
from typing import Any

import pytest

from tests.unit.providers.cases import (
    NAMES,
    Case,
    recorded,
    signed,
    valid_vectors,
)
from tests.unit.providers.deliveries import OTHER
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Provider, Verified

VALID = [pytest.param(vector, id=vector["id"]) for _, vector in valid_vectors()]
every_valid_vector = pytest.mark.parametrize("vector", VALID)
every_provider = pytest.mark.parametrize("provider_name", NAMES)
STAMPS = ("", "hello", "-1", "+1", "1.5", " 1", "9" * 19, "9" * 5000, "\u0661", "NaN", "\ud800")
# Any signature of a list of bare ones counts, whatever precedes it.
BARE_LISTS = {"plivo-v3"}
FORGED = {Reason.INVALID_SIGNATURE, Reason.MALFORMED, Reason.MISSING_SIGNATURE}


def assert_rejected(case: Case, broken: Delivery) -> None:
    verdict = case.verdict(broken)
    assert isinstance(verdict, Reason), "a broken delivery was accepted"
    assert verdict is not Reason.NO_SECRET


@every_valid_vector
def test_the_vector_is_valid(vector: Mapping[str, Any]) -> None:
    assert isinstance(recorded(vector).verdict(), Verified)


@every_valid_vector
def test_a_flipped_byte_is_refused_wherever_the_body_is_signed(vector: Mapping[str, Any]) -> None:
    case = recorded(vector)
    body, facts = case.delivery.body, case.provider.facts
    for place in sorted({0, len(body) // 3, len(body) // 2, len(body) - 1}) if body else ():
        flipped = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        verdict = case.verdict(replace(case.delivery, body=flipped))
        if facts is None or facts.body == "whole":
            assert verdict in FORGED | {Reason.STALE, Reason.FUTURE}, f"byte {place}"


@every_valid_vector
def test_another_secret_is_refused(vector: Mapping[str, Any]) -> None:
    case = recorded(vector)
    for other in others(case):
        wrong = replace(case, secrets=(other,) if case.secrets else (), published=other.encode())
        verdict = wrong.verdict()
        assert isinstance(verdict, Reason)


def others(case: Case) -> list[str]:
    """Returns secrets that are not the case's, one of them of the very same form."""
    found = [OTHER]
    if case.provider.pair is not None:
        found.append(case.provider.pair()[1])
    for secret in case.secrets:
        place = next((n for n, char in enumerate(secret) if char in "123456789"), None)
        if place is not None and not secret.startswith(("-", "{")):
            found.append(secret[:place] + "0" + secret[place + 1 :])
    return found


@every_valid_vector
def test_no_secret_and_an_empty_secret_let_nothing_in(vector: Mapping[str, Any]) -> None:
    case = recorded(vector)
    if not case.provider.needs_secret:
        pytest.skip("nothing is shared with this provider")
    for secrets in ((), ("",), ("", "")):
        assert case.verdict(secrets=secrets) in {Reason.NO_SECRET, Reason.INVALID_SIGNATURE}


@every_valid_vector
def test_every_header_that_is_read_is_missed(vector: Mapping[str, Any]) -> None:
    case = recorded(vector)
    for name in case.provider.signature_headers & case.delivery.headers.keys():
        assert_rejected(case, case.with_header(name, None))
        assert_rejected(case, case.with_header(name, ""))


@every_valid_vector
def test_a_broken_signature_is_refused(vector: Mapping[str, Any]) -> None:
    case = recorded(vector)
    verified = case.verdict()
    assert isinstance(verified, Verified)
    for text in spoilt(verified.signature):
        for broken in substituted(case.delivery, verified.signature, text):
            assert_rejected(case, broken)


def spoilt(right: str) -> list[str]:
    """Returns what the signature must not be taken for."""
    bits = {"=": right, "": right}
    stray = right.rstrip("=")
    if right != stray and stray[-1:] in ALPHABET:
        # The last character's unused bits, which forgiving decoders drop.
        bits["stray"] = stray[:-1] + ALPHABET[ALPHABET.index(stray[-1]) + 1] + right[len(stray) :]
    found = [
        right[:-1],
        right[: len(right) // 2],
        right + "0",
        right + "zz",
        right + "\t",
        right + "\n",
        right + "é",
        right + "\ud800",
        "=" + right,
        "x" * 10_000,
        right[:1],
        ",",
        "\x00",
        *bits.values(),
    ]
    # Upper-case hex: signatures are compared as written, and a MAC's hex is lower-case.
    found += [right.upper()] if right != right.upper() else []
    return [text for text in found if text != right]


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def substituted(delivery: Delivery, right: str, wrong: str) -> list[Delivery]:
    """Returns the delivery with the signature replaced where it stands."""
    found = [
        replace(delivery, headers={**delivery.headers, name: value.replace(right, wrong)})
        for name, value in delivery.headers.items()
        if right in value
    ]
    if not found and right.encode() in delivery.body:
        quoted = json.dumps(wrong)[1:-1].encode()
        found = [replace(delivery, body=delivery.body.replace(right.encode(), quoted))]
    return found


@every_valid_vector
def test_headers_that_hold_no_signature_at_all_are_refused(vector: Mapping[str, Any]) -> None:
    case = recorded(vector)
    verified = case.verdict()
    assert isinstance(verified, Verified)
    for name, value in case.delivery.headers.items():
        if verified.signature in value:
            before, _, after = value.partition(verified.signature)
            versions = ("v9=",) if vector["scheme"] in BARE_LISTS else ("v9=", "v9,")
            for only in (before, after, *(version + verified.signature for version in versions)):
                assert_rejected(case, case.with_header(name, only or "x"))


@every_valid_vector
def test_a_time_that_cannot_be_read_is_refused(vector: Mapping[str, Any]) -> None:
    case = recorded(vector)
    for name in case.provider.signature_headers & case.delivery.headers.keys():
        for stamp in STAMPS:
            assert_rejected(case, case.with_header(name, stamp))


@every_valid_vector
def test_the_window_is_kept_both_ways(vector: Mapping[str, Any]) -> None:
    case = recorded(vector)
    window = case.provider.window
    if window is None:
        pytest.skip("this provider's time is not judged")
    second = timedelta(seconds=1)

    assert case.verdict(case.at(window + second)) is Reason.STALE
    # A published certificate has expired by then.
    too_old = {Reason.STALE, Reason.INVALID_SIGNATURE} if case.published else {Reason.STALE}
    assert case.verdict(case.at(timedelta(days=4000))) in too_old
    assert case.verdict(case.at(-window - second)) is Reason.FUTURE


@every_valid_vector
def test_a_token_of_another_algorithm_is_refused(vector: Mapping[str, Any]) -> None:
    case = recorded(vector)
    for name, value in case.delivery.headers.items():
        prefix, token = value[: -len(value.split(" ")[-1])], value.split(" ")[-1]
        if token.count(".") != 2 or not token.startswith("ey"):
            continue
        claims = token.split(".")[1]
        for head, key in (("none", b""), ("None", b""), ("HS256", case.published or b"x")):
            assert_rejected(case, case.with_header(name, prefix + forged(head, claims, key)))


def forged(algorithm: str, claims: str, key: bytes) -> str:
    """Returns a token of the same claims; with HS256, keyed by what everybody can fetch."""
    head = encoded(json.dumps({"alg": algorithm, "typ": "JWT"}).encode())
    signature = encoded(digest(key, f"{head}.{claims}".encode(), "sha256")) if key else ""
    return f"{head}.{claims}.{signature}"


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@every_valid_vector
def test_a_key_that_is_elsewhere_or_cannot_be_fetched_is_refused(vector: Mapping[str, Any]) -> None:
    case = recorded(vector)
    if case.provider.fetches is None:
        pytest.skip("nothing is fetched for this provider")
    assert replace(case, published=b"").verdict() is Reason.KEY_UNAVAILABLE

    url = case.provider.fetches(case.delivery, case.secrets).url
    host = url.split("/")[2]
    for elsewhere in (
        url.replace("https://", "http://"),
        url.replace(host, f"{host}.evil.example"),
        url.replace(host, f"{host}@evil.example"),
        url.replace(host, f"{host}:8443"),
        f"https://evil.example/{host}/key.pem",
        url.replace(host, f"{host}\\@evil.example"),
        url + "#" + "x" * 5000,
        "https://[::1",
        "file:///etc/passwd",
    ):
        for broken in substituted(case.delivery, url, elsewhere):
            case.fetched.clear()
            assert case.verdict(broken) is Reason.MALFORMED
            assert case.fetched == [], "a stranger's URL was fetched"


@every_provider
@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe\x00 no text \r\n", b"[]", b"{}", b"null", b"[{}]", b"[" * 100_000, b"a=1&a=2"],
    ids=["empty", "not-utf8", "list", "object", "null", "one", "nested", "form"],
)
def test_any_body_that_is_signed_again_is_named_or_refused(provider_name: str, body: bytes) -> None:
    case = signed(provider_name)
    sent = replace(case.delivery, body=body)
    if case.provider.compose is None:
        with suppress(Rejected):  # what its provider could never sign stays wrongly signed
            sent = case.signed_again(body)
    verdict = case.verdict(sent)
    assert isinstance(verdict, Verified | Reason)
    assert_taken_or_refused(case, sent)


def assert_taken_or_refused(case: Case, sent: Delivery) -> None:
    provider = case.provider
    secret = case.secrets[0] if case.secrets else ""
    if provider.handshake is not None:
        provider.handshake(sent, secret)
    if provider.offer is not None:
        provider.offer(sent)
    for method in ("POST", "GET", "HEAD", "OPTIONS"):
        if provider.greet is not None:
            provider.greet(replace(sent, method=method), case.secrets)
    reason = reason_against(provider, sent)
    assert reason in {None, Reason.MALFORMED, Reason.MISSING_EVENT_ID}


def reason_against(provider: Provider, sent: Delivery) -> Reason | None:
    """Returns why what a delivery holds cannot be named; None where it can."""
    try:
        parts = provider.batch(sent) if provider.batch is not None else None
        named = [provider.identify(part) for part in ((sent,) if parts is None else parts)]
    except Rejected as error:
        return error.reason
    assert named, "an empty batch passed"
    return None


@every_provider
def test_no_refusal_shows_a_secret_or_a_signature(provider_name: str) -> None:
    case = signed(provider_name)
    verified = case.verdict()
    assert isinstance(verified, Verified)
    wrong = OTHER
    with pytest.raises(Rejected) as raised:
        case.provider.verify(replace(case.delivery, body=case.delivery.body + b" "), (wrong,))

    for hidden in (verified.signature, wrong, sha256(wrong.encode()).hexdigest()):
        assert hidden not in str(raised.value)
