"""When two bodies say the same (G7)."""

import json
from hashlib import sha256

import pytest

from webhook_inbox.ingest.fingerprint import fingerprint

VOLATILE = ("attempt", "pending")


def test_without_volatile_fields_it_is_the_hash_of_the_bytes() -> None:
    assert fingerprint(b'{"a": 1}', ()) == sha256(b'{"a": 1}').hexdigest()
    assert fingerprint(b'{"a": 1}', ()) != fingerprint(b'{"a":1}', ())


@pytest.mark.parametrize(
    "same",
    [
        {"id": 1, "attempt": 9, "pending": 2},
        {"pending": 0, "id": 1},
        {"id": 1},
        {"id": 1, "attempt": {"deep": [1, 2]}},
    ],
)
def test_volatile_fields_order_and_spacing_do_not_count(same: dict[str, object]) -> None:
    first = fingerprint(b'{"id":1,"attempt":1}', VOLATILE)
    assert fingerprint(json.dumps(same, indent=2).encode(), VOLATILE) == first


@pytest.mark.parametrize(
    "other",
    [b'{"id":2}', b'{"id":"1"}', b'{"id":1,"x":null}', b'{"id":[1]}', b"{}", b'{"id":true}'],
)
def test_every_other_field_counts(other: bytes) -> None:
    assert fingerprint(other, VOLATILE) != fingerprint(b'{"id":1}', VOLATILE)


def test_a_volatile_name_deeper_down_counts() -> None:
    one, two = (b'{"data":{"attempt":%d}}' % n for n in (1, 2))
    assert fingerprint(one, VOLATILE) != fingerprint(two, VOLATILE)


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff\xfe", b"not json", b"[1]", b"3", b"null", b"[" * 100_000, b"9" * 5000, b"{"],
)
def test_what_is_no_json_object_is_compared_by_its_bytes(body: bytes) -> None:
    assert fingerprint(body, VOLATILE) == sha256(body).hexdigest()


@pytest.mark.parametrize("body", [b'{"a":NaN}', b'{"a":1e999}', b'{"a":"\\ud800"}'])
def test_odd_json_has_a_fingerprint_too(body: bytes) -> None:
    assert len(fingerprint(body, VOLATILE)) == 64
