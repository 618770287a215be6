"""One signature has one event: no variant of a delivery may start a second one (G6).

An attacker who saw one valid delivery but has no secret makes hundreds of variants of it. The
deliveries cover every provider, every kind of signature in the vectors and every declared scheme.
The real ingest receives each variant after the delivery itself. It may answer that the variant is
rejected, known, held or ignored.
"""

import json
import re
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from tests.unit.providers.cases import (
    DECLARED,
    NAMES,
    Case,
    example,
    recorded,
    signed,
    valid_vectors,
)
from tests.unit.providers.deliveries import NOW
from tests.unit.providers.inbox import CaseInbox
from tests.unit.providers.test_declared_schemes import declared, source_for, vectors
from webhook_inbox import providers
from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Identity, Provider, Sample, Verified
from webhook_inbox.ingest.receipt import IngestOutcome
from webhookctl import conformance

Variants = Iterator[tuple[str, Delivery]]

# The order of the curve P-256.
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
# Equal notifications of Dropbox are different news, so each arrival is an event of its own.
ARRIVALS = {"dropbox"}
# One honest body comes under several topics: an ignored one must not keep the others out.
TOPICS = {"shopify", "woocommerce"}
# A signature over a time and a token, or over an address: used once, although it covers no body.
ONCE = {"mailgun", "plivo"}
FAULTS = {IngestOutcome.BROKEN, IngestOutcome.UNAVAILABLE}
HARMLESS = {IngestOutcome.REJECTED, IngestOutcome.DUPLICATE, IngestOutcome.IGNORED}


