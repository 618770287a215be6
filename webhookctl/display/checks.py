"""Prints results of checks, one a line, each with its remedy below it."""

from collections.abc import Sequence
from typing import Any, Final

from webhook_inbox.client.health.result import CheckResult, Level
from webhook_inbox.client.health.smoke.steps import StepResult
from webhook_inbox.domain.printable import counted
from webhookctl.display.json_object import json_object
from webhookctl.display.output import Output

LEVEL: Final = 9  # columns of a level and its gap


def print_result(output: Output, result: CheckResult) -> None:
    """Prints a result."""
    limit = f"; limit {result.limit}" if result.limit else ""
    text = f"{result.level:<{LEVEL}}{result.check}: {result.figure}{limit}"
    if output.as_json:
        output.json(json_object(result))
        return
    output.text(text, hanging=" " * LEVEL)
    if result.remedy:
        output.text(result.remedy, indent=" " * LEVEL)


def print_step(output: Output, result: StepResult) -> None:
    """Prints the result of a step of the smoke test, and its time."""
    if output.as_json:
        output.json(json_object(result))
        return
    seconds = result.took.total_seconds()
    output.labelled(result.check, [f"{_outcome(result):<6} {seconds:5.1f} s  {result.figure}"])


@json_object.register
def _(result: StepResult) -> dict[str, Any]:
    return {
        "step": result.check,
        "result": _outcome(result),
        "seconds": round(result.took.total_seconds(), 3),
        "detail": result.figure,
    }


def _outcome(result: StepResult) -> str:
    return "failed" if result.level is Level.FAILURE else "ok"


def summarize(output: Output, found: Sequence[CheckResult]) -> None:
    """Prints the number of results by level to standard error; nothing with --json."""
    if output.as_json:
        return
    counts = {level: sum(each.level is level for each in found) for level in Level}
    plural = {
        level: "" if level in {Level.WARNING, Level.FAILURE} else str(level) for level in Level
    }
    parts = (counted(counts[each], str(each), plural[each]) for each in Level if counts[each])
    output.note(f"{', '.join(parts)}.")


def failed(found: Sequence[CheckResult]) -> bool:
    """Returns whether a check failed."""
    return any(each.level is Level.FAILURE for each in found)
