"""The times that tokens claim."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.providers.schemes.jwt.jwt import LAST_SECOND, Times

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
S = int(NOW.timestamp())
USUAL = Times()
KIND = Times(ahead=timedelta(seconds=5), grace=timedelta(seconds=5), max_age=timedelta(seconds=30))


def reason(times: Times, claims: dict[str, Any], *, now: datetime = NOW) -> Reason | None:
    try:
        times.judge(claims, now)
    except Rejected as error:
        return error.reason
    return None


@pytest.mark.parametrize(
    ("times", "claims", "expected"),
    [
        (USUAL, {}, None),
        (USUAL, {"exp": S + 1}, None),
        (USUAL, {"exp": S}, Reason.STALE),
        (USUAL, {"exp": S + 0.9}, Reason.STALE),
        (USUAL, {"iat": S + 60, "nbf": S + 60}, None),
        (USUAL, {"iat": S + 61}, Reason.FUTURE),
        (USUAL, {"nbf": S + 61}, Reason.FUTURE),
        (USUAL, {"iat": 0, "nbf": 0}, None),
        (KIND, {"iat": S, "exp": S - 4}, None),
        (KIND, {"iat": S, "exp": S - 5}, Reason.STALE),
        (KIND, {"iat": S + 5}, None),
        (KIND, {"iat": S + 6}, Reason.FUTURE),
        (KIND, {"iat": S - 30}, None),
        (KIND, {"iat": S - 31}, Reason.STALE),
        (KIND, {"exp": S + 60}, Reason.MALFORMED),
        (USUAL, {"exp": None, "iat": None}, None),
    ],
)
def test_times_are_judged_to_the_second(
    times: Times, claims: dict[str, Any], expected: Reason | None
) -> None:
    assert reason(times, claims) is expected


@pytest.mark.parametrize("name", ["iat", "nbf", "exp"])
@pytest.mark.parametrize(
    "value", [True, "1", [], {}, -1, -0.5, LAST_SECOND, 1e300, float("inf"), float("nan")]
)
def test_what_is_no_time_is_malformed(name: str, value: object) -> None:
    assert reason(USUAL, {name: value}) is Reason.MALFORMED


def test_when_it_was_issued_is_told() -> None:
    assert USUAL.judge({"iat": S - 7.9}, NOW) == NOW - timedelta(seconds=8)
    assert USUAL.judge({"exp": S + 1}, NOW) is None


@given(st.dictionaries(st.sampled_from(["iat", "nbf", "exp"]), st.floats() | st.integers()))
def test_any_numbers_are_judged_or_refused(claims: dict[str, Any]) -> None:
    assert reason(KIND, claims) in {None, Reason.STALE, Reason.FUTURE, Reason.MALFORMED}