class Spy(dict[str, str]):
    """Headers that note which of them are asked for."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__(headers)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)


def naming_headers(case: Case) -> set[str]:
    """Returns the headers that the naming of a delivery asks for, present or not."""
    asked: set[str] = set()
    for body in (case.delivery.body, b"{}", b"a=b"):
        spy = Spy(case.delivery.headers)
        with suppress(Rejected):
            case.provider.identify(replace(case.delivery, headers=spy, body=body))
        asked |= spy.asked
    return asked


def with_headers(sent: Delivery, **changed: str | None) -> Delivery:
    headers = {**sent.headers, **changed}
    return replace(sent, headers={k: v for k, v in headers.items() if v is not None})


def header_variants(sent: Delivery, names: set[str]) -> Variants:
    """Changes, removes, doubles and adds headers."""
    for name in sorted({*sent.headers, *names}):
        value = sent.headers.get(name)
        yield f"{name}: forged", with_headers(sent, **{name: "forged-1"})
        if value is None:
            continue
        yield f"{name} removed", with_headers(sent, **{name: None})
        for label, text in {
            "upper": value.upper(),
            "swapped case": value.swapcase(),
            "twice": f"{value},{value}",
            "twice, with a blank": f"{value}, {value}",
            "blank before": f" {value}",
            "blank after": f"{value} ",
            "more": f"{value}x",
            "digit more": f"{value}0",
            "zero before": f"0{value}",
            "decimals": f"{value}.0",
            "entry before": f"v1=00,{value}",
            "entry after": f"{value},v1=00",
            "versioned entry before": f"v1,AAAA {value}",
            "versioned entry after": f"{value} v1,AAAA",
            "quoted": f'"{value}"',
            "quoted percent": quote(value, safe=""),
            **recoded(value),
        }.items():
            yield f"{name}: {label}", with_headers(sent, **{name: text})


def recoded(text: str) -> dict[str, str]:
    """Writes the signatures in a text in other ways that decoders take."""
    made = {}
    if text.endswith("="):
        made["no padding"] = text.rstrip("=")
    else:
        made["padding"] = text + "="
    made["other alphabet"] = text.translate(str.maketrans("+/-_", "-_+/"))
    last = re.search(r"[A-Za-z0-9+/_-](?==*$)", text)
    if last is not None:
        for other in "ABCDEFGHabcdefgh0123456789-_+/":
            made[f"last bits {other}"] = text[: last.start()] + other + text[last.end() :]
    for label, other in mirrored(text).items():
        made[label] = other
    return made


def mirrored(text: str) -> dict[str, str]:
    """Replaces s by n - s in what may be an ECDSA signature over P-256, in DER or in a token."""
    made = {}
    head, dot, last = text.rpartition(".")
    try:
        raw = urlsafe_b64decode(last + "=" * (-len(last) % 4))
        if dot and len(raw) == 64:
            s = (ORDER - int.from_bytes(raw[32:])) % ORDER
            other = urlsafe_b64encode(raw[:32] + s.to_bytes(32)).decode().rstrip("=")
            made["token with n - s"] = f"{head}.{other}"
        r, s = decode_dss_signature(b64decode(text, validate=True))
        made["n - s"] = b64encode(encode_dss_signature(r, ORDER - s)).decode()
    except ValueError:
        pass
    return made


def border_variants(sent: Delivery) -> Variants:
    """Moves characters between headers, address and body."""
    body = sent.body.decode("latin-1")
    for count in (1, 2, 5):
        front, back = body[:count], body[-count:]
        for name, value in sent.headers.items():
            end, start = value[-count:], value[:count]
            moves = {
                "end to the body": (value[:-count], end + body),
                "start to the body's end": (value[count:], body + start),
                "from the body": (value + front, body[count:]),
                "from the body's end": (back + value, body[:-count]),
            }
            for label, (text, rest) in moves.items():
                moved = with_headers(sent, **{name: text})
                yield f"{name}: {count} {label}", replace(moved, body=rest.encode("latin-1"))
            for other in sent.headers:
                both = {name: value[:-count], other: end + sent.headers[other]}
                if other != name:
                    yield f"{count} from {name} to {other}", with_headers(sent, **both)
            stamp = re.search(r"[0-9]{9,}", value)
            if stamp is not None:
                cut = stamp[0][:-count]
                text = value.replace(stamp[0], cut)
                rest = stamp[0][-count:] + body
                moved = with_headers(sent, **{name: text})
                yield f"{name}: {count} digits to the body", replace(moved, body=rest.encode())
        yield (
            f"{count} to the query",
            replace(sent, query=sent.query + front, body=body[count:].encode("latin-1")),
        )
        if sent.query:
            moved_body = (sent.query[-count:] + body).encode("latin-1")
            yield (
                f"{count} from the query",
                replace(sent, query=sent.query[:-count], body=moved_body),
            )


def query_variants(sent: Delivery) -> Variants:
    """Changes the query and the path."""
    pairs = parse_qsl(sent.query, keep_blank_values=True)
    for query in (
        f"{sent.query}&x=1", f"x=1&{sent.query}", f"{sent.query}&", "x", "", "&&",
        f"{sent.query}&{sent.query}", urlencode(pairs[::-1]), sent.query.upper(),
        "&".join(f"{encoded(k)}={encoded(v)}" for k, v in pairs), f"{sent.query}#x",
    ):  # fmt: skip
        yield f"query {query}", replace(sent, query=query)
    for path in (
        f"{sent.path}/",
        sent.path.upper(),
        sent.path.replace("i", "%69"),
        f"/{sent.path}",
    ):
        yield f"path {path}", replace(sent, path=path)


def encoded(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def body_variants(sent: Delivery) -> Variants:
    """Changes the body as a text, as a form and as JSON."""
    body = sent.body
    for label, other in {
        "ampersand": body + b"&",
        "ampersands": b"&&" + body,
        "empty field": body + b"&=",
        "empty fields": body + b"&=&=",
        "blank": body + b" ",
        "line": body + b"\n",
        "blank before": b" " + body,
        "BOM": b"\xef\xbb\xbf" + body,
        "twice": body + body,
        "nul": body + b"\0",
        "empty": b"",
        "object": b"{}",
    }.items():  # fmt: skip
        yield f"body: {label}", replace(sent, body=other)
    for label, other in (*form_variants(body), *json_variants(body)):
        yield f"body: {label}", replace(sent, body=other)


def form_variants(body: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True)
    except ValueError:
        return

    def written(*fields: tuple[str, str]) -> bytes:
        return urlencode(fields).encode()

    yield "reversed", written(*pairs[::-1])
    yield "sorted", written(*sorted(pairs))
    yield "all twice", written(*pairs, *pairs)
    yield "percent", "&".join(f"{encoded(k)}={encoded(v)}" for k, v in pairs).encode()
    yield (
        "upper percent",
        "&".join(f"{encoded(k).upper()}={encoded(v).upper()}" for k, v in pairs).encode(),
    )
    yield "blanks", body.replace(b"+", b"%20")
    yield "one name", written(("", "".join(k + v for k, v in sorted(pairs))))
    yield "one value", written(("".join(k + v for k, v in sorted(pairs)), ""))
    for place, (name, value) in enumerate(pairs):
        rest = pairs[:place], pairs[place + 1 :]
        for label, fields in {
            "twice": [(name, value), (name, value)],
            "border right": [(name + value[:1], value[1:])],
            "border left": [(name[:-1], name[-1:] + value)],
            "no value": [(name + value, "")],
            "no name": [("", name + value)],
            "cut": [(name, ""), (value, "")],
            "removed": [],
            "changed": [(name, value + "x")],
        }.items():
            yield f"{name} {label}", written(*rest[0], *fields, *rest[1])


def json_variants(body: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        document = json.loads(body)
    except ValueError:
        return
    for label, options in {
        "compact": {"separators": (",", ":")},
        "indented": {"indent": 1},
        "sorted": {"sort_keys": True},
        "unescaped": {"ensure_ascii": False},
    }.items():
        yield label, json.dumps(document, **options).encode()  # type: ignore[arg-type]
    yield "UTF-16", json.dumps(document).encode("utf-16")
    yield (
        "escaped",
        re.sub(rb"[a-z](?=[^\"\\]*\")", lambda c: b"\\u%04x" % ord(c[0]), body, count=9),
    )
    if isinstance(document, dict):
        for name in document:
            first = json.dumps({name: "forged"}).encode()[:-1]
            yield f"{name} doubled", first + b"," + body.lstrip()[1:]
            last = json.dumps({name: "forged"}).encode()[1:]
            yield f"{name} doubled at the end", body.rstrip()[:-1] + b"," + last
        yield "more", json.dumps({**document, "forged": 1}).encode()
    for path, other in changes(document):
        yield f"{path} changed", json.dumps(other).encode()


def changes(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields a document with one of its values changed, moved to the next, or removed."""
    items: Any = value.items() if isinstance(value, dict) else ()
    items = enumerate(value[:2]) if isinstance(value, list) else items
    for name, inner in items:
        where = f"{path}.{name}"

        def put(other: Any, name: Any = name) -> Any:
            if isinstance(value, list):
                return [*value[:name], other, *value[name + 1 :]]
            return {**value, name: other}

        if isinstance(inner, dict | list):
            yield from ((label, put(other)) for label, other in changes(inner, where))
        for label, other in altered(inner):
            yield f"{where} {label}", put(other)


