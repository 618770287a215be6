import hashlib
import hmac
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from tests.unit.providers.deliveries import (
    ACME,
    NOW,
    SECRET,
    delivery,
    later,
    name_of,
    provider_of,
    verdict,
    with_header,
)
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Identity, Provider, Sample, Verified

SAMPLE = Sample("acme-1", "order.shipped", b'{"id":"body-1","type":"order.shipped"}')
PLAIN: Mapping[str, Any] = {
    "signature": {"header": "X-Sig"},
    "event_id": {"json": "id"},
}


EACH: Mapping[str, Any] = {"json": "s", "signs": "{json:id}", "partial": True, "each": True}


URL = "https://inbox.example/hook"


def declared(**tables: Any) -> Provider:
    """Returns the plainest provider, with some tables changed."""
    return provider_of("hmac", {**PLAIN, **tables})


def sent_by(provider: Provider, sample: Sample = SAMPLE) -> Delivery:
    return delivery(provider.sign(sample, SECRET, NOW), sample.body)


def guarded(provider: Provider, sent: Delivery) -> bytes | None:
    verified = provider.verify(sent, (SECRET,))
    return provider.guard(verified, ()) if provider.guard else None


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha512"])
@pytest.mark.parametrize("encoding", ["hex", "base64"])
def test_the_digest_is_the_declared_one(algorithm: str, encoding: str) -> None:
    provider = declared(
        signature={"header": "X-Sig", "algorithm": algorithm, "encoding": encoding, "prefix": "v="}
    )
    digest = hmac.digest(SECRET.encode(), SAMPLE.body, algorithm)
    written = digest.hex() if encoding == "hex" else b64encode(digest).decode()

    sent = delivery({"X-SIG": f"v={written}"}, SAMPLE.body)

    assert isinstance(verdict(provider, sent), Verified)
    assert verdict(provider, replace(sent, body=b"{}")) is Reason.INVALID_SIGNATURE
    assert sent_by(provider).headers["x-sig"] == f"v={written}"


@pytest.mark.parametrize(
    ("form", "secret", "key"),
    [
        ("text", "c2VjcmV0", b"c2VjcmV0"),
        ("base64", "c2VjcmV0", b"secret"),
        ("hex", "736563726574", b"secret"),
        ("hex", "736563726574".upper(), b"secret"),
    ],
)
def test_the_key_is_read_as_declared(form: str, secret: str, key: bytes) -> None:
    provider = declared(signature={"header": "X-Sig", "key": form})
    digest = hmac.digest(key, SAMPLE.body, hashlib.sha256).hex()

    assert isinstance(
        verdict(provider, delivery({"x-sig": digest}, SAMPLE.body), (secret,)), Verified
    )


@pytest.mark.parametrize(("form", "secret"), [("hex", "xyz"), ("hex", "abc"), ("base64", "!")])
def test_a_secret_of_another_form_is_no_secret(form: str, secret: str) -> None:
    provider = declared(signature={"header": "X-Sig", "key": form})

    assert verdict(provider, delivery({"x-sig": "0" * 64}, b"{}"), (secret,)) is Reason.NO_SECRET


@pytest.mark.parametrize(
    ("signs", "content"),
    [
        ("{body}", SAMPLE.body),
        ("v2:{body}", b"v2:" + SAMPLE.body),
        ("{method}\n{body}", b"POST\n" + SAMPLE.body),
        ("{body}{method}", SAMPLE.body + b"POST"),
        ("{{{body}}}", b"{" + SAMPLE.body + b"}"),
    ],
)
def test_what_is_signed_is_the_template(signs: str, content: bytes) -> None:
    provider = declared(signature={"header": "X-Sig", "signs": signs})
    digest = hmac.digest(SECRET.encode(), content, hashlib.sha256).hex()

    assert isinstance(verdict(provider, delivery({"x-sig": digest}, SAMPLE.body)), Verified)


