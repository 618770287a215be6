"""Prints failing and dead runs by their cause."""

from datetime import datetime
from typing import Any

from webhook_inbox.client.failures import FailureGroup, FailureSummary
from webhook_inbox.client.times import relative
from webhook_inbox.domain.printable import counted
from webhookctl.display.json_object import fields_object, json_object
from webhookctl.display.output import Output


@json_object.register
def _(group: FailureGroup) -> Any:
    return {name: value for name, value in fields_object(group).items() if name != "text"}


def print_group(output: Output, group: FailureGroup, now: datetime) -> None:
    """Prints `68 x KeyError at functions/handlers/erp.py:22 (shop.book)`, then the details."""
    where = f" at {group.error_line}" if group.error_line else ""
    output.text(f"{group.count} x {group.error_class or 'error'}{where} ({group.handler})")
    retried = group.count - group.dead
    parts = [f"{group.dead} dead" if group.dead else "", f"{retried} retried" if retried else ""]
    output.labelled("message", [group.text])
    if group.first_at is not None and group.last_at is not None:
        seen = f"first {relative(group.first_at, now)}, last {relative(group.last_at, now)}"
        output.labelled("seen", [f"{seen}; {', '.join(filter(None, parts))}"])
    output.labelled("example", [group.inspect])
    if group.replay:
        output.labelled("replay", [group.replay])
    if group.replay_of_class:
        # Other groups have the same line: their messages differ, and the cause does not.
        every = f"every {group.error_class} of {group.handler}:"
        output.labelled("or all", [every, group.replay_of_class])
    output.line()


def summary_note(summary: FailureSummary) -> str:
    """Returns how many runs there are, and how many are in other groups."""
    if not summary.runs:
        return "No failing or dead runs found."
    rest = summary.runs - sum(each.count for each in summary.groups)
    more = f" The other groups have {counted(rest, 'run')}: see more with --limit." if rest else ""
    return f"{counted(summary.runs, 'run')} in {counted(summary.group_count, 'group')}.{more}"