def altered(value: Any) -> Iterator[tuple[str, Any]]:
    yield "null", None
    if isinstance(value, str):
        yield "more", value + "x"
        yield "blank", value + " "
        yield "case", value.swapcase()
        yield from mirrored(value).items()
        if value.isdecimal():
            yield "number", int(value)
    elif isinstance(value, bool):
        yield "negated", not value
        yield "text", str(value).lower()
    elif isinstance(value, int | float):
        yield "more", value + 1
        yield "text", str(value)
    elif isinstance(value, list) and value:
        yield "twice", value + value
        yield "reversed", value[::-1] + value[:1]


def variants(case: Case, *, named: bool = True) -> Variants:
    """Yields what can be made of a delivery: each change alone, and with another unsigned id.

    If not `named`, the headers that name the event stay.
    """
    sent, names = case.delivery, naming_headers(case)
    loose = covers_nothing(case)
    kept = names if loose or not named else set[str]()
    unsigned = names - case.provider.signature_headers - kept
    renamed = with_headers(sent, **dict.fromkeys(unsigned, "forged-2"))
    for other in (sent, renamed):
        yield "", other
        for label, made in changed(other, names, body=not loose):
            if all(made.headers.get(name) == sent.headers.get(name) for name in kept):
                yield label, made


def distinct(made: Variants) -> Variants:
    """Leaves out a variant that is equal to an earlier one: a third of all."""
    known = set[tuple[str, str, bytes, frozenset[tuple[str, str]]]]()
    for label, variant in made:
        sent = (variant.path, variant.query, variant.body, frozenset(variant.headers.items()))
        if sent not in known:
            known.add(sent)
            yield label, variant


def changed(sent: Delivery, names: set[str], *, body: bool) -> Variants:
    """Changes one thing of a delivery."""
    yield from header_variants(sent, names)
    yield from query_variants(sent)
    if body:
        yield from body_variants(sent)
        yield from border_variants(sent)


def covers_nothing(case: Case) -> bool:
    """Returns whether a credential proves the sender only, who may send any body with it."""
    facts = case.provider.facts
    return facts is not None and facts.body == "none" and case.provider.name not in ONCE


def second_events(case: Case, *, ignored: str = "", named: bool = True) -> list[str]:
    """Returns the variants that started another event, each received after the delivery itself.

    The delivery is accepted, unless its type is `ignored`; `named` as for `variants`.
    """
    inbox, found = after_the_first(case, ignored), list[str]()
    before = set(inbox.started)
    for label, made in distinct(variants(case, named=named)):
        receipt = inbox.receive(made)
        assert receipt.outcome not in FAULTS, (label, receipt.detail)
        if inbox.started != before:
            found.append(f"{label}: {receipt.outcome}")
        if receipt.outcome not in HARMLESS:
            # Its leftovers must not hide the effects of the next one.
            inbox = after_the_first(case, ignored)
            before = set(inbox.started)
    return found