def test_a_signed_method_or_id_that_is_no_text_is_malformed() -> None:
    provider = declared(
        signature={"header": "X-Sig", "signs": "{method} {id} {body}"},
        event_id={"header": "X-Id"},
    )
    sent = sent_by(provider)

    assert isinstance(verdict(provider, sent), Verified)
    assert verdict(provider, replace(sent, method="\ud800")) is Reason.MALFORMED
    assert verdict(provider, replace(sent, method="PUT")) is Reason.INVALID_SIGNATURE
    assert verdict(provider, with_header(sent, "x-id", "\ud800")) is Reason.MALFORMED
    assert verdict(provider, with_header(sent, "x-id", None)) is Reason.MALFORMED
    assert verdict(provider, with_header(sent, "x-id", "caf\u00e9")) is Reason.INVALID_SIGNATURE


@pytest.mark.parametrize(("tolerance", "seconds"), [("30s", 30), ("10m", 600), ("1h", 3600)])
def test_the_tolerance_is_the_declared_one(tolerance: str, seconds: int) -> None:
    provider = provider_of(
        "hmac", {**ACME, "timestamp": {"header": "X-Acme-Timestamp", "tolerance": tolerance}}
    )
    sent = sent_by(provider)

    assert isinstance(verdict(provider, later(sent, seconds)), Verified)
    assert verdict(provider, later(sent, seconds + 1)) is Reason.STALE
    assert verdict(provider, later(sent, -seconds - 1)) is Reason.FUTURE


def test_without_a_tolerance_it_is_five_minutes() -> None:
    provider = provider_of("hmac", {**ACME, "timestamp": {"header": "X-Acme-Timestamp"}})

    assert isinstance(verdict(provider, later(sent_by(provider), 300)), Verified)
    assert verdict(provider, later(sent_by(provider), 301)) is Reason.STALE


@pytest.mark.parametrize(
    ("event_id", "body", "id_"),
    [
        ({"header": "X-Id"}, b"", "from-header"),
        ({"json": "id"}, b'{"id":"a"}', "a"),
        ({"json": "id"}, b'{"id":42}', "42"),
        ({"json": "data.object.id"}, b'{"data":{"object":{"id":"deep"}}}', "deep"),
        ({"json": "data.id"}, b'{"data":[{"id":"in a list"}]}', Reason.MISSING_EVENT_ID),
        ({"json": "data.id"}, b'{"data":"text"}', Reason.MISSING_EVENT_ID),
        ({"json": "id"}, b"text", Reason.MALFORMED),
        ({"json": "id"}, b'{"id":false}', Reason.MALFORMED),
        ({"body": "sha256"}, b"text", "sha256:" + sha256(b"text").hexdigest()),
    ],
)
def test_the_id_is_found_where_declared(
    event_id: Mapping[str, str], body: bytes, id_: str | Reason
) -> None:
    named = name_of(declared(event_id=event_id), delivery({"x-id": "from-header"}, body))

    assert (named.event_id if isinstance(named, Identity) else named) == id_


@pytest.mark.parametrize(
    ("event_type", "type_"),
    [
        ({"header": "X-Type"}, "from-header"),
        ({"json": "kind.name"}, "deep"),
        ({"value": "acme.event"}, "acme.event"),
        ({"json": "absent"}, "unknown"),
    ],
)
def test_the_type_is_found_where_declared(event_type: Mapping[str, str], type_: str) -> None:
    provider = declared(event_type=event_type)
    sent = delivery({"x-type": "from-header"}, b'{"id":"a","kind":{"name":"deep"}}')

    assert provider.identify(sent).type == type_


def test_without_a_declared_type_every_event_is_of_the_unknown_type() -> None:
    assert declared().identify(delivery({}, b'{"id":"a","type":"b"}')).type == "unknown"


def test_id_and_type_headers_are_sent_and_kept() -> None:
    provider = declared(event_id={"header": "X-Id"}, event_type={"header": "X-Type"})

    sent = sent_by(provider)

    assert (sent.headers["x-id"], sent.headers["x-type"]) == ("acme-1", "order.shipped")
    assert provider.kept_headers == {"x-id", "x-type"}


