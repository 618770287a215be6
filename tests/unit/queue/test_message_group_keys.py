"""The ordering key of a serial handler's run, from the body of its event."""

import json
from typing import Any

import pytest

from webhook_inbox.domain.manifest import SERIAL, HandlerSpec, Order
from webhook_inbox.ledger.schema import ID_LIMIT
from webhook_inbox.queue.message_groups import missing, ordering_keys_of


def serial(name: str, path: str) -> HandlerSpec:
    return HandlerSpec(name, "m", "f", "s", ("*",), lane=name, order=Order(SERIAL, path))


def found(body: bytes, path: str = "customer.id") -> str | None:
    return ordering_keys_of([serial("bill", path)], body).get("bill")


def body(value: Any) -> bytes:
    return json.dumps({"customer": {"id": value}}).encode()


def test_it_is_the_text_at_the_path() -> None:
    assert found(body("cus_1")) == "cus_1"


def test_a_whole_number_is_its_text() -> None:
    assert found(body(42)) == "42"


def test_a_path_goes_into_lists() -> None:
    assert found(b'{"items": [{"id": "first"}]}', "items.0.id") == "first"


def test_each_handler_has_its_own() -> None:
    specs = [serial("bill", "customer"), serial("ship", "order"), serial("none", "absent")]

    assert ordering_keys_of(specs, b'{"customer": "c", "order": "o"}') == {"bill": "c", "ship": "o"}


@pytest.mark.parametrize("value", ["", None, True, False, 1.5, [], {}, ["cus_1"], {"id": "cus_1"}])
def test_what_is_neither_text_nor_a_whole_number_is_none(value: Any) -> None:
    assert found(body(value)) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not JSON",
        b"customer=1",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"customer": "text"}',
        b"[" * 100_000,
        b'{"customer": {"id": ' + b"9" * 5000 + b"}}",
    ],
    ids=lambda raw: repr(raw[:20]),
)
def test_a_body_that_holds_none_is_no_error(raw: bytes) -> None:
    assert found(raw) is None


def test_a_long_one_is_named_by_its_hash_so_that_a_key_can_hold_it() -> None:
    one, other = (found(body("x" * ID_LIMIT + end)) for end in "ab")

    assert one is not None
    assert one.startswith("sha256:")
    assert len(one) < ID_LIMIT
    assert one != other
    assert found(body("x" * ID_LIMIT)) == "x" * ID_LIMIT


def test_a_lone_surrogate_is_named_by_its_hash_so_that_it_can_be_stored() -> None:
    one, other = (found(b'{"customer": {"id": "\\ud80' + end + b'"}}') for end in (b"0", b"1"))

    assert one is not None
    assert one.startswith("sha256:")
    assert one != other


def test_a_body_is_not_even_parsed_without_a_serial_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def parse(_: bytes) -> object:
        raise AssertionError("parsed")

    monkeypatch.setattr("webhook_inbox.queue.message_groups.parse", parse)
    latest = HandlerSpec("a", "m", "f", "s", ("*",), order=Order("latest", "id", "at"))

    assert ordering_keys_of([latest, HandlerSpec("b", "m", "f", "s", ("*",))], b"{}") == {}


def test_a_missing_one_is_told_by_its_path_and_handler() -> None:
    words = missing(serial("bill", "customer.id"))

    assert "'customer.id'" in words
    assert "bill" in words
