"""The log line of a run has no secret, no personal field and no input of a validation."""

from collections.abc import Mapping
from logging import INFO
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from processor.telemetry import observe
from webhook_inbox.domain.personal import PersonalTexts
from webhook_inbox.queue.outcomes import RunOutcome, RunResult


class Order(BaseModel):
    total: int


class Lines:
    """A logger that keeps what it writes."""

    log_level = INFO

    def __init__(self) -> None:
        self.written: list[Mapping[str, Any]] = []

    def info(self, _: str, *, extra: Mapping[str, Any]) -> None:
        self.written.append(extra)

    def warning(self, _: str, *, extra: Mapping[str, Any]) -> None:
        self.written.append(extra)


def line(error: BaseException) -> Mapping[str, Any]:
    """Returns the log line of a run that failed with an error."""
    personal = PersonalTexts(["email"], b'{"email": "ada.lovelace@example.com"}')
    lines: Any = Lines()
    result = RunResult(RunOutcome.FAILED, error=error, hide=personal.hide)
    observe(lines, result, redact=lambda text: text.replace("s3cret", "[s]"), metrics=lambda _: {})
    [written] = lines.written
    return written  # type: ignore[no-any-return]


def test_a_validation_is_logged_without_its_input() -> None:
    with pytest.raises(ValidationError) as raised:
        Order.model_validate({"total": "ada.lovelace@example.com" * 9})

    told = line(raised.value)

    assert told["error_class"] == "ValidationError"
    assert "Input should be a valid integer" in told["exception"]
    assert "lovelace" not in told["exception"]
    assert "example" not in told["exception"]


@pytest.mark.parametrize("length", range(1, 60))
def test_a_long_traceback_is_cut_before_no_value_that_it_would_hide(length: int) -> None:
    """The first characters that are kept may be the end of a value."""
    error = ValueError("x" * 20_000 + "ada.lovelace@example.com" + "y" * (16_000 - length))

    text = line(error)["exception"]

    assert all(part not in text for part in ("ada.", "lovel", "ace@ex", ".com"))
