"""The errors in the logs of the functions."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from webhook_inbox.adapters.aws.stack_facts import LoggedError
from webhook_inbox.client.health.doctor.examination import Examination
from webhook_inbox.client.health.result import CheckResult, Level
from webhook_inbox.client.suggestions import quoted
from webhook_inbox.client.times import span
from webhook_inbox.domain.printable import counted, cut

# An error that a function logs, and an invocation that Lambda ended.
ERRORS: Final = '{ $.level = "ERROR" || $.record.status = "error" || $.record.status = "timeout" }'
WINDOW: Final = timedelta(hours=1)
FIELDS: Final = ("message", "source", "event_id", "reason", "errorMessage")
LONGEST: Final = 200
# The number of other messages that are listed.
KINDS: Final = 4


def errors(exam: Examination) -> Iterator[CheckResult]:
    """Yields a warning for each function that logged an error within the last hour."""
    if exam.target.local:
        yield CheckResult("logs", Level.SKIPPED, "in the terminal of `webhookctl dev`")
        return
    found = 0
    for function, group in exam.target.log_groups.items():
        events, more = exam.stack.logged(group, ERRORS, since=exam.now - WINDOW)
        if events:
            found += 1
            last = max(events, key=lambda each: each.at)
            age = span(exam.now - last.at)
            number = f"{'at least ' if more else ''}{counted(len(events), 'error')}"
            yield CheckResult.judged(
                "logs",
                f"{_role(exam, function)}: {number} within an hour; {age} ago: {_error_text(last)}"
                f"{_others(events, last)}",
                warning=f"`{follow(group)}` shows them",
            )
    if not found:
        yield CheckResult.judged("logs", "no function logged an error within an hour")


def follow(group: str) -> str:
    """Returns the command that shows the errors of a log group."""
    return f"aws logs tail {quoted(group)} --since 1h --filter-pattern '{ERRORS}'"


def _role(exam: Examination, function: str) -> str:
    roles = {name: f"processor {lane}" for lane, name in exam.target.processors.items()}
    roles |= {exam.target.reconciler: "reconciler", exam.target.replay_function: "replay"}
    return roles.get(function, "ingest")


def _others(events: Sequence[LoggedError], last: LoggedError) -> str:
    """Returns the other messages with their numbers: anyone can cause the latest one."""
    kinds = Counter(_error_text(each).partition(", ")[0] for each in events)
    del kinds[_error_text(last).partition(", ")[0]]
    listed = [f"{number} {kind}" for kind, number in kinds.most_common(KINDS)]
    return f"; also {', '.join(listed)}" if listed else ""


def _error_text(event: LoggedError) -> str:
    """Returns what a line says; a line of Lambda has other fields than ours."""
    try:
        line = json.loads(event.text)
    except ValueError:
        return cut(event.text, LONGEST)
    if "record" in line:
        return f"Lambda reports {line['record'].get('status')}"
    return cut(", ".join(str(line[name]) for name in FIELDS if line.get(name)), LONGEST)
