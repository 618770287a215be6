"""A rejection costs little CPU, however hostile the body: anyone can send 6 MB without a secret.

The processor time of the whole of ingest is compared with that of hashing the same bytes, which
every signature costs. Neither depends on what else the machine does.
"""

import gc
import json
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from itertools import count
from random import Random
from typing import Any

import pytest

from tests.proof.test_one_signature import declared_case
from tests.unit.providers.cases import NAMES, Case, recorded, signed, valid_vectors
from tests.unit.providers.deliveries import OTHER
from tests.unit.providers.inbox import CaseInbox
from webhook_inbox.domain.json_path import UNVERIFIED_BACKSLASHES, UNVERIFIED_MARKS
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Provider
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.providers.schemes.signatures.base import EACH_WEIGHT
from webhookctl.local.http.gateway import EVENT_LIMIT

# Lambda's limit of 6 MB holds a body as JSON text, or in base64 if it is not text.
TEXT = EVENT_LIMIT - 4096
BINARY = TEXT * 3 // 4
# Hashing 6 MB takes 3.5 ms where this was measured, so 100 ms are a ratio of 28. The largest ratio
# was 15, and 20 beside other work: parsing waits for memory, hashing does not.
RATIO = 26
TRIES = 5
# Other work on the machine can take the memory's bandwidth for seconds.
ROUNDS = 6
CERTIFICATE = b"https://sns.eu-west-1.amazonaws.com/sample.pem"
# A provider's name is that of its main scheme; its other schemes have vectors.
SCHEMES = [vector for name, vector in valid_vectors() if vector["scheme"] != name]