@pytest.mark.parametrize(
    "tables",
    [
        {"event_id": {"json": "id"}},
        {"event_id": {"body": "sha256"}},
        {**ACME, "event_id": {"json": "id"}},
        {"signature": {"header": "S", "signs": "{id}.{body}"}, "event_id": {"header": "I"}},
    ],
    ids=["id-in-signed-body", "content-hash", "signed-time-beside-it", "signed-id"],
)
def test_no_guard_is_needed_where_the_signed_content_determines_the_id(
    tables: Mapping[str, Any],
) -> None:
    assert declared(**tables).guard is None


@pytest.mark.parametrize(
    "tables",
    [
        dict(ACME),
        {"event_id": {"query": "id"}},
        {"signature": {"header": "S", "signs": "{header:X-Nonce}{body}"}},
        {"signature": {"header": "S", "signs": "{url}{body}"}},
        {"signature": {"header": "S", "signs": "{form}"}, "event_id": {"form": "id"}},
        {"signature": {"header": "S", "signs": ["{body}", "{method}{body}"]}},
    ],
    ids=["time-only", "query", "border-of-a-header", "border-of-a-url", "borders-in-a-form", "two"],
)
def test_a_guard_is_needed_where_one_signature_could_fit_another_id(
    tables: Mapping[str, Any],
) -> None:
    assert declared(**tables).guard is not None


def test_a_form_in_another_order_is_the_same_event() -> None:
    provider = declared(signature={"header": "S", "signs": "{form}"}, event_id={"body": "sha256"})
    first, again = (delivery({}, body) for body in (b"a=1&b=2", b"b=%32&a=1&a=1&"))
    assert provider.canonical is not None

    assert provider.canonical(first) == provider.canonical(again)
    assert provider.identify(first) == provider.identify(again)


def test_an_event_with_its_own_signature_has_fields_with_certain_ends() -> None:
    batch, signature = {"json": "events"}, {"json": "s", "partial": True, "each": True}
    for signs in ("{json:a}:{json:id}:{json:b}", "{json:id}{json:a}"):
        with pytest.raises(ConfigurationError, match="its fields have no certain ends"):
            declared(signature={**signature, "signs": signs}, batch=batch)


def test_the_guard_is_the_body_where_the_id_is_in_an_unsigned_header() -> None:
    provider = declared(event_id={"header": "X-Id"})
    sent = sent_by(provider)
    again = with_header(sent, "x-id", "another")

    assert isinstance(verdict(provider, again), Verified)
    assert guarded(provider, sent) == guarded(provider, again) == SAMPLE.body


