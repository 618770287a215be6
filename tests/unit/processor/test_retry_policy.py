"""When a run has no attempts left."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.unit.support.world import handler
from webhook_inbox.domain.internal_errors import TransientOfCall
from webhook_inbox.domain.model import Attempt, Run, Status
from webhook_inbox.processor.retry_policy import is_exhausted

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPEC = handler("acme.fulfil", "paid", max_attempts=8)
DNS = "crm: no such host"


def run(*errors: str, in_round: int | None = None) -> Run:
    """Returns a run in the attempt after those that failed of these."""
    made = tuple(Attempt(n, NOW, NOW, "failed", e) for n, e in enumerate(errors, start=1))
    number = len(errors) + 1
    return replace(
        Run("acme", "e", "acme.fulfil", "paid", Status.PROCESSING),
        attempts=made,
        attempt_count=number,
        attempts_in_round=number if in_round is None else in_round,
    )


@pytest.mark.parametrize(
    ("before", "ended"),
    [
        ((), False),
        ((DNS,), False),
        ((DNS, DNS), True),
        (("500", "500"), False),
        (("500", "500", DNS, DNS), True),
        ((DNS, "500", DNS), False),
        ((DNS, DNS, "500"), False),
    ],
)
def test_fewer_attempts_are_those_that_fail_of_just_this_in_a_row(
    before: tuple[str, ...], ended: bool
) -> None:
    error = TransientOfCall(DNS, max_attempts=3)
    assert is_exhausted(SPEC, run(*before), error, DNS) is ended


def test_an_earlier_round_does_not_count() -> None:
    error = TransientOfCall(DNS, max_attempts=3)
    assert not is_exhausted(SPEC, run(DNS, DNS, DNS, in_round=1), error, DNS)
    assert not is_exhausted(SPEC, run(DNS, DNS, DNS, in_round=2), error, DNS)
    assert is_exhausted(SPEC, run(DNS, DNS, DNS, DNS, in_round=3), error, DNS)


def test_a_handlers_own_limit_stands() -> None:
    spec = replace(SPEC, max_attempts=2)
    assert is_exhausted(spec, run("500"), TransientOfCall(DNS, max_attempts=3), DNS)
    assert not is_exhausted(SPEC, run("500"), ValueError("x"), "x")
    assert is_exhausted(SPEC, run(*["x"] * 7), ValueError("x"), "x")