def after_the_first(case: Case, ignored: str = "") -> CaseInbox:
    inbox = CaseInbox(case, ignored=ignored)
    first = inbox.receive(case.delivery)
    expected = IngestOutcome.IGNORED if ignored else IngestOutcome.ACCEPTED
    assert first.outcome is expected, first
    assert bool(inbox.started) is not bool(ignored)
    return inbox


def of_ignored(case: Case) -> list[str]:
    """Returns the variants of a delivery of an ignored type that started an event.

    A signed id that is outside the body needs no guard, so the type beside it is not protected.
    """
    type_ = case.provider.identify(case.delivery).type
    named = case.provider.guard is not None and case.provider.name not in TOPICS
    return second_events(case, ignored=type_, named=named)


def is_batch(case: Case) -> bool:
    return case.provider.batch is not None and case.provider.batch(case.delivery) is not None


def has_event(case: Case) -> bool:
    """Returns whether a delivery is one: some vectors are handshakes or have no id."""
    return CaseInbox(case).receive(case.delivery).outcome is IngestOutcome.ACCEPTED


@pytest.mark.parametrize("provider_name", [name for name in NAMES if name not in ARRIVALS])
def test_no_variant_of_a_sample_starts_a_second_event(provider_name: str) -> None:
    assert second_events(signed(provider_name)) == []


@pytest.mark.parametrize("provider_name", [name for name in NAMES if name not in ARRIVALS])
def test_no_variant_of_an_ignored_delivery_starts_an_event(provider_name: str) -> None:
    case = signed(provider_name)
    if not is_batch(case):
        assert of_ignored(case) == []


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(vector, id=vector["id"])
        for name, vector in valid_vectors()
        if name not in ARRIVALS and has_event(recorded(vector))
    ],
)
def test_no_variant_of_a_vector_starts_a_second_event(vector: Mapping[str, Any]) -> None:
    assert second_events(recorded(vector)) == []


def declared_cases(scheme: str) -> Iterator[Case]:
    """Yields the valid vectors of a scheme as deliveries to its declared source."""
    for vector in vectors()[scheme]:
        if vector["expect"] == conformance.VALID:
            provider = declared(source_for(vector), url=vector["url"].partition("?")[0])
            delivery, secrets = conformance.delivery_of(vector), conformance.secrets_of(vector)
            yield Case(DECLARED, provider, delivery, secrets)


def declared_case(scheme: str) -> Case | None:
    """Returns the first vector of a scheme that its declared source takes as an event."""
    return next(filter(has_event, declared_cases(scheme)), None)


@pytest.mark.parametrize("scheme", sorted(vectors()))
def test_no_variant_starts_a_second_event_of_a_declared_source(scheme: str) -> None:
    case = declared_case(scheme)
    if case is not None:
        assert second_events(case) == []
        assert is_batch(case) or of_ignored(case) == []


def agents_case() -> Case:
    """Returns a delivery with a token that covers its body, made with ECDSA."""
    settings = {**example("jwt"), "algorithms": ["ES256"], "body_claim": "bh"}
    provider = providers.load(SourceSpec("it", "jwt", "it", settings=settings))
    assert provider.pair is not None
    private, public = provider.pair()
    body = b'{"type":"task.completed"}'
    headers = provider.sign(Sample("sample-1", "task.completed", body), private, NOW)
    delivery = Delivery("it", "POST", "/webhooks/it", "", headers, body, NOW)
    return Case("jwt", provider, delivery, (public,))


def test_no_variant_of_an_agents_token_starts_a_second_event() -> None:
    assert second_events(agents_case()) == []


def test_the_other_form_of_a_tokens_signature_verifies_the_same_content() -> None:
    case = agents_case()
    _, _, token = case.delivery.headers["authorization"].partition(" ")
    other = mirrored(token)["token with n - s"]
    verified = [
        case.verdict(case.with_header("authorization", f"Bearer {each}")) for each in (token, other)
    ]

    assert token != other
    assert all(isinstance(each, Verified) for each in verified)
    assert len({each.content for each in verified if isinstance(each, Verified)}) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda body: b"&".join(reversed(body.split(b"&"))),
        lambda body: body + b"&" + body,
        lambda body: body + b"&",
        lambda body: body + b"&=",
        lambda body: body.replace(b"SM", b"%53M"),
    ],
    ids=["reordered", "doubled", "ampersand", "empty field", "encoded"],
)
def test_a_form_that_is_written_in_another_way_is_a_duplicate(
    change: Callable[[bytes], bytes],
) -> None:
    case = signed("twilio")
    sent = replace(case.delivery, body=change(case.delivery.body))
    assert sent.body != case.delivery.body

    assert after_the_first(case).receive(sent).outcome is IngestOutcome.DUPLICATE


