"""A declared source can express the HMAC scheme of every provider: proved by their vectors."""

import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.providers.cases import PUBLISHED, VECTORS, provider_of, vectors_of
from tests.unit.providers.deliveries import NOW, SECRET
from webhook_inbox import providers
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Provider, Sample, Verified
from webhookctl import conformance

SOURCES: Final = inbox_toml.load(Path(__file__).parent / "declared.toml", stage="dev").sources
# Schemes of providers that have others, without an HMAC, as well.
OTHERWISE: Final = frozenset({"gitlab-token", "jira-connect"})
# Where a provider's own module knows more than its scheme. Every one is of our own making.
BEYOND: Final[Mapping[str, str]] = {
    "own-box-005": "the library also takes the body escaped",
    "own-box-006": "the library also takes the body escaped",
    "own-box-007": "the library also takes the body escaped",
    "own-box-009": "the library also takes the body escaped",
    "own-box-013": "the library also takes the body escaped",
    "own-braintree-004": "another key's signature has a reason of its own",
    "own-braintree-015": "the answers to challenges are made with the same key",
    "own-contentful-003": "what is exactly as old as the tolerance is too old already",
    "own-contentful-017": "the list of headers is sorted before it is signed",
    "own-contentful-018": "the list of headers is completed before it is signed",
    "own-hubspot-015": "of the URL only some characters may be written plainly",
    "own-linear-015": "the time is a number, and text is none",
    "own-mailgun-024": "a parent account may have signed, in another field",
    "own-pagerduty-004": "an empty body is malformed",
    "own-pagerduty-005": "an empty body is malformed",
    "own-plivo-017": "without a form the query stands alone",
    "own-plivo-018": "without form and query the address stands alone",
    "own-plivo-019": "without a form the query stands alone",
    "own-pusher-006": "a header names the key",
    "own-pusher-014": "a header names the key",
    "own-sanity-019": "time and signature stand in one order",
    "own-sanity-020": "there is one signature",
    "own-sanity-021": "there is one signature",
    "own-shopify-006": "an empty body is malformed",
    "own-square-015": "an empty body is never signed",
    "own-twitter-014": "the answers to challenges are made with the same key",
    "own-workos-018": "there is one signature",
    "own-workos-020": "time and signature stand in one order",
}


LIST: Final = "x-contentful-signed-headers"
TIME: Final = "x-contentful-timestamp"


def declared(name: str, **more: Any) -> Provider:
    spec = SOURCES[name]
    return providers.load(replace(spec, settings={**spec.settings, **more}))


def has_hmac(vector: Mapping[str, Any]) -> bool:
    """Tells a vector of a shared secret from those of public keys in the same file."""
    return "public_key_base64" not in vector and vector["scheme"] not in OTHERWISE


@cache
def vectors() -> Mapping[str, list[dict[str, Any]]]:
    """The vectors of every provider with an HMAC, by the scheme they are of."""
    found: dict[str, list[dict[str, Any]]] = {}
    for provider_name in PUBLISHED:
        facts = provider_of(provider_name).facts
        assert facts is not None
        hashes = re.search(r"\bHMAC\b|Standard Webhooks", facts.scheme)
        for vector in vectors_of(provider_name) if hashes else ():
            if has_hmac(vector):
                found.setdefault(vector["scheme"], []).append(vector)
    return found


def source_for(vector: Mapping[str, Any]) -> str:
    """Two providers need a source for each of the forms that they send."""
    if vector["scheme"] == "openai":
        raw = not conformance.secrets_of(vector)[0].startswith("whsec_")
        return "openai-text" if raw else "openai"
    if vector["scheme"] == "mailgun":
        sent = conformance.delivery_of(vector).body.lstrip()
        return "mailgun" if sent.startswith((b"{", b"[")) else "mailgun-form"
    return str(vector["scheme"])


def verdict(vector: Mapping[str, Any]) -> str:
    provider = declared(source_for(vector), url=vector["url"].partition("?")[0])
    try:
        provider.verify(conformance.delivery_of(vector), conformance.secrets_of(vector))
    except Rejected as error:
        return conformance.WORDS.get(error.reason, str(error.reason))
    return conformance.VALID


def agrees(vector: Mapping[str, Any]) -> bool:
    return verdict(vector) in {vector["expect"], *vector.get("expect_also", ())}


def test_there_is_a_declared_source_for_every_scheme_with_an_hmac() -> None:
    assert vectors().keys() == SOURCES.keys() - {"openai-text", "mailgun-form"}


