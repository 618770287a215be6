"""Where an attempt can be looked up: its log lines, its trace and its code version."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote

from webhook_inbox.client.suggestions import Command, quoted
from webhook_inbox.domain.model import Attempt, Run, StoredEvent
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.domain.trace import Trace

# Clocks differ, and the line is written after the attempt's end.
MARGIN: Final = timedelta(minutes=5)
CONSOLE: Final = "console.aws.amazon.com"
# The hosts in the other partitions, by the beginning of their regions' names.
CONSOLES: Final = {"cn-": "console.amazonaws.cn", "us-gov-": "console.amazonaws-us-gov.com"}


@dataclass(frozen=True, slots=True)
class LogLines:
    """The page of CloudWatch that shows the log lines, and the command that prints them."""

    url: str
    command: Command


@dataclass(frozen=True, slots=True)
class AttemptEvidence:
    """The ids and the log lines of an attempt; an absent value is None.

    Attributes:
        code_version: the version of the code that ran.
        request_id: the id of the invocation.
        trace_id: the id of the event's trace.
        span_id: the id of the attempt in the trace.
        logs: its log lines.
    """

    code_version: str | None
    request_id: str | None
    trace_id: str
    span_id: str
    logs: LogLines | None


@dataclass(frozen=True, slots=True)
class Logs:
    """The log groups of an inbox, by the names of its functions; none on this machine.

    `region` is "" on this machine.
    """

    groups: Mapping[str, str]
    region: str = ""

    def of(self, event: StoredEvent, attempt: Attempt) -> LogLines | None:
        """Returns the console's address and the command of an attempt's log lines, if known.

        Both filter by the event's id.
        """
        group = self.groups.get(attempt.worker.partition("/")[0])
        if not group or not self.region:
            return None
        low, high = to_ms(attempt.started_at - MARGIN), to_ms(attempt.ended_at + MARGIN)
        pattern = _pattern(event.event_id)
        query = f"?start={low}&end={high}&filterPattern={quote(pattern, safe='')}"
        url = (
            f"https://{self.region}.{_console(self.region)}/cloudwatch/home"
            f"?region={self.region}#logsV2:log-groups/log-group/{_twice(group)}"
            f"/log-events{_twice(query)}"
        )
        return LogLines(url, _command(group, self.region, low, high, pattern))

    def commands(self, event: StoredEvent, runs: Iterable[Run]) -> Iterator[Command]:
        """Yields a command for each log group with lines of an event's attempts."""
        windows: dict[str, list[datetime]] = {}
        for attempt in (attempt for run in runs for attempt in run.attempts):
            group = self.groups.get(attempt.worker.partition("/")[0], "")
            windows.setdefault(group, []).extend((attempt.started_at, attempt.ended_at))
        for group, times in windows.items() if self.region else ():
            low, high = to_ms(min(times) - MARGIN), to_ms(max(times) + MARGIN)
            if group:
                pattern = _pattern(event.event_id)
                yield _command(group, self.region, low, high, pattern)


def attempt_evidence(logs: Logs, event: StoredEvent, run: Run, attempt: Attempt) -> AttemptEvidence:
    """Returns the code version, the invocation, the trace and the log lines of an attempt."""
    source, event_id = event.source, event.event_id
    trace = Trace.of(event.headers, source=source, event_id=event_id)
    return AttemptEvidence(
        code_version=attempt.code_version or None,
        request_id=attempt.worker.partition("/")[2] or None,
        trace_id=trace.id,
        span_id=trace.attempt(source, event_id, run.handler, attempt.number).span,
        logs=logs.of(event, attempt),
    )


def _console(region: str) -> str:
    """Returns the host of the console in the region's partition."""
    return next((host for start, host in CONSOLES.items() if region.startswith(start)), CONSOLE)


def _pattern(event_id: str) -> str:
    """Returns the filter of CloudWatch Logs for lines of an event."""
    escaped = event_id.replace("\\", "\\\\").replace('"', '\\"')
    return f'{{ $.event_id = "{escaped}" }}'


def _twice(text: str) -> str:
    # The console's router decodes a fragment twice, with $ for the first percent sign.
    return quote(quote(text, safe=""), safe="").replace("%", "$")


def _command(group: str, region: str, low: int, high: int, pattern: str) -> Command:
    words = ("aws", "logs", "filter-log-events", "--region", region, "--log-group-name", group)
    window = ("--start-time", str(low), "--end-time", str(high), "--filter-pattern", pattern)
    shown = ("--query", "events[].message", "--output", "text")
    return Command(map(quoted, (*words, *window, *shown)))
