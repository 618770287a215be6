"""Where an event stands in the order of its ordering key, as its body tells."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox import Permanent
from webhook_inbox.handlers.ordering.position import (
    PositionKind,
    Version,
    number_at,
    ordering_key_at,
    version_at,
)

ASKER = "handler 'shop.sync'"


def body(value: Any) -> Any:
    return {"data": {"object": value}, "list": [value]}


# -- versions


@pytest.mark.parametrize("text", ["0", "42", "-7", "+7", "007", "1.5", "1712345678.000200"])
def test_a_decimal_text_is_a_number(text: str) -> None:
    assert Version.read(text).kind is PositionKind.NUMBER


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.123456789+02:00",
        "2026-01-02 03:04:05+00:00",
        "20260102T030405Z",
    ],
)
def test_an_iso_time_is_an_instant(text: str) -> None:
    assert Version.read(text).kind is PositionKind.TIME


@pytest.mark.parametrize("text", ["v1", "1e5", "0x1f", "1.", ".5", "1,5", "2026-13-01", "\u0663"])
def test_all_else_is_text(text: str) -> None:
    assert Version.read(text).kind is PositionKind.TEXT


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("9", "10"),
        ("-2", "-1"),
        ("1.5", "1.50001"),
        ("99999999999999999999", "100000000000000000000"),
        ("1712345678.000199", "1712345678.000200"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05Z"),
        ("2026-01-02", "2026-01-02T00:00:01Z"),
        ("2026-01-02T23:59:59.9Z", "2026-01-03"),
        ("0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"),
        ("v1", "v2"),
        ("v10", "v2"),
        ("A", "a"),
    ],
)
def test_one_version_is_older_than_another(older: str, newer: str) -> None:
    assert Version.read(older).is_older(Version.read(newer))
    assert not Version.read(newer).is_older(Version.read(older))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5", "5.0"),
        ("5", "005"),
        ("2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00"),
        ("2026-01-02T00:00:00", "2026-01-02"),
        ("v1", "v1"),
    ],
)
def test_neither_of_two_equal_versions_is_older(one: str, other: str) -> None:
    assert not Version.read(one).is_older(Version.read(other))
    assert not Version.read(other).is_older(Version.read(one))


def test_a_time_without_a_zone_is_utc() -> None:
    assert Version.read("2026-01-02T03:04:05").value == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("one", "other"), [("5", "2026-01-02"), ("v1", "5"), ("2026-01-02", "yesterday")]
)
def test_versions_of_two_kinds_cannot_be_compared(one: str, other: str) -> None:
    with pytest.raises(Permanent, match="one ordering key's versions are of one kind") as raised:
        Version.read(one).is_older(Version.read(other))
    assert repr(one) in str(raised.value)
    assert repr(other) in str(raised.value)


@given(st.integers(), st.integers())
def test_whole_numbers_are_ordered_as_numbers(one: int, other: int) -> None:
    first, second = (version_at({"n": n}, "n", ASKER) for n in (one, other))
    assert first.is_older(second) == (one < other)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.integers(-(10**6), 10**6))
def test_json_numbers_are_ordered_as_numbers(one: float, other: int) -> None:
    first, second = (version_at({"n": n}, "n", ASKER) for n in (one, other))
    assert first.kind is second.kind is PositionKind.NUMBER
    assert first.is_older(second) == (one < other)


@given(st.text(min_size=1, max_size=30))
def test_no_text_breaks_a_version(text: str) -> None:
    try:
        version = version_at({"v": text}, "v", ASKER)
    except Permanent:
        with pytest.raises(UnicodeEncodeError):
            text.encode()
        return
    assert Version.read(version.text) == version
    assert not version.is_older(version)


def test_a_version_is_found_by_its_path() -> None:
    assert version_at(body({"n": 5}), "data.object.n", ASKER).text == "5"
    assert version_at(body({"n": 5}), "list.0.n", ASKER).text == "5"


@pytest.mark.parametrize(("value", "text"), [(1e22, "10000000000000000000000"), (1.5, "1.5")])
def test_a_json_number_is_stored_without_an_exponent(value: float, text: str) -> None:
    assert version_at({"n": value}, "n", ASKER).text == text


@pytest.mark.parametrize(
    "value",
    [None, "", True, [], [5], {}, {"n": 5}, "x" * 257, float("nan"), float("inf"), 10**300],
)
def test_what_is_no_version_is_permanent(value: Any) -> None:
    with pytest.raises(Permanent) as raised:
        version_at(body(value), "data.object", ASKER)
    assert "handler 'shop.sync' needs the version at 'data.object'" in str(raised.value)


def test_a_path_that_leads_nowhere_is_permanent() -> None:
    with pytest.raises(Permanent, match=r"needs the version at 'data.updated': .* there is none"):
        version_at(body("x"), "data.updated", ASKER)


# -- ordering keys


@pytest.mark.parametrize(
    ("value", "ordering_key"), [("cus_1", "cus_1"), (17, "17"), (0, "0"), (-1, "-1")]
)
def test_an_ordering_key_is_text_or_a_whole_number(value: Any, ordering_key: str) -> None:
    assert ordering_key_at(body(value), "data.object", ASKER) == ordering_key


@pytest.mark.parametrize("value", [None, "", True, 1.5, [], ["cus_1"], {"id": "cus_1"}, "\ud800"])
def test_what_is_no_ordering_key_is_permanent(value: Any) -> None:
    with pytest.raises(Permanent, match=r"needs the ordering key at 'data.object': ") as raised:
        ordering_key_at(body(value), "data.object", ASKER)
    assert str(raised.value).encode()


@pytest.mark.parametrize("whole", [None, 5, "text", [], True])
def test_a_body_that_is_no_object_is_permanent(whole: Any) -> None:
    with pytest.raises(Permanent, match="there is none"):
        ordering_key_at(whole, "data.object", ASKER)


def test_a_long_value_is_shown_in_part() -> None:
    with pytest.raises(Permanent) as raised:
        version_at({"v": "x" * 5000}, "v", ASKER)
    assert len(str(raised.value)) < 250


def test_a_deep_value_is_not_shown() -> None:
    deep = json.loads("[" * 900 + "]" * 900)
    with pytest.raises(Permanent, match=r"there is list$"):
        ordering_key_at({"id": deep}, "id", ASKER)


# -- numbers


@pytest.mark.parametrize(("value", "number"), [(0, 0), (1, 1), ("12", 12), ("007", 7)])
def test_a_number_is_whole(value: Any, number: int) -> None:
    assert number_at(body(value), "data.object", ASKER) == number


def test_the_greatest_number_has_eighteen_digits() -> None:
    assert number_at({"n": 10**18 - 1}, "n", ASKER) == 10**18 - 1
    with pytest.raises(Permanent, match="from 0 to"):
        number_at({"n": 10**18}, "n", ASKER)


@pytest.mark.parametrize("value", [None, -1, "-1", 1.0, "1.0", True, "", "one", "\u0663", [1], {}])
def test_what_is_no_number_is_permanent(value: Any) -> None:
    with pytest.raises(Permanent, match=r"needs the number at 'data.object': a whole number"):
        number_at(body(value), "data.object", ASKER)
