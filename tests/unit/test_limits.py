"""What DynamoDB and SQS take."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.limits import MESSAGE_BYTES, item_size, sendable, text_size


@pytest.mark.parametrize(("text", "size"), [("", 0), ("abc", 3), ("é", 2), ("☃", 3), ("🦄", 4)])
def test_a_text_is_measured_in_utf8(text: str, size: int) -> None:
    assert text_size(text) == size


@given(st.text())
def test_any_text_is_measured_or_refused_as_utf8_is(text: str) -> None:
    try:
        expected = len(text.encode())
    except UnicodeEncodeError:
        with pytest.raises(ValueError, match="surrogates"):
            text_size(text)
    else:
        assert text_size(text) == expected


@pytest.mark.parametrize("character", ["\t", "\n", "\r", " ", "\x7f", "\x85", "\ud7ff", "\ue000"])
def test_a_character_that_xml_has_can_be_sent(character: str) -> None:
    assert sendable(character)
    assert sendable(f"a{character}b")


@pytest.mark.parametrize(
    "character",
    ["\x00", "\x08", "\x0b", "\x0c", "\x0e", "\x1f", "\ud800", chr(0xDFFF), "\ufffe", "\uffff"],
)
def test_a_character_that_xml_has_not_cannot(character: str) -> None:
    assert not sendable(character)
    assert not sendable(f"a{character}")
    assert not sendable(f"{character}\n")


@pytest.mark.parametrize("character", ["\ufffd", "\U00010000", "🦄", "\U0010ffff"])
def test_the_last_characters_can_be_sent(character: str) -> None:
    assert sendable(character)


def test_a_message_is_bounded_in_bytes() -> None:
    assert not sendable("")
    assert sendable("x" * MESSAGE_BYTES)
    assert not sendable("x" * (MESSAGE_BYTES + 1))
    assert sendable("é" * (MESSAGE_BYTES // 2))
    assert not sendable("é" * (MESSAGE_BYTES // 2) + "x")


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({}, 0),
        ({"pk": "abc"}, 5),
        ({"é": "é"}, 4),
        ({"a": b"12345"}, 6),
        ({"a": True}, 2),
        ({"a": 1234}, 4),
        ({"a": []}, 4),
        ({"a": ["x", "yz"]}, 9),
        ({"a": {"k": "v"}}, 7),
    ],
)
def test_a_row_is_measured_by_names_and_values(item: Any, size: int) -> None:
    assert item_size(item) == size


@pytest.mark.parametrize("value", [None, 1.5, (1,), {1}, object(), bytearray(b"x")])
def test_a_type_that_dynamodb_has_not_is_refused_at_any_depth(value: Any) -> None:
    for item in ({"a": value}, {"a": [value]}, {"a": {"b": [{"c": value}]}}):
        with pytest.raises(TypeError, match=type(value).__name__):
            item_size(item)


@pytest.mark.parametrize("item", [{"": 1}, {"a": {"": 1}}, {"a": 10**38}, {"a": ["\ud800"]}])
def test_a_value_that_dynamodb_would_refuse_is_refused(item: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - UnicodeEncodeError is one
        item_size(item)