@pytest.mark.parametrize("scheme", sorted(SOURCES.keys() - {"openai-text", "mailgun-form"}))
def test_it_comes_to_the_verdict_of_every_vector(scheme: str) -> None:
    wrong = {
        vector["id"]: (vector["expect"], verdict(vector))
        for vector in vectors()[scheme]
        if vector["id"] not in BEYOND and not agrees(vector)
    }

    assert wrong == {}


def test_what_it_cannot_express_are_vectors_of_our_own_and_no_others() -> None:
    by_id = {vector["id"]: vector for listed in vectors().values() for vector in listed}

    assert BEYOND.keys() <= by_id.keys()
    assert all(name.startswith("own-") for name in BEYOND)
    assert [name for name in BEYOND if agrees(by_id[name])] == []


def samples() -> Iterator[tuple[str, Sample, str]]:
    """A body that each declared source could be sent, and a secret of the form it takes."""
    plain = b'{"id":"1","type":"a","pspReference":"p","eventCode":"E","success":"true"}'
    for name, spec in SOURCES.items():
        signature = spec.settings["signature"]
        in_form = "form" in signature or "form:" in str(signature) or "{form}" in str(signature)
        body = b"token=t&bt_payload=abc" if in_form else plain
        if name == "mailgun":
            body = b'{"signature":{"token":"t"},"event-data":{"id":"1"}}'
        yield name, Sample("1", "a", body), "00ff" * 16 if signature.get("key") == "hex" else SECRET


@pytest.mark.parametrize(("name", "sample", "secret"), list(samples()), ids=list(SOURCES))
def test_a_sample_is_sent_as_the_source_verifies_it(name: str, sample: Sample, secret: str) -> None:
    provider = declared(name, url="https://inbox.example/webhooks/it")
    sent = provider.send(sample, secret, NOW)
    delivery = Delivery("it", "POST", "/webhooks/it", sent.query, sent.headers, sent.body, NOW)

    assert isinstance(provider.verify(delivery, (secret,)), Verified)
    with pytest.raises(Rejected) as raised:
        provider.verify(delivery, ("ff00" * 16,))
    assert raised.value.reason is Reason.INVALID_SIGNATURE


def test_a_sample_that_lacks_what_is_signed_cannot_be_sent() -> None:
    with pytest.raises(ConfigurationError, match=r"signature\.token, which is signed"):
        declared("mailgun").send(Sample("1", "a", b"{}"), SECRET, NOW)
    with pytest.raises(ConfigurationError, match="is not JSON"):
        declared("mailgun").send(Sample("1", "a", b"text"), SECRET, NOW)
    with pytest.raises(ConfigurationError, match=r"no room for signature\.timestamp"):
        declared("mailgun").send(Sample("1", "a", b'{"signature":1}'), SECRET, NOW)


def adyen(*items: Mapping[str, Any]) -> Delivery:
    """Returns one delivery of several signed events."""
    listed = []
    for item in items:
        sent = declared("adyen").send(Sample("1", "a", json.dumps(item).encode()), "00ff", NOW)
        listed += json.loads(sent.body)["notificationItems"]
    body = json.dumps({"notificationItems": listed}).encode()
    return Delivery("it", "POST", "/webhooks/it", "", {}, body, NOW)


ITEMS: Final = (
    {"pspReference": "p-1", "eventCode": "CAPTURE", "success": "true"},
    {"pspReference": "p-2", "eventCode": "REFUND", "success": "false"},
)


def test_of_events_that_are_signed_one_by_one_every_one_has_to_be() -> None:
    provider, whole = declared("adyen"), adyen(*ITEMS)
    forged = replace(whole, body=whole.body.replace(b'"p-2"', b'"p-3"'))

    assert provider.verify(whole, ("0000", "00ff")).secret == 1
    with pytest.raises(Rejected) as raised:
        provider.verify(forged, ("00ff",))
    assert raised.value.reason is Reason.INVALID_SIGNATURE
    with pytest.raises(Rejected) as raised:
        provider.verify(replace(whole, body=b'{"notificationItems":[]}'), ("00ff",))
    assert raised.value.reason is Reason.MALFORMED


@pytest.mark.parametrize("secrets", [(), ("no hex",), ("", "xyz")])
def test_events_that_are_signed_one_by_one_wait_for_a_usable_secret(
    secrets: tuple[str, ...],
) -> None:
    with pytest.raises(Rejected) as raised:
        declared("adyen").verify(adyen(*ITEMS), secrets)
    assert raised.value.reason is Reason.NO_SECRET


