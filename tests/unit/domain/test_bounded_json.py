import json
from datetime import UTC, datetime
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.domain.bounded_json import is_bounded, parse_bounded
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.json_path import document
from webhook_inbox.domain.model import Delivery

# The size of a message of SNS.
MESSAGE = 256 * 1024
SIZE = 4_500_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
REFUSED = {
    "lists": b"[" + b"[]," * (SIZE // 3) + b"[]]",
    "members": b"{" + b'"a":0,' * (SIZE // 6) + b'"a":0}',
    "escapes": b'"' + rb"\n" * (SIZE // 2) + b'"',
    "long numbers": b"[" + (b"9" * 4_299 + b",") * 1_000 + b"9]",
    "open lists": b"[" * SIZE,
}


def delivery(body: bytes, *, verified: bool = False) -> Delivery:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Delivery("it", "POST", "/webhooks/it", "", {}, body, now, verified=verified)


@given(JSON, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "utf-32-le"]))
def test_json_is_what_it_is_without_a_bound(value: object, encoding: str) -> None:
    body = json.dumps(value).encode(encoding)
    expected = json.loads(body)

    assert parse_bounded(body) == expected
    assert parse_bounded(b" \r\n\t" + json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "body", [b"", b" ", b"{", b"a=b", b"timestamp=1", b"nil", b"[1]]", b"\xff"]
)
def test_what_is_not_json_is_nothing(body: bytes) -> None:
    assert parse_bounded(body) is None


def test_fractions_are_not_read() -> None:
    found = parse_bounded(b'{"a":1.5,"b":1e9,"c":1}')

    assert isinstance(found, dict)
    assert isnan(found["a"])
    assert isnan(found["b"])
    assert found["c"] == 1


@pytest.mark.parametrize("body", [b'"\xed\xa0\x80"', b'\xff\xfe"\0\0\xd8"\0'])
def test_bytes_that_are_not_unicode_are_not_read(body: bytes) -> None:
    json.loads(body)

    assert parse_bounded(body) is None


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_costs_too_much_is_refused_unless_it_is_verified(body: bytes) -> None:
    with pytest.raises(Rejected) as refused:
        document(delivery(body))

    assert refused.value.reason is Reason.MALFORMED
    assert (document(delivery(body, verified=True)) is None) == (body[-1:] == b"[")


@pytest.mark.parametrize("text", ["1,", "\\", '{"a":"bc"},', "123456789 ", '"', "é", "😀"])
def test_a_message_of_sns_is_bounded_whatever_its_text(text: str) -> None:
    message = (text * MESSAGE).encode()[:MESSAGE].decode(errors="ignore")
    body = json.dumps({"Type": "Notification", "Message": message}).encode()

    assert is_bounded(body)
    assert parse_bounded(body) == {"Type": "Notification", "Message": message}


@pytest.mark.parametrize("digits", ["0123456789abcdef", "17 ", "3.14,"])
def test_long_texts_of_digits_are_bounded(digits: str) -> None:
    assert is_bounded(json.dumps({"a": digits * 30_000}).encode())


def test_what_is_parsed_several_times_may_have_fewer_values() -> None:
    body = b"[" + b"0," * 20_000 + b"0]"

    assert is_bounded(body)
    assert not is_bounded(body, weight=12)
    assert is_bounded(b"[" + b"0," * 10_000 + b"0]", weight=12)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-le"])
def test_long_numbers_are_counted_in_every_encoding(encoding: str) -> None:
    assert not is_bounded(("[" + ",".join(["1" * 4290] * 250) + "]").encode(encoding))
