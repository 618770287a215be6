"""Prints the results of checks, one a line, each with its remedy below it."""

from collections.abc import Sequence
from typing import Any, Final

from webhook_inbox.domain.printable import counted
from webhookctl.display.output import Output
from webhookctl.preflight.result import Level, Result

LEVEL: Final = 9  # columns of a level and its gap


def show(output: Output, found: Sequence[Result]) -> None:
    """Prints results."""
    for each in found:
        limit = f"; limit {each.limit}" if each.limit else ""
        text = f"{each.level:<{LEVEL}}{each.check}: {each.figure}{limit}"
        output.text(text, hanging=" " * LEVEL)
        if each.remedy:
            output.text(each.remedy, indent=" " * LEVEL)


def summarize(output: Output, found: Sequence[Result]) -> None:
    """Prints the number of results by level to standard error."""
    counts = {level: sum(each.level is level for each in found) for level in Level}
    plural = {
        level: "" if level in {Level.WARNING, Level.FAILURE} else str(level) for level in Level
    }
    told = (counted(counts[each], str(each), plural[each]) for each in Level if counts[each])
    output.note(f"{', '.join(told)}.")


def result_object(result: Result) -> dict[str, Any]:
    """Returns a result as JSON data."""
    return {
        "check": result.check,
        "level": str(result.level),
        "figure": result.figure,
        "limit": result.limit,
        "remedy": result.remedy,
    }


def failed(found: Sequence[Result]) -> bool:
    """Returns whether a check failed."""
    return any(each.level is Level.FAILURE for each in found)
