"""Times as operators write and read them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
import typer

from webhook_inbox.client.times import OLDEST, iso, relative, span, spelled
from webhookctl.display.times import moment

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("7d", timedelta(days=7)),
    ],
)
def test_a_span_is_so_long_ago(text: str, ago: timedelta) -> None:
    assert moment(text, NOW) == NOW - ago


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T06:00:00Z",
        "2026-11-21T06:00:00",
        "2026-11-21T08:00:00+02:00",
        "2026-11-21 06:00",
    ],
)
def test_a_time_is_utc_unless_it_says_otherwise(text: str) -> None:
    assert moment(text, NOW) == NOW - timedelta(hours=2)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("999d", -OLDEST),
        ("0001-01-01T00:00:00+14:00", -OLDEST),
        ("9999-12-31T23:59:59-14:00", timedelta(days=1)),
    ],
)
def test_no_time_is_further_away_than_the_rows_of_the_ledger(text: str, bound: timedelta) -> None:
    assert moment(text, NOW) == NOW + bound


@pytest.mark.parametrize("text", ["", "2", "h", "2 h", "-2h", "0h", "2w", "٣h", "999999d", "now"])
def test_anything_else_is_a_wrong_call(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a time"):
        moment(text, NOW)


def test_a_time_is_written_in_utc_to_the_millisecond() -> None:
    cet = timezone(timedelta(hours=1))
    assert iso(datetime(2026, 11, 21, 9, 0, 0, 1999, tzinfo=cet)) == "2026-11-21T08:00:00.001Z"
    assert iso(None) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (-5, "0 s"),
        (0.9, "0 s"),
        (41, "41 s"),
        (60, "1 min"),
        (303, "5 min 3 s"),
        (3600, "1 h"),
        (3605, "1 h"),
        (7500, "2 h 5 min"),
        (2 * 86400 + 4 * 3600 + 59, "2 d 4 h"),
    ],
)
def test_a_span_is_told_by_its_two_largest_units(seconds: float, words: str) -> None:
    assert span(timedelta(seconds=seconds)) == words


def test_what_was_is_ago_and_what_comes_is_in() -> None:
    assert relative(NOW - timedelta(seconds=41), NOW) == "41 s ago"
    assert relative(NOW + timedelta(seconds=12), NOW) == "in 12 s"
    assert relative(NOW, NOW) == "0 s ago"


def test_a_time_is_spelled_in_utc_without_fractions() -> None:
    assert spelled(NOW + timedelta(milliseconds=999)) == "2026-11-21T08:00:00Z"