def test_the_guard_holds_when_part_of_the_id_is_moved_into_the_body() -> None:
    """Without anything between them, one signature covers every way to part id and body."""
    provider = declared(
        signature={"header": "X-Sig", "signs": "{id}{body}"}, event_id={"header": "X-Id"}
    )
    sent = sent_by(provider)
    moved = replace(with_header(sent, "x-id", "acme-"), body=b"1" + sent.body)

    assert isinstance(verdict(provider, moved), Verified)
    assert guarded(provider, moved) == guarded(provider, sent) == b"acme-1" + SAMPLE.body


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"signature": {"header": "S", "signs": "{timestamp}.{body}"}},
         "timestamp: missing; name the header of {timestamp}"),
        ({"timestamp": {"header": "T"}},
         "timestamp: not signed, so it proves nothing; add {timestamp} to signature.signs"),
        ({"signature": {"header": "S", "signs": "{id}.{body}"}},
         "event_id.header: missing; name the header of {id}"),
        ({"signature": {"header": "S", "signs": "{uri}{body}"}},
         "signature.signs: {uri} is not a field; choose from {body}, {timestamp}, {id}, {method}"),
        ({"signature": {"header": "S", "signs": "{id}"}}, "signature.signs: {body} is not signed"),
        ({"signature": {"header": "S", "signs": "{body"}}, "signature.signs: "),
        ({**ACME, "timestamp": {"header": "T", "tolerance": "5 min"}},
         '"5 min" is not a duration; write it like "30s", "5m" or "1h"'),
        ({"signature": {"header": "S", "signs": ["{body}", "{timestamp}{body}"]}},
         "signature.signs: {timestamp} is in some templates only"),
        ({"timestamp": {"json": "at"}, "signature": {"header": "S", "signs": "{json:a}",
                                                     "partial": True}},
         "timestamp: not signed, so it proves nothing"),
        ({"timestamp": {"query": "at"}}, "timestamp: not signed, so it proves nothing"),
        ({"timestamp": {"entry": "t"}, "signature": {"header": "S", "signs": "{timestamp}{body}"}},
         "timestamp.entry: the time is beside signatures"),
        ({"signature": {"header": "S", "prefix": "v1=", "separator": ","}},
         "signature.prefix: does not go with a list; name its entries by signature.entry"),
        ({"signature": {"json": "s"}}, "signature.json: a signature in the body cannot cover"),
        ({"signature": {"form": "s", "signs": "{form}"}},
         "signature.form: a signature in the body cannot cover the body"),
        ({"signature": {"query": "s", "signs": "{url}{body}"}},
         "signature.query: a signature in the query cannot cover the query; use {address}"),
        ({"signature": {"header": "S", "each": True}},
         "signature.each: each event can have a signature only in JSON"),
        ({"signature": EACH}, "batch: missing; say where the list of events is"),
        ({"signature": EACH, "batch": {"json": "events"}, "event_id": {"json": "other"}},
         "event_id: not signed, so one event could have many ids"),
        ({"signature": EACH, "batch": {"json": "events"}, "event_id": {"body": "sha256"}},
         "event_id: not signed, so one event could have many ids"),
        ({"batch": {"json": "events"}, "event_id": {"header": "I"}},
         "event_id: the events of a batch share its headers"),
        ({"digest": {"query": "h"}}, "digest: not signed, so it proves nothing; add {url} to"),
        ({"digest": {"header": "H"}}, "digest: not signed, so it proves nothing; add {header:h}"),
        ({"signature": {"header": "S", "signs": "{headers:a}{headers:b}{body}"}},
         "signature.signs: several {headers:…}; name one list"),
        ({"url": "inbox.example"}, 'url: "inbox.example" is no address'),
        ({"signatures": {}}, 'signatures: unknown key; did you mean "signature"?'),
    ],
)  # fmt: skip
def test_tables_that_do_not_go_together_are_refused(tables: Mapping[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        declared(**tables)

    assert str(raised.value).startswith("[sources.it] ")
    assert words in str(raised.value)


def test_the_endpoint_is_tried_as_the_handshake_names_it() -> None:
    provider = declared(handshake="okta")
    asked = delivery({"X-Okta-Verification-Challenge": "c"}, b"", method="GET")

    assert provider.greet is not None
    answer = provider.greet(asked, (SECRET,))
    assert answer is not None
    assert answer.body == b'{"verification": "c"}'
    assert provider.offer is None
    assert declared().greet is None


def test_a_secret_is_taken_where_the_handshake_offers_one_unsigned() -> None:
    provider = declared(handshake="clio")
    offered = delivery({"X-Hook-Secret": "s"}, b"")

    assert provider.offer is not None
    assert provider.offer(offered) is not None
    assert provider.offer(with_header(offered, "x-sig", "00")) is None
    assert provider.greet is None


def test_the_parts_of_a_secret_verify_deliveries_and_tokens_alike() -> None:
    provider = declared(handshake="strava")
    parts = json.dumps({"secret": SECRET, "verify_token": "mine"})
    query = "hub.mode=subscribe&hub.verify_token=mine&hub.challenge=c"
    asked = replace(delivery({}, b"", method="GET"), query=query)

    assert isinstance(verdict(provider, sent_by(provider), (parts,)), Verified)
    assert provider.greet is not None
    answer = provider.greet(asked, (parts,))
    assert answer is not None
    assert answer.body == b'{"hub.challenge": "c"}'


def test_a_handshake_that_is_not_known_is_an_error_that_names_the_choices() -> None:
    with pytest.raises(ConfigurationError, match='"octa" is not known; choose from adobe-sign'):
        declared(handshake="octa")


@pytest.mark.parametrize("signs", ["{body}", "{timestamp}{body}"])
@pytest.mark.parametrize("challenge", ["abc", "1795248000", "1795248000abc"])
def test_an_answered_challenge_is_no_signature_of_an_event(signs: str, challenge: str) -> None:
    dated = "timestamp" in signs
    provider = declared(
        signature={"header": "X-Sig", "signs": signs},
        event_id={"body": "sha256"},
        handshake="smartcar",
        **({"timestamp": {"header": "X-Time"}} if dated else {}),
    )
    question = {"eventType": "VERIFY", "data": {"challenge": challenge}}
    assert provider.greet is not None
    answer = provider.greet(delivery({}, json.dumps(question).encode()), (SECRET,))
    assert answer is not None
    signature = json.loads(answer.body)["challenge"]
    body = challenge.removeprefix("1795248000") if dated else challenge

    forged = delivery({"X-Sig": signature, "X-Time": "1795248000"}, body.encode())

    assert verdict(provider, forged) is Reason.INVALID_SIGNATURE
    assert isinstance(verdict(provider, sent_by(provider)), Verified)


DIGESTED: Mapping[str, Any] = {
    "signature": {"header": "X-Sig", "signs": "{method} {path} {header:X-Digest}"},
    "digest": {"header": "X-Digest", "algorithm": "sha512", "encoding": "base64"},
}


def test_a_body_may_be_signed_by_its_hash_alone() -> None:
    provider = declared(**DIGESTED)
    digest = b64encode(hashlib.sha512(SAMPLE.body).digest()).decode()
    made = hmac.digest(SECRET.encode(), f"POST /webhooks/it {digest}".encode(), "sha256").hex()
    sent = delivery({"X-Sig": made, "X-Digest": digest}, SAMPLE.body)

    assert isinstance(verdict(provider, sent), Verified)
    assert provider.signature_headers == {"x-sig", "x-digest"}
    assert verdict(provider, replace(sent, body=b"{}")) is Reason.INVALID_SIGNATURE
    assert verdict(provider, with_header(sent, "x-digest", None)) is Reason.MALFORMED
    assert isinstance(verdict(provider, sent_by(provider)), Verified)


def test_a_hash_that_nothing_else_stands_for_has_to_be_there() -> None:
    provider = declared(
        signature={"header": "X-Sig", "signs": "{url}"}, digest={"query": "hash"}, url=URL
    )
    made = hmac.digest(SECRET.encode(), URL.encode(), "sha256").hex()

    assert verdict(provider, delivery({"x-sig": made}, SAMPLE.body)) is Reason.MALFORMED


@pytest.mark.parametrize(
    ("signs", "content"),
    [
        ("{url}{body}", f"{URL}?a=1&b=%C3%A9+x&a=0"),
        ("{address}{body}", URL),
        ("{path}{body}", "/hook"),
        ("{query}{body}", "a=1&b=%C3%A9+x&a=0"),
        ("{sorted_query}{body}", "a=0&a=1&b=\u00e9 x"),
        ("{url_with_port}{body}", f"{URL.replace('/hook', ':443/hook')}?a=1&b=%C3%A9+x&a=0"),
        ("{url_without_port}{body}", f"{URL}?a=1&b=%C3%A9+x&a=0"),
        ("{decoded_url}{body}", f"{URL}?a=1&b=\u00e9+x&a=0"),
        ("{header:X-Nonce}{body}", "n-1"),
        ("{json:id}{body}", "body-1"),
        ("{json?:absent}{body}", ""),
    ],
)
def test_what_is_signed_may_name_every_part_of_a_delivery(signs: str, content: str) -> None:
    provider = declared(signature={"header": "X-Sig", "signs": signs}, url=URL)
    made = hmac.digest(SECRET.encode(), content.encode() + SAMPLE.body, "sha256").hex()
    sent = delivery({"x-sig": made, "x-nonce": "n-1"}, SAMPLE.body)

    assert isinstance(verdict(provider, replace(sent, query="a=1&b=%C3%A9+x&a=0")), Verified)


@pytest.mark.parametrize(
    "field", ["{header:X-Nonce}", "{json:absent}", "{json:nested}", "{form:a}"]
)
def test_what_is_signed_has_to_be_there_and_be_text(field: str) -> None:
    provider = declared(signature={"header": "X-Sig", "signs": field + "{body}"})
    sent = delivery({"x-sig": "0" * 64}, b'{"nested":[1]}')

    assert verdict(provider, sent) is Reason.MALFORMED


@pytest.mark.parametrize("body", [b"\xff", b"&&&"])
def test_a_body_that_is_no_form_is_not_let_in_as_an_empty_one(body: bytes) -> None:
    provider = declared(
        signature={"header": "X-Sig", "signs": "{url}{form}"}, event_id={"body": "sha256"}, url=URL
    )
    made = hmac.digest(SECRET.encode(), URL.encode(), "sha256").hex()
    empty = delivery({"x-sig": made}, b"")

    assert isinstance(verdict(provider, empty), Verified)
    assert verdict(provider, replace(empty, body=body)) is Reason.MALFORMED


def test_of_numbered_headers_any_may_carry_the_signature() -> None:
    provider = declared(signature={"header": ["X-Own", "X-Sig-*"]})
    made = hmac.digest(SECRET.encode(), SAMPLE.body, "sha256").hex()

    for name in ("x-own", "x-sig-1", "x-sig-100"):
        wrong = {"x-sig-7": "0" * 64, name: made}
        assert isinstance(verdict(provider, delivery(wrong, SAMPLE.body)), Verified)
    absent = delivery({"x-sig-101": made}, SAMPLE.body)
    assert verdict(provider, absent) is Reason.MISSING_SIGNATURE


def test_the_signature_may_stand_in_the_query() -> None:
    provider = declared(signature={"query": "sig", "signs": "{address}{body}"}, url=URL)
    sent = provider.send(SAMPLE, SECRET, NOW)
    valid = replace(delivery(sent.headers, sent.body), query=sent.query)

    assert sent.query.startswith("sig=")
    assert isinstance(verdict(provider, valid), Verified)
    assert verdict(provider, replace(valid, query="sig=0")) is Reason.INVALID_SIGNATURE
    assert verdict(provider, replace(valid, query="")) is Reason.MISSING_SIGNATURE


@pytest.mark.parametrize("place", ["query", "form"])
def test_id_and_type_may_stand_in_query_or_form(place: str) -> None:
    provider = declared(event_id={place: "id"}, event_type={place: "kind"})
    fields = "id=a-1&kind=paid"
    sent = delivery({}, fields.encode() if place == "form" else b"")

    named = provider.identify(replace(sent, query=fields if place == "query" else ""))

    assert (named.event_id, named.type) == ("a-1", "paid")
    assert (provider.guard is None) is (place == "form")


def test_headers_that_say_how_it_was_signed_are_required_and_kept() -> None:
    signature = {"header": "X-Sig", "requires": {"X-Version": "2"}}
    provider = declared(signature=signature)
    sent = sent_by(provider)

    assert isinstance(verdict(provider, sent), Verified)
    assert verdict(provider, with_header(sent, "x-version", "1")) is Reason.MALFORMED
    assert verdict(provider, with_header(sent, "x-version", None)) is Reason.MALFORMED
    assert "x-version" in provider.signature_headers


@pytest.mark.parametrize(("ahead", "seconds"), [("none", 0), ("30s", 30)])
def test_the_future_may_have_a_bound_of_its_own(ahead: str, seconds: int) -> None:
    table = {"header": "X-Acme-Timestamp", "tolerance": "5m", "ahead": ahead}
    provider = provider_of("hmac", {**ACME, "timestamp": table})
    sent = sent_by(provider)

    assert isinstance(verdict(provider, later(sent, 300)), Verified)
    assert isinstance(verdict(provider, later(sent, -seconds)), Verified)
    assert verdict(provider, later(sent, -seconds - 1)) is Reason.FUTURE


def test_a_secret_of_several_parts_has_the_key_under_its_name() -> None:
    provider = declared()
    parts = f'{{"secret":"{SECRET}","verify_token":"t"}}'

    assert isinstance(verdict(provider, sent_by(provider), (parts,)), Verified)
