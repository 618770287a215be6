"""Warming functions up: what keeps them from running, and what only looks like it."""

import io
import json
from typing import Any

import pytest

from webhookctl.errors import CommandError
from webhookctl.local.deployment.functions import Deployed, Fleet

PROCESSOR = Deployed("processor", "Stack-Processor-1", "processor")


class Lambda:
    """Answers invocations with these errors in turn, and then as a function that runs."""

    def __init__(self, *errors: str) -> None:
        self.errors = list(errors)
        self.invocations = 0

    def invoke(self, **_: Any) -> dict[str, Any]:
        self.invocations += 1
        if not self.errors:
            return {"Payload": io.BytesIO(b"{}")}
        content = {"errorMessage": self.errors.pop(0), "errorType": "Runtime.Unknown"}
        return {"FunctionError": "Unhandled", "Payload": io.BytesIO(json.dumps(content).encode())}


def warmed(double: Lambda) -> None:
    Fleet(lambda _: double).warm({PROCESSOR: 1})


def test_what_a_function_says_itself_is_believed_at_once() -> None:
    double = Lambda("cannot import name 'x'")
    with pytest.raises(CommandError, match="processor cannot run: cannot import name 'x'"):
        warmed(double)
    assert double.invocations == 1