@pytest.mark.parametrize(
    ("provider_name", "header"),
    [
        ("discord", "x-signature-timestamp"),
        ("sendgrid", "x-twilio-email-event-webhook-timestamp"),
    ],
)
def test_digits_of_a_time_cannot_be_moved_into_the_body(provider_name: str, header: str) -> None:
    case = signed(provider_name)
    stamp = case.delivery.headers[header]
    moved = replace(
        case.with_header(header, stamp[:-1]), body=stamp[-1:].encode() + case.delivery.body
    )

    assert case.verdict(moved) is Reason.MALFORMED


def test_a_colon_in_adyens_reference_cannot_be_moved_into_another_field() -> None:
    sample = {"pspReference": "P", "merchantAccountCode": "A", "merchantReference": "x:y",
              "eventCode": "AUTHORISATION", "success": "true"}  # fmt: skip
    case = signed("adyen", Sample("", "AUTHORISATION", json.dumps(sample).encode()))
    moved = {"pspReference": "P:", "originalReference": "A", "merchantAccountCode": "x",
             "merchantReference": "y"}  # fmt: skip
    body = json.loads(case.delivery.body)
    body["notificationItems"][0]["NotificationRequestItem"].update(moved)

    assert isinstance(case.verdict(), Verified)
    forged = replace(case.delivery, body=json.dumps(body).encode())
    assert case.verdict(forged) is Reason.MALFORMED


def test_a_line_of_an_sns_message_cannot_become_its_id() -> None:
    case = signed("aws-sns", Sample("real", "Notification", b"hello\nMessageId\nfake"))
    moved = {"Message": "hello", "MessageId": "fake\nMessageId\nreal"}
    body = json.dumps({**json.loads(case.delivery.body), **moved}).encode()

    assert isinstance(case.verdict(), Verified)
    assert case.verdict(replace(case.delivery, body=body)) is Reason.MALFORMED


def unsigned_changes(case: Case) -> Iterator[Delivery]:
    """Yields a delivery with one header or query field changed under a valid signature."""
    sent = case.delivery
    for name in sorted(naming_headers(case)):
        for value in ("1700000000", "2020-01-01T00:00:00Z", "other", None):
            yield case.with_header(name, value)
    for field in ("id", "type", "timestamp", "event_id"):
        yield replace(sent, query=f"{field}=1700000000&{sent.query}")


CASES = [
    *(pytest.param(signed(name), id=name) for name in NAMES if name not in ARRIVALS),
    *(pytest.param(recorded(vector), id=vector["id"]) for _, vector in valid_vectors()),
]


@pytest.mark.parametrize("case", CASES)
def test_an_id_that_is_not_signed_is_guarded_and_a_time_that_is_not_signed_is_ignored(
    case: Case,
) -> None:
    if covers_nothing(case):
        return
    for body in (case.delivery.body, b"{}", b"a=b"):
        sent = replace(case, delivery=signed_again(case, body))
        if not isinstance(sent.verdict(), Verified):
            continue
        first = named(sent.provider, sent.delivery)
        for other in unsigned_changes(sent):
            verified, again = sent.verdict(other), named(sent.provider, other)
            if not isinstance(verified, Verified) or first is None or again is None:
                continue
            if again.event_id != first.event_id:
                assert sent.provider.guard is not None
            assert again.occurred_at == first.occurred_at
            assert verified.signed_at == unchanged(sent).signed_at


def signed_again(case: Case, body: bytes) -> Delivery:
    """Returns the delivery with another body; signed, where the case is a sample of ours."""
    if body == case.delivery.body or case.delivery.headers.get("host") != "inbox.example":
        return case.delivery
    try:
        return case.signed_again(body)
    except (ConfigurationError, Rejected, ValueError, TypeError):
        return case.delivery


def named(provider: Provider, sent: Delivery) -> Identity | None:
    try:
        return provider.identify(sent)
    except Rejected:
        return None


def unchanged(case: Case) -> Verified:
    verified = case.verdict()
    assert isinstance(verified, Verified)
    return verified
