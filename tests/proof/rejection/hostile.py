"""Hostile bodies of the largest size that Lambda accepts, and signature headers of many entries."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count
from random import Random

from tests.unit.providers.cases import NAMES, signed
from tests.unit.providers.deliveries import NOW
from webhook_inbox.domain.bounded_json import LIMIT, MARK, RUN, RUN_LIMIT
from webhook_inbox.providers.schemes.signatures.base import EACH_WEIGHT
from webhookctl.local.http.gateway import EVENT_LIMIT

# Lambda's limit of 6 MB holds a body as JSON text, or in base64 if it is not text.
TEXT = EVENT_LIMIT - 4096
BINARY = TEXT * 3 // 4
CERTIFICATE = b"https://sns.eu-west-1.amazonaws.com/sample.pem"
# API Gateway's limit of all headers is 10,240 bytes.
HEADERS = 9_500
PARSED = frozenset(
    {"lists", "objects", "fractions", "long numbers", "surrogates", "UTF-16 surrogates", "members"}
    | {"zeros", "UTF-16 text", "UTF-32 text"}
    | {"a time and lists", "a signature and lists", "percents", "escaped field", "999 fields"}
)
# The times and signatures that schemes read in a body.
_NOW = int(NOW.timestamp() * 1000)
DATED = b'{"webhookTimestamp":%d,"time_ms":%d,' % (_NOW, _NOW)
SIGNED = b'{"signature":{"timestamp":"1700000000","token":"a","signature":"%064d"},' % 0


def filled(unit: bytes, size: int = BINARY) -> bytes:
    return unit * (size // len(unit))


def items(unit: bytes, before: bytes = b"[", after: bytes = b"]") -> bytes:
    room = BINARY - len(before) - len(after)
    return before + b",".join([unit] * (room // (len(unit) + 1))) + after


def many(before: bytes, item: bytes, after: bytes) -> bytes:
    return before + b",".join([item] * 10_000) + after


def members() -> Iterator[bytes]:
    size = 64
    for number in count():
        member = b'"%d":0' % number
        size += len(member) + 1
        if size > BINARY:
            return
        yield member


_SERIALS = count()
_BLANKS = str.maketrans("01", " \t")


def unseen(body: bytes) -> bytes:
    """Returns a body of the largest size that was not received before.

    Blanks are added, so no cache by content can serve it, and it parses as it did.
    """
    return body.ljust(BINARY) + f"{next(_SERIALS):032b}".translate(_BLANKS).encode()


def just_below(weight: int = 1) -> dict[str, bytes]:
    """Returns values that are just small enough to be parsed, at a weight."""
    escapes = LIMIT // weight - 400
    marks = escapes // MARK
    names = range(marks // 2)
    text = rb"\n" * 8
    return {
        "numbers": b"[" + b",".join([b"0"] * marks) + b"]",
        "members": b"{" + b",".join(b'"%d":0' % n for n in names) + b"}",
        "lists": b"[" + b",".join([b"[]"] * len(names)) + b"]",
        "escapes": b'"' + rb"\n" * escapes + b'"',
        "escapes in members": b"{" + b",".join(b'"%d":"%s"' % (n, text) for n in names[::2]) + b"}",
        "long members": b"{" + b",".join(b'"%d":"%s"' % (n, b"a" * 40) for n in names) + b"}",
        "objects": b"[" + b",".join([b"{}"] * len(names)) + b"]",
        "one name": b"{" + b",".join([b'"a":0'] * len(names)) + b"}",
        "nested lists": b"[" + b",".join([b"[" * 400 + b"]" * 400] * (marks // 401)) + b"]",
        "fractions": b"[" + b",".join([b"123456789012345678e-300"] * marks) + b"]",
        "whole numbers": numbers(RUN - 1, min(marks, BINARY // RUN - 2)),
        "long numbers": numbers(4_299, RUN_LIMIT // weight // (4_299 // RUN)),
        "surrogate escapes": b'"' + rb"\ud800" * escapes + b'"',
    }


def numbers(digits: int, times: int) -> bytes:
    return b"[" + b",".join([b"9" * digits] * times) + b"]"


@cache
def in_items() -> dict[str, bytes]:
    """Returns Adyen's deliveries with a forged signature in each item."""
    signature = b'{"additionalData":{"hmacSignature":"' + b64encode(bytes(32)) + b'"},'
    before, after = b'{"notificationItems":[{"NotificationRequestItem":' + signature, b"}}]}"
    small = b'{"NotificationRequestItem":{"a":0}}'
    forged = b'{"NotificationRequestItem":' + signature + b'"pspReference":"a"}}'
    first = before + b'"pspReference":"a"}},'
    marks = LIMIT // MARK // EACH_WEIGHT - 100
    values = {
        **just_below(EACH_WEIGHT),
        "accents": b'"' + filled("é".encode(), TEXT - 400) + b'"',
        "emoji": b'"' + filled("😀".encode(), TEXT - 400) + b'"',
        "plain": b'"' + filled(b"a", TEXT - 400) + b'"',
    }
    found = {
        f"{label} in {field}": before + b'"%s":%s' % (field.encode(), value) + after
        for field in ("merchantReference", "reason")
        for label, value in values.items()
    }
    return {
        **found,
        "small items": first + b",".join([small] * (marks // 5)) + b"]}",
        "forged items": first + b",".join([forged] * (marks // 9)) + b"]}",
        "ten thousand numbers": first + b",".join([b"0"] * 9_000) + b"]}",
    }


@cache
def in_messages() -> dict[str, bytes]:
    """Returns messages of SNS with a forged signature."""
    message = json.loads(signed("aws-sns").delivery.body) | {"Signature": b64encode(bytes(256))}
    before = json.dumps(message, default=bytes.decode).encode().removesuffix(b"}")
    values = {**just_below(), "emoji": b'"' + filled("😀".encode(), TEXT - 4000) + b'"'}
    return {
        f"{label} in {field}": before + b',"%s":%s}' % (field.encode(), value)
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
        "texts below the bound": b"[" + b'"",' * (LIMIT // MARK - 50) + b'""]',
        "numbers": items(b"0"),
        "lists": items(b"[]"),
        "open lists": filled(b"[", BINARY // 2),
        "open objects": filled(b'{"":', BINARY // 2),
        "escapes": b'"' + filled(rb"\n", BINARY // 2) + b'"',
        **{f"{label} below the bound": value for label, value in just_below().items()},
    }
    found = {
        f"{label} in {name}": b'{"value":[{}],"%s":%s}' % (name.encode(), value)
        for name in sorted(names)
        for label, value in values.items()
    }
    repeated = (
        b'{"%s":"%05d%s"}' % (sorted(names)[n % len(names)].encode(), n, rb"\n" * 29)
        for n in range(9_990)
    )
    return {**found, "different tokens": b'{"value":[' + b",".join(repeated) + b"]}"}


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
        "escaped bytes": filled(b"%FF", TEXT),
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
        "zeros": filled(b"\0"),
        "UTF-16 text": ('"' + "a" * (BINARY // 2 - 4) + '"').encode("utf-16"),
        "UTF-32 text": ('"' + "a" * (BINARY // 4 - 4) + '"').encode("utf-32"),
        "UTF-16 surrogates": b'\xff\xfe"\0' + filled(b"\x00\xd8", BINARY - 6) + b'"\0',
        "UTF-32": ("[" + "0," * (BINARY // 8 - 8) + "0]").encode("utf-32"),
        "surrogates": b'"' + filled(b"\xed\xa0\x80", BINARY - 2) + b'"',
        "fractions": items(b"123456789012345678e-300"),
        "long numbers": items(b"9" * 4_299),
        "one name": b"{" + filled(b'"a":0,', BINARY - 8) + b'"a":0}',
        "names only": b"{" + filled(b'"a",', BINARY - 8),
        "nested lists": items(b"[" * 400 + b"]" * 400),
        "nested objects": items(b'{"":' * 400 + b"0" + b"}" * 400),
        "a time and lists": items(b"[]", DATED + b'"events":[', b"]}"),
        "a signature and lists": items(b"[]", SIGNED + b'"event-data":[', b"]}"),
        "multipart": filled(b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n', TEXT),
        "XML": b"<a>" + filled(b"<b>&lt;</b>", TEXT - 7) + b"</a>",
        **{f"{label} below the bound": body for label, body in just_below().items()},
        **with_tokens(),
        **in_items(),
        **in_messages(),
    }  # fmt: skip


def many_entries(value: str) -> Iterator[str]:
    """Yields a signature header's value with thousands of entries, each of the last one's form."""
    for separator in ",; |":
        *_, last = value.split(separator)
        room = HEADERS // (len(last) + 1)
        # Not at its end: a number that is too large there is no signature, and costs nothing.
        entries = [f"{last[:8]}{n:05d}{last[13:]}" for n in range(room)]
        yield value[: -len(last)] + separator.join(entries)


def is_parsed(label: str) -> bool:
    """Tells if a body is one whose parsing may cost much; to hash the others is the only cost."""
    return "below" in label or label in PARSED


def forget() -> None:
    """Frees the bodies."""
    for each in (bodies, in_items, in_messages, with_tokens):
        each.cache_clear()