def filled(unit: bytes, size: int = BINARY) -> bytes:
    return unit * (size // len(unit))


def items(unit: bytes, before: bytes = b"[", after: bytes = b"]") -> bytes:
    room = BINARY - len(before) - len(after)
    return before + b",".join([unit] * (room // (len(unit) + 1))) + after


def many(before: bytes, item: bytes, after: bytes) -> bytes:
    return padded(before + b",".join([item] * 10_000) + after)


def members() -> Iterator[bytes]:
    size = 64
    for number in count():
        member = b'"%d":0' % number
        size += len(member) + 1
        if size > BINARY:
            return
        yield member


def padded(body: bytes) -> bytes:
    return body + b" " * (BINARY - len(body))


def just_below(weight: int = 1) -> dict[str, bytes]:
    """Returns values that are just small enough to be parsed, at a weight."""
    marks, escapes = UNVERIFIED_MARKS // weight - 100, UNVERIFIED_BACKSLASHES // weight - 100
    names = range(marks // 2)
    text = rb"\n" * (escapes // len(names))
    return {
        "numbers": b"[" + b",".join([b"0"] * marks) + b"]",
        "members": b"{" + b",".join(b'"%d":0' % n for n in names) + b"}",
        "lists": b"[" + b",".join([b"[]"] * len(names)) + b"]",
        "escapes": b'"' + rb"\n" * escapes + b'"',
        "escapes in members": b"{" + b",".join(b'"%d":"%s"' % (n, text) for n in names) + b"}",
        "long members": b"{" + b",".join(b'"%d":"%s"' % (n, b"a" * 40) for n in names) + b"}",
    }


@cache
def in_items() -> dict[str, bytes]:
    """Returns Adyen's deliveries with a forged signature in each item."""
    signature = b'{"additionalData":{"hmacSignature":"' + b64encode(bytes(32)) + b'"},'
    before, after = b'{"notificationItems":[{"NotificationRequestItem":' + signature, b"}}]}"
    small = b'{"NotificationRequestItem":{"a":0}}'
    forged = b'{"NotificationRequestItem":' + signature + b'"pspReference":"a"}}'
    first = before + b'"pspReference":"a"}},'
    marks = UNVERIFIED_MARKS // EACH_WEIGHT - 100
    values = {
        **just_below(EACH_WEIGHT),
        "accents": b'"' + filled("é".encode(), TEXT - 400) + b'"',
        "emoji": b'"' + filled("😀".encode(), TEXT - 400) + b'"',
        "plain": b'"' + filled(b"a", TEXT - 400) + b'"',
    }
    found = {
        f"{label} in {field}": padded(before + b'"%s":%s' % (field.encode(), value) + after)
        for field in ("merchantReference", "reason")
        for label, value in values.items()
    }
    return {
        **found,
        "small items": padded(first + b",".join([small] * (marks // 5)) + b"]}"),
        "forged items": padded(first + b",".join([forged] * (marks // 9)) + b"]}"),
        "ten thousand numbers": padded(first + b",".join([b"0"] * 9_000) + b"]}"),
    }


@cache
def in_messages() -> dict[str, bytes]:
    """Returns messages of SNS with a forged signature."""
    message = json.loads(signed("aws-sns").delivery.body) | {"Signature": b64encode(bytes(256))}
    before = json.dumps(message, default=bytes.decode).encode().removesuffix(b"}")
    values = {**just_below(), "emoji": b'"' + filled("😀".encode(), TEXT - 4000) + b'"'}
    return {
        f"{label} in {field}": padded(before + b',"%s":%s}' % (field.encode(), value))
        for field in ("Message", "More")
        for label, value in values.items()
    }


@cache
def with_tokens() -> dict[str, bytes]:
    """Returns bodies with values of every form under the names of members with tokens."""
    names = {name for each in NAMES for name in signed(each).provider.token_members}
    values = {
        "texts": items(b'""', after=b"]}"),
        "different texts": b"[" + b",".join(b'"%d"' % n for n in range(500_000)) + b"]",
        "texts below the bound": b"[" + b'"",' * (UNVERIFIED_MARKS - 50) + b'""]',
        "numbers": items(b"0"),
        "lists": items(b"[]"),
        "open lists": filled(b"[", BINARY // 2),
        "open objects": filled(b'{"":', BINARY // 2),
        "escapes": b'"' + filled(rb"\n", BINARY // 2) + b'"',
        **{f"{label} below the bound": value for label, value in just_below().items()},
    }
    found = {
        f"{label} in {name}": padded(b'{"value":[{}],"%s":%s}' % (name.encode(), value))
        for name in sorted(names)
        for label, value in values.items()
    }
    repeated = (
        b'{"%s":"%05d%s"}' % (sorted(names)[n % len(names)].encode(), n, rb"\n" * 29)
        for n in range(9_990)
    )
    return {**found, "different tokens": padded(b'{"value":[' + b",".join(repeated) + b"]}")}


@cache
def bodies() -> Mapping[str, bytes]:
    random = Random(1)
    base64 = b64encode(random.randbytes(BINARY))[: TEXT // 2 * 2]
    names = b",".join(members())
    return {
        "x01": filled(b"\x01"),
        "braces": filled(b"{", TEXT),
        "brackets": filled(b"[", TEXT),
        "digits": filled(b"9", TEXT),
        "ampersands": filled(b"&", TEXT),
        "equals": filled(b"=", TEXT),
        "equals and one escape": b"a=%41" + filled(b"=", TEXT - 5),
        "percents": filled(b"%", TEXT),
        "escapes": filled(b"%41", TEXT),
        "escaped field": b"Body=" + filled(b"%2B+", TEXT - 5),
        "invalid escapes": b"Body=" + filled(b"%zz", TEXT - 5),
        "fields": filled(b"a=b&", TEXT),
        "999 fields": filled(b"a=" + b"%C3%A9" * 1040 + b"&", TEXT)[:-1],
        "quotes": filled(b'"'),
        "backslashes": filled(b"\\"),
        "backslashes and quotes": filled(b'\\"'),
        "members": b"{" + names + b"}",
        "lists": items(b"[]"),
        "objects": items(b"{}"),
        "numbers": items(b"0"),
        "events": items(b"{}", b'{"events":[', b"]}"),
        "ten thousand events": many(b'{"events":[', b'{"a":0}', b"]}"),
        "notificationItems": items(b"0", b'{"notificationItems":[{}],"x":[', b"]}"),
        "notifications": b'{"value":[{"clientState":"x"}],' + names + b"}",
        "ten thousand items": many(b'{"notificationItems":[', b'{"a":0}', b"]}"),
        "ten thousand notifications": many(b'{"value":[', b'{"clientState":"a"}', b"]}"),
        "signature": b'{"Signature":"c2ln","SigningCertURL":"' + CERTIFICATE + b'",' + names + b"}",
        "long signature": b"bt_payload=a&bt_signature=" + filled(b"a|b%26", TEXT - 26),
        "challenge": b'{"challenge":"' + filled(b"\\u0041", BINARY - 16) + b'"}',
        "escaped text": b'{"a":"' + filled(b"\\n", BINARY - 8) + b'"}',
        "huge number": b'{"id":' + filled(b"9", BINARY - 8) + b"}",
        "long fraction": b'{"id":0.' + filled(b"9", BINARY - 10) + b"}",
        "no UTF-8": filled(b"\xff"),
        "broken UTF-8": filled(b"\xc3("),
        "accents": filled(b"\xc3\xa9"),
        "emoji": filled(b"\xf0\x9f\x98\x80"),
        "random": random.randbytes(BINARY),
        "base64": base64,
        "blanks": filled(b" ", TEXT),
        "lines": filled(b"\n"),
        "UTF-16": ("[" + "0," * (BINARY // 4 - 4) + "0]").encode("utf-16"),
        **{f"{label} below the bound": padded(body) for label, body in just_below().items()},
        **with_tokens(),
        **in_items(),
        **in_messages(),
    }  # fmt: skip


def without_credential(case: Case) -> Case:
    """Returns a case whose credential is wrong, if it would be valid for any body."""
    facts = case.provider.facts
    if facts is None or facts.body != "none":
        return case
    changed = {name: spoilt(value) for name, value in case.delivery.headers.items()}
    secrets = tuple(OTHER for _ in case.secrets)
    token = case.provider.signature_headers
    headers = {k: changed[k] if k in token else v for k, v in case.delivery.headers.items()}
    return replace(case, delivery=replace(case.delivery, headers=headers), secrets=secrets)


def spoilt(value: str) -> str:
    """Returns a token with another signature."""
    place = len(value) - 9
    return value[:place] + ("A" if value[place : place + 1] != "A" else "B") + value[place + 1 :]


def seconds(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def hashing(body: bytes) -> float:
    """Returns the processor time of hashing a body, now."""
    return min(seconds(lambda: sha256(body).digest()) for _ in range(TRIES))


@cache
def hashed_alone(label: str) -> float:
    """Returns the processor time of hashing a body."""
    return hashing(bodies()[label])


def of_others(provider: Provider) -> set[str]:
    """Returns the bodies whose values are read for other providers only."""
    read = {
        with_tokens: bool(provider.token_members),
        in_items: provider.name in {"adyen", "hmac"},
        in_messages: provider.name == "aws-sns",
    }
    return {label for made, reads in read.items() if not reads for label in made()}


def costly(case: Case) -> list[str]:
    """Returns the bodies whose rejection costs too much, each time that they were measured."""
    skipped = of_others(case.provider)
    labels = [label for label in bodies() if label not in skipped]
    found = [label for label in labels if not cheap(case, label, hashed_alone(label))]
    for _ in range(ROUNDS):
        found = [label for label in found if not cheap(case, label, hashing(bodies()[label]))]
    return found


def cheap(case: Case, label: str, baseline: float) -> bool:
    """Tells if one of some tries was quick: a try is slowed down by others, and never sped up."""
    sent = replace(case.delivery, body=bodies()[label])
    return any(seconds(partial(rejected, case, sent)) < RATIO * baseline for _ in range(TRIES))


def rejected(case: Case, sent: Delivery) -> Receipt:
    receipt = CaseInbox(case).receive(sent)
    refused = {*(IngestOutcome.REJECTED, IngestOutcome.NO_SECRET), IngestOutcome.KEY_UNAVAILABLE}
    assert receipt.outcome in refused, receipt
    return receipt


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Keeps the tests' own objects out of the garbage collector's way, as ingest has few.

    Once: a full collection beside 15,000 tests takes longer than one of these tests.
    """
    bodies()
    gc.collect()
    gc.freeze()
    yield
    for each in (bodies, in_items, in_messages, with_tokens):
        each.cache_clear()  # 560 MB


@pytest.mark.parametrize("provider_name", NAMES)
def test_no_rejection_costs_much_more_than_hashing_the_body(provider_name: str) -> None:
    assert costly(without_credential(signed(provider_name))) == []


@pytest.mark.parametrize("vector", [pytest.param(each, id=each["id"]) for each in SCHEMES])
def test_no_rejection_of_another_scheme_costs_more(vector: Mapping[str, Any]) -> None:
    assert costly(without_credential(recorded(vector))) == []


def test_no_rejection_of_a_declared_source_with_signed_items_costs_more() -> None:
    case = declared_case("adyen")
    assert case is not None
    assert costly(case) == []


def test_a_batch_of_300_signed_items_is_verified() -> None:
    """Adyen sends a few in one request."""
    case = signed("adyen")
    (item,) = json.loads(case.delivery.body)["notificationItems"]
    item["NotificationRequestItem"]["reason"] = 'of "several" words\n'
    body = json.dumps({"live": "false", "notificationItems": [item] * 300}).encode()
    assert len(body) > 100_000
    case.provider.verify(replace(case.delivery, body=body), case.secrets)
