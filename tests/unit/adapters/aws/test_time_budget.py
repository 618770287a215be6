"""Ingest's calls end in time, whatever fails."""

from collections.abc import Callable

import pytest

from tests.unit.adapters.aws.fake_client import refusal
from webhook_inbox.adapters.aws.errors import AwsError
from webhook_inbox.adapters.aws.time_budget import TOTAL_SECONDS, TimeBudget
from webhook_inbox.domain.errors import NoTimeLeft, Unavailable


class Time:
    """Time that passes by sleeping and by attempts."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def attempt(self, *outcomes: Exception | str, seconds: float) -> Callable[[], str]:
        """Returns an attempt that takes so long each time and ends in one outcome after another."""
        left = list(outcomes)

        def attempt() -> str:
            self.now += seconds
            outcome = left.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return attempt


THROTTLED = refusal("ThrottlingException")
# The errors of the SDK's clients and of ingest's own that may pass.
PASSING = [THROTTLED, AwsError("ThrottlingException", status=400), TimeoutError("timed out")]


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def patience(time: Time) -> TimeBudget:
    return TimeBudget(
        monotonic=lambda: time.now, sleep=time.sleep, jitter=lambda low, high: (low + high) / 2
    )


def test_a_call_that_succeeds_is_made_once(time: Time, patience: TimeBudget) -> None:
    call = patience.attempts_of(1.0)

    assert call("dynamodb", "PutItem", time.attempt("stored", seconds=0.01)) == "stored"
    assert time.slept == []


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_a_call_that_fails_in_passing_is_made_again_after_a_pause(
    time: Time, patience: TimeBudget, error: Exception
) -> None:
    call = patience.attempts_of(1.0)

    answer = call("dynamodb", "PutItem", time.attempt(error, "stored", seconds=0.01))

    assert answer == "stored"
    assert time.slept == [pytest.approx(0.05)]


def test_a_call_is_made_twice_at_most(time: Time, patience: TimeBudget) -> None:
    call = patience.attempts_of(0.1)

    with pytest.raises(Unavailable, match="ThrottlingException"):
        call("sqs", "Send", time.attempt(THROTTLED, THROTTLED, "too late", seconds=0.01))


def test_a_call_that_will_fail_again_is_not_repeated(time: Time, patience: TimeBudget) -> None:
    call = patience.attempts_of(0.1)

    with pytest.raises(Unavailable, match="AccessDenied"):
        call("sqs", "Send", time.attempt(refusal("AccessDenied", status=403), "no", seconds=0.01))
    assert time.slept == []


def test_no_attempt_begins_that_may_end_too_late(time: Time, patience: TimeBudget) -> None:
    call = patience.attempts_of(1.0)
    time.now += 1.51

    with pytest.raises(NoTimeLeft, match="no time is left"):
        call("dynamodb", "PutItem", time.attempt("never", seconds=0.0))


def test_an_attempt_that_just_fits_is_made(time: Time, patience: TimeBudget) -> None:
    time.now += 1.5

    assert patience.attempts_of(1.0)("s", "o", time.attempt("made", seconds=1.0)) == "made"


def test_a_retry_that_does_not_fit_is_not_made(time: Time, patience: TimeBudget) -> None:
    call = patience.attempts_of(1.0)
    time.now += 0.6

    with pytest.raises(Unavailable, match="ThrottlingException"):
        call("dynamodb", "PutItem", time.attempt(THROTTLED, "no", seconds=0.9))
    assert time.slept == []


def test_each_invocation_has_its_own_time(time: Time, patience: TimeBudget) -> None:
    time.now += 3600
    with pytest.raises(Unavailable):
        patience.attempts_of(1.0)("s", "o", time.attempt("no", seconds=0))

    patience.begin()

    assert patience.attempts_of(1.0)("s", "o", time.attempt("yes", seconds=0)) == "yes"


@pytest.mark.parametrize("took", [0.0, 0.1, 0.3, 0.7, 0.95, 1.0])
@pytest.mark.parametrize("amount", [1, 2, 3, 6])
def test_any_number_of_hanging_calls_ends_in_time(
    time: Time, patience: TimeBudget, took: float, amount: int
) -> None:
    start = time.now
    call = patience.attempts_of(1.0)

    for _ in range(amount):
        with pytest.raises(Unavailable):
            call("s", "o", time.attempt(THROTTLED, THROTTLED, seconds=took))

    assert time.now - start <= TOTAL_SECONDS + 1e-9


def test_an_error_of_our_own_code_is_not_retried(time: Time, patience: TimeBudget) -> None:
    with pytest.raises(KeyError):
        patience.attempts_of(1.0)("s", "o", time.attempt(KeyError("bug"), "no", seconds=0))