def test_a_batch_is_split_into_events_with_an_id_of_several_parts() -> None:
    provider = declared("adyen")
    assert provider.batch is not None

    parts = provider.batch(adyen(*ITEMS)) or ()

    assert [provider.identify(part).event_id for part in parts] == [
        "p-1|CAPTURE|true",
        "p-2|REFUND|false",
    ]


def test_a_signature_that_covers_a_part_of_the_body_lets_one_event_in() -> None:
    """An eavesdropper could write other events, under other ids, around the part."""
    provider = declared("mailgun")
    sent = provider.send(
        Sample("1", "a", b'{"signature":{"token":"t"},"event-data":{"id":"1"}}'), SECRET, NOW
    )
    one = Delivery("it", "POST", "/webhooks/it", "", sent.headers, sent.body, NOW)
    other = replace(one, body=one.body.replace(b'"id": "1"', b'"id": "2"'))

    assert one.body != other.body
    assert provider.guard is not None
    guards = [provider.guard(provider.verify(each, (SECRET,)), ()) for each in (one, other)]
    assert guards[0] == guards[1]


def test_a_time_that_is_signed_and_not_judged_guards_against_other_ids() -> None:
    assert declared("sanity").guard is not None
    assert declared("stripe").guard is None


def test_a_hash_that_is_signed_for_the_body_has_to_be_the_bodys() -> None:
    signed = (v for v in vectors_of("twilio") if "bodySHA256" in v["url"])
    vector = next(v for v in signed if v["expect"] == "valid")
    provider = declared("twilio", url=vector["url"].partition("?")[0])
    valid, secrets = conformance.delivery_of(vector), conformance.secrets_of(vector)

    assert isinstance(provider.verify(valid, secrets), Verified)
    with pytest.raises(Rejected) as raised:
        provider.verify(replace(valid, body=valid.body + b" "), secrets)
    assert raised.value.reason is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        (f"content-type,{LIST},{TIME}", None),
        (f"content-type,{LIST}", Reason.MALFORMED),
        (f"content-type,{TIME}", Reason.MALFORMED),
        ("", Reason.MALFORMED),
    ],
    ids=["all", "without the time", "without the list", "nothing"],
)
def test_a_time_signed_by_a_list_of_headers_has_to_be_in_the_list(
    listed: str, reason: Reason | None
) -> None:
    headers = {"content-type": "text/plain", LIST: listed, TIME: str(int(NOW.timestamp() * 1000))}
    signed = ";".join(f"{name}:{headers[name]}" for name in sorted(filter(None, listed.split(","))))
    content = f"POST\n/webhooks/it\n{signed}\nbody"
    made = hmac.digest(SECRET.encode(), content.encode(), "sha256").hex()
    headers["x-contentful-signature"] = made
    delivery = Delivery("it", "POST", "/webhooks/it", "", headers, b"body", NOW)
    provider = declared("contentful")

    if reason is None:
        assert provider.verify(delivery, (SECRET,)).signature == made
        return
    with pytest.raises(Rejected) as raised:
        provider.verify(delivery, (SECRET,))
    assert raised.value.reason is reason


TEXTS: Final = st.one_of(st.text(max_size=20), st.sampled_from(["v1=a,t=1", "v1,a", "1", "{", "é"]))


@settings(max_examples=500)
@given(
    name=st.sampled_from(sorted(SOURCES)),
    drawn=st.data(),
    query=TEXTS,
    body=st.one_of(
        st.binary(max_size=60),
        st.sampled_from(
            [
                b'{"notificationItems":[{"NotificationRequestItem":{"additionalData":[]}}]}',
                b'{"notificationItems":[{}]}',
                b'{"signature":{"timestamp":true,"token":[],"signature":"a"}}',
                b'{"webhookTimestamp":1e999,"time_ms":-1}',
                b"bt_signature=a&bt_signature=b&bt_payload=%ff",
            ]
        ),
    ),
)
def test_whatever_comes_is_refused_with_a_reason(
    name: str, drawn: st.DataObject, query: str, body: bytes
) -> None:
    provider = declared(name)
    read = sorted(provider.signature_headers)[:8]
    headers = drawn.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(read, TEXTS)))
    delivery = Delivery("it", "POST", "/webhooks/it", query, headers, body, NOW)

    with pytest.raises(Rejected):
        provider.verify(delivery, (SECRET, "00ff"))


def test_vectors_are_where_this_looks_for_them() -> None:
    assert (VECTORS / "twilio.json").is_file()
    assert sum(map(len, vectors().values())) > 900
