"""Follows the functions' logs: a line per outcome of a run, and tracebacks without libraries."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from webhook_inbox.client.times import span
from webhook_inbox.domain.metrics import CATALOGUE
from webhook_inbox.domain.printable import counted
from webhookctl.display.table import wrapped
from webhookctl.display.untrusted import printable, printable_lines

INTERVAL: Final = 0.4
OVERLAP: Final = 1_000  # milliseconds; each entry is read so often as it has intervals
LAST_LOOK: Final = 10.0  # seconds at the end; it takes milliseconds
# Lambda's own lines, and the library's entries about success that are no outcome of a run.
PLATFORM: Final = ("START RequestId:", "END RequestId:", "REPORT RequestId:")
QUIET: Final = frozenset({"DEBUG", "INFO"})
# ministack's copy of a function; the file to open is the one in functions/.
UNPACKED: Final = re.compile(r'(?<=")[^"\n]*/ministack-lambda-[^"/]+/code/')
# Outcomes of a run that the terminal shows, with the label of their detail.
OUTCOMES: Final = {
    "done": "",
    "skipped": "",
    "held": "waits for approval",
    "failed": "retry",
    "deferred": "continues",
    "dead": "given up",
}
FRAME: Final = re.compile(r'  File "(?P<file>[^"]+)", line (?P<line>\d+)')
USERS: Final = "functions/handlers/"
# Columns of an error's text, within a narrow terminal.
ERROR_WIDTH: Final = 76
# Fields of a structured entry that are shown separately or not at all.
UNSHOWN: Final = frozenset(
    {
        *CATALOGUE,
        "_aws",
        "code_version",
        "cold_start",
        "exception",
        "error_class",
        "error_line",
        "exception_name",
        "function_arn",
        "function_memory_size",
        "function_name",
        "function_request_id",
        "level",
        "location",
        "message",
        "sampling_rate",
        "service",
        "span_id",
        "stack_trace",
        "timestamp",
        "trace_id",
        "xray_trace_id",
    }
)


class LogFollower:
    """Prints new log entries of the functions, in its own thread."""

    def __init__(self, client: Any, groups: Mapping[str, str], show: Callable[[str], None]) -> None:
        """Prepares the follower; `show` receives entries, `groups` are by displayed name."""
        self._client = client
        self._groups = groups
        self._show = show
        self._begun = int(datetime.now(UTC).timestamp() * 1000)
        self._since: dict[str, int] = {}
        self._shown: dict[str, frozenset[str]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True, name="logs")

    def start(self) -> None:
        """Follows entries from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Shows the remaining entries and stops; may be called twice."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=LAST_LOOK)

    def _follow(self) -> None:
        while not self._stopping.wait(INTERVAL):
            self._look()
        self._look()

    def _look(self) -> None:
        for name, group in self._groups.items():
            for messages in self._new(group):
                texts = [rendered(name, UNPACKED.sub("functions/", text)) for text in messages]
                if any(texts):
                    self._show("\n".join(filter(None, texts)))

    def _new(self, group: str) -> Iterator[list[str]]:
        """Yields each new invocation's entries.

        ministack writes an invocation's entries at its end, into a separate stream, with the
        time just before; hence the overlap.
        """
        since = self._since.get(group, self._begun)
        try:
            found = self._client.filter_log_events(logGroupName=group, startTime=since - OVERLAP)
        except (BotoCoreError, ClientError):
            return  # no group before the first entry; no server at the end
        streams: dict[str, list[str]] = {}
        for event in found["events"]:
            since = max(since, event["timestamp"])
            if event["timestamp"] >= self._begun:
                streams.setdefault(event["logStreamName"], []).append(event["message"])
        before = self._shown.get(group, frozenset())
        self._since[group] = since
        self._shown[group] = frozenset(streams)
        yield from (entries for name, entries in streams.items() if name not in before)


def rendered(name: str, message: str) -> str:
    """Returns handlers' output, and warnings and errors with their tracebacks; "" otherwise."""
    text = message.rstrip()
    if not text or text.startswith(PLATFORM):
        return ""
    try:
        entry = json.loads(text)
    except ValueError:
        return _output(name, text)
    if not isinstance(entry, dict) or "level" not in entry:
        return "" if isinstance(entry, dict) and "_aws" in entry else _output(name, text)
    if entry.get("outcome") in OUTCOMES and entry.get("handler"):
        return _run_outcome(entry)
    if entry["level"] in QUIET:
        return ""
    return f"{name}: {_entry(entry)}"


def _run_outcome(entry: Mapping[str, Any]) -> str:
    """Returns a line for the outcome of a run; with its error and the handler's frames, if any."""
    head = f"{entry['outcome']:<9} {entry['handler']} {entry.get('event_id', '')}"
    traceback = str(entry.get("exception") or "").rstrip()
    detail = printable(entry.get("reason") or "")
    told = ", ".join(filter(None, (_wait(entry), _attempt(entry))))
    first = printable(f"{head}: {told}" if told else head)
    if not traceback:
        return f"{first}: {detail}" if detail else first
    users = _user_lines(traceback)
    rows = wrapped(f"{users[-1]}: {detail}" if users else detail, ERROR_WIDTH)
    # It says more than the innermost line of a handler.
    if len(users) != 1 or traceback.count("Traceback (most recent call last)") > 1:
        rows += map(printable, _frames(traceback))
    return "\n".join([first, *(f"    {row}" for row in rows)])


def _wait(entry: Mapping[str, Any]) -> str:
    """Returns `retry in 20 s`, `given up` or "" for no wait."""
    label = OUTCOMES[entry["outcome"]]
    try:
        left = datetime.fromisoformat(entry["due"]) - datetime.fromisoformat(entry["timestamp"])
    except (KeyError, ValueError):
        return label
    return f"{label} in {span(left)}"


def _attempt(entry: Mapping[str, Any]) -> str:
    number = int(entry.get("attempt") or 0)
    return f"attempt {number}" if number > 1 else ""


def _user_lines(traceback: str) -> list[str]:
    """Returns the lines of handlers in a traceback, as `functions/handlers/orders.py:12`."""
    frames = (match for match in map(FRAME.match, traceback.splitlines()) if match)
    return [
        printable(f"{frame['file']}:{frame['line']}")
        for frame in frames
        if frame["file"].startswith(USERS)
    ]


def _frames(traceback: str) -> Iterator[str]:
    """Yields a traceback's lines; runs of frames outside the handlers become one line.

    A traceback without a frame of a handler stays complete.
    """
    lines = traceback.splitlines()
    if not _user_lines(traceback):
        yield from lines
        return
    hidden, hiding = 0, False
    for line in lines:
        frame = FRAME.match(line)
        if frame:
            hiding = not frame["file"].startswith(USERS)
            hidden += hiding
        elif not line.startswith("    "):
            hiding = False
        if hiding or not line.strip(" ~^"):
            continue
        if hidden:
            yield f"  … {counted(hidden, 'frame')} of libraries"
            hidden = 0
        yield line


def _output(name: str, text: str) -> str:
    # Further lines are indented: they could pass for another function's, or for the front's.
    return f"{name}: " + printable_lines(text).replace("\n", "\n    ")


def _entry(entry: Mapping[str, Any]) -> str:
    fields = [f"{key}={value}" for key, value in entry.items() if key not in UNSHOWN]
    line = printable(" ".join([str(entry["level"]), str(entry.get("message", "")), *fields]))
    traceback = str(entry.get("exception") or "").rstrip()
    return "\n".join([line, *(f"    {printable(row)}" for row in _frames(traceback))])
