"""When a destination wants to be asked again: seconds, dates, milliseconds and nonsense."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webhook_inbox.destinations.responses import LIMIT, retry_after

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
HUBSPOT = {"x-hubspot-ratelimit-interval-milliseconds": "10000"}


def asked(
    headers: dict[str, str], *, unit: str = "seconds", limited: bool = True
) -> timedelta | None:
    return retry_after(headers, unit=unit, limited=limited, now=NOW)


def after(value: str) -> timedelta | None:
    return asked({"retry-after": value})


def rfc850(moment: datetime) -> str:
    return moment.strftime("%A, %d-%b-%y %H:%M:%S GMT")


def asctime(moment: datetime) -> str:
    return moment.strftime("%a %b ") + f"{moment.day:2d}" + moment.strftime(" %H:%M:%S %Y")


def fixdate(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 0), ("1", 1), ("120", 120), (" 5 ", 5), ("1.5", 1.5), ("0.65", 0.65), ("86400", 86400)],
)
def test_a_number_is_seconds(value: str, seconds: float) -> None:
    assert after(value) == timedelta(seconds=seconds)


@pytest.mark.parametrize("write", [fixdate, rfc850, asctime])
def test_each_of_the_three_formats_of_a_date_is_read(write: object) -> None:
    assert callable(write)
    assert after(write(NOW + timedelta(minutes=5))) == timedelta(minutes=5)


def test_the_examples_of_rfc_9110_are_one_moment() -> None:
    moment = datetime(1994, 11, 6, 8, 49, 30, tzinfo=UTC)
    waits = [
        retry_after({"retry-after": text}, unit="seconds", limited=False, now=moment)
        for text in (
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        )
    ]

    assert waits == [timedelta(seconds=7)] * 3


@pytest.mark.parametrize("write", [fixdate, rfc850, asctime])
def test_a_date_in_the_past_is_now(write: object) -> None:
    assert callable(write)
    assert after(write(NOW - timedelta(days=3))) == timedelta(0)


@pytest.mark.parametrize("value", ["31536000", "999999999999999", fixdate(NOW.replace(year=2027))])
def test_a_year_is_a_day(value: str) -> None:
    assert after(value) == LIMIT == timedelta(hours=24)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "-5",
        "1e3",
        "0x10",
        "NaN",
        "inf",
        "1,5",
        "5, 10",
        "\u0665",
        "9" * 16,
        "Sun, 99 Nov 2026 08:49:37 GMT",
        "Sun, 06 Foo 2026 08:49:37 GMT",
        "Sun, 06 Nov 2026 25:61:61 GMT",
        "Sun, 06 Nov 99999999999 08:49:37 GMT",
        "2026-11-21T12:05:00Z",
        "(((",
    ],
)
def test_nonsense_asks_for_nothing(value: str) -> None:
    assert after(value) is None


def test_nothing_asks_for_nothing() -> None:
    assert asked({}) is None


@pytest.mark.parametrize("name", ["retry-after-ms", "x-ms-retry-after-ms"])
def test_a_header_of_milliseconds_is_more_exact(name: str) -> None:
    assert asked({name: "1500", "retry-after": "2"}) == timedelta(seconds=1.5)
    assert asked({name: "soon", "retry-after": "2"}) == timedelta(seconds=2)


def test_a_destination_may_count_in_milliseconds() -> None:
    assert asked({"retry-after": "2500"}, unit="milliseconds") == timedelta(seconds=2.5)
    date = fixdate(NOW + timedelta(seconds=9))
    assert asked({"retry-after": date}, unit="milliseconds") == timedelta(seconds=9)


def test_hubspot_tells_its_window_in_milliseconds() -> None:
    assert asked(HUBSPOT) == timedelta(seconds=10)
    assert asked({**HUBSPOT, "retry-after": "soon"}) == timedelta(seconds=10)


def test_the_window_that_every_answer_of_hubspot_has_counts_after_a_429_only() -> None:
    assert asked(HUBSPOT, limited=False) is None


@pytest.mark.parametrize(("value", "seconds"), [("10000", 10), ("1000", 1), ("999", 999), ("2", 2)])
def test_hubspot_counts_in_milliseconds_what_can_be_no_seconds(value: str, seconds: float) -> None:
    assert asked({**HUBSPOT, "retry-after": value}) == timedelta(seconds=seconds)


@settings(max_examples=200)
@given(st.integers(min_value=0, max_value=10**15 - 1))
def test_any_number_is_a_wait_of_up_to_a_day(seconds: int) -> None:
    assert after(str(seconds)) == timedelta(seconds=min(seconds, 86400))


@settings(max_examples=200)
@given(
    st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31)),  # noqa: DTZ001 - given one below
    st.sampled_from([fixdate, rfc850, asctime]),
)
def test_any_date_is_a_wait_of_up_to_a_day(naive: datetime, write: object) -> None:
    assert callable(write)
    moment = naive.replace(microsecond=0, tzinfo=UTC)

    assert after(write(moment)) == min(max(moment - NOW, timedelta(0)), LIMIT)


@settings(max_examples=200)
@given(st.text(max_size=60), st.booleans(), st.sampled_from(["seconds", "milliseconds"]))
def test_any_text_is_a_wait_of_up_to_a_day_or_none(text: str, limited: bool, unit: str) -> None:
    for headers in (
        {"retry-after": text},
        {"retry-after-ms": text},
        {"x-hubspot-ratelimit-interval-milliseconds": text},
    ):
        wait = asked(headers, unit=unit, limited=limited)
        assert wait is None or timedelta(0) <= wait <= LIMIT
