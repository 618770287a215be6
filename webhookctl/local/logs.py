"""Follows what the functions log, so that a handler's traceback reaches the terminal."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

INTERVAL: Final = 0.4
OVERLAP: Final = 10_000  # milliseconds
LAST_LOOK: Final = 10.0  # seconds that the end waits for; it takes milliseconds
# The service's own lines, and what the library says when all is well: the front's line, the
# sink's line and `webhookctl inbox list` say it already.
PLATFORM: Final = ("START RequestId:", "END RequestId:", "REPORT RequestId:")
QUIET: Final = frozenset({"DEBUG", "INFO"})
# Where ministack unpacks a function; the same file is in functions/, where it can be opened.
UNPACKED: Final = re.compile(r'(?<=")[^"\n]*/ministack-lambda-[^"/]+/code/')
# Of a structured entry these are shown apart or mean nothing here.
UNSHOWN: Final = frozenset(
    {
        "cold_start",
        "exception",
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
        "stack_trace",
        "timestamp",
        "xray_trace_id",
    }
)


class LogFollower:
    """Prints new entries of the functions' log groups from a thread of its own."""

    def __init__(self, client: Any, groups: Mapping[str, str], show: Callable[[str], None]) -> None:
        """Prepares; `start` starts.

        Args:
            client: of CloudWatch Logs.
            groups: log group by the name shown for it.
            show: receives one text an entry, of one line or more.
        """
        self._client = client
        self._groups = groups
        self._show = show
        self._begun = int(datetime.now(UTC).timestamp() * 1000)
        self._since: dict[str, int] = {}
        self._shown: dict[str, frozenset[str]] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True, name="logs")

    def start(self) -> None:
        """Begins with what is logged from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Shows what is still there and stops; may be called twice."""
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

        ministack writes an invocation's entries at once when it ends, into a stream of its own;
        the time on them is a little older than their appearance, hence the overlap.
        """
        since = self._since.get(group, self._begun)
        try:
            found = self._client.filter_log_events(logGroupName=group, startTime=since - OVERLAP)
        except (BotoCoreError, ClientError):
            return  # no such group before the first entry; nobody there at the end
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
    """Returns an entry as a person wants it, or nothing.

    What a handler prints, and warnings and errors with their traceback.
    """
    text = message.rstrip()
    if not text or text.startswith(PLATFORM):
        return ""
    try:
        entry = json.loads(text)
    except ValueError:
        return f"{name}: {text}"
    if not isinstance(entry, dict) or "level" not in entry:
        return "" if isinstance(entry, dict) and "_aws" in entry else f"{name}: {text}"
    if entry["level"] in QUIET:
        return ""
    return f"{name}: {_entry(entry)}"


def _entry(entry: Mapping[str, Any]) -> str:
    fields = [f"{key}={value}" for key, value in entry.items() if key not in UNSHOWN]
    line = " ".join([str(entry["level"]), str(entry.get("message", "")), *fields])
    traceback = str(entry.get("exception") or "").rstrip()
    return "\n".join([line, *(f"    {row}" for row in traceback.splitlines())])
