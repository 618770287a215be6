"""Spans of time as people say them."""

from datetime import UTC, datetime, timedelta

import pytest

from webhookctl.explain.durations import relative, span, spelled

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (-5, "0s"),
        (0.9, "0s"),
        (41, "41s"),
        (60, "1m"),
        (303, "5m 3s"),
        (3600, "1h"),
        (3605, "1h"),
        (7500, "2h 5m"),
        (2 * 86400 + 4 * 3600 + 59, "2d 4h"),
    ],
)
def test_a_span_is_told_by_its_two_largest_units(seconds: float, words: str) -> None:
    assert span(timedelta(seconds=seconds)) == words


def test_what_was_is_ago_and_what_comes_is_in() -> None:
    assert relative(NOW - timedelta(seconds=41), NOW) == "41s ago"
    assert relative(NOW + timedelta(seconds=12), NOW) == "in 12s"
    assert relative(NOW, NOW) == "0s ago"


def test_a_time_is_spelled_in_utc_without_fractions() -> None:
    assert spelled(NOW + timedelta(milliseconds=999)) == "2026-11-21T08:00:00Z"
