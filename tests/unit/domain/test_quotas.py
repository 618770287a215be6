"""What DynamoDB and SQS take."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.domain.quotas import (
    DELAY_SECONDS,
    MESSAGE_BYTES,
    SEND_BATCH,
    batches,
    item_size,
    queue_name,
    sendable,
    takes,
    text_size,
)


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


@pytest.mark.parametrize("delay", [0, 1, DELAY_SECONDS])
def test_a_standard_queue_takes_a_delayed_message(delay: int) -> None:
    assert takes(Outgoing("x", delay=delay))


@pytest.mark.parametrize(
    "message",
    [
        Outgoing(""),
        Outgoing("x", delay=-1),
        Outgoing("x", delay=DELAY_SECONDS + 1),
        Outgoing("x", group="a b"),
        Outgoing("x", group="x" * 129),
        Outgoing("x", dedup="d"),
    ],
    ids=repr,
)
def test_a_standard_queue_does_not_take(message: Outgoing) -> None:
    assert not takes(message)


@pytest.mark.parametrize("name", ["", "!", "~", "x" * 128])
def test_a_standard_queue_takes_a_group(name: str) -> None:
    assert takes(Outgoing("x", group=name, delay=DELAY_SECONDS))


@pytest.mark.parametrize("name", ["g", "!", "~", "handler#ordering_key", "x" * 128])
def test_a_fifo_queue_takes_a_group_and_an_id(name: str) -> None:
    assert takes(Outgoing("x", group=name, dedup="d"), fifo=True)
    assert takes(Outgoing("x", group="g", dedup=name), fifo=True)


@pytest.mark.parametrize("name", ["", " ", "a b", "é", "\x7f", "x" * 129, "x\n"])
def test_a_fifo_queue_takes_no_other_group_or_id(name: str) -> None:
    assert not takes(Outgoing("x", group=name, dedup="d"), fifo=True)
    assert not takes(Outgoing("x", group="g", dedup=name), fifo=True)


def test_a_fifo_queue_takes_no_delay_and_no_control_character() -> None:
    assert not takes(Outgoing("x", delay=1, group="g", dedup="d"), fifo=True)
    assert not takes(Outgoing("\x00", group="g", dedup="d"), fifo=True)


@given(st.lists(st.integers(1, MESSAGE_BYTES), max_size=40))
def test_batches_hold_all_in_order_and_are_within_bounds(sizes: list[int]) -> None:
    messages = [Outgoing("x" * size) for size in sizes]

    made = list(batches(messages))

    assert [message for batch in made for message in batch] == messages
    assert all(1 <= len(batch) <= SEND_BATCH for batch in made)
    assert all(sum(len(m.body) for m in batch) <= MESSAGE_BYTES for batch in made)
    # Each begins because its first message had no place in the one before.
    for before, after in pairwise(made):
        full = len(before) == SEND_BATCH
        long = sum(len(m.body) for m in [*before, after[0]]) > MESSAGE_BYTES
        assert full or long


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({}, 0),
        ({"pk": "abc"}, 5),
        ({"é": "é"}, 4),
        ({"a": b"12345"}, 6),
        ({"a": True}, 2),
        ({"a": 0}, 2),
        ({"a": 1234}, 4),
        ({"a": 12345}, 5),
        ({"a": -1795248000000}, 6),
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


@pytest.mark.parametrize("fifo", [False, True])
def test_queue_names_of_two_long_prefixes_differ(fifo: bool) -> None:
    names = {queue_name("x" * 100 + end, "lane", fifo=fifo) for end in ("a-", "b-")}
    assert len(names) == 2
    assert all(len(name) == 80 for name in names)
    assert all(name.endswith(".fifo") == fifo for name in names)
