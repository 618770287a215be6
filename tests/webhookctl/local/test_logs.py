import json
import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from webhookctl.local.logs import LogFollower, rendered

FAILURE = json.dumps(
    {
        "level": "WARNING",
        "location": "observe:40",
        "message": "message failed",
        "timestamp": "2026-11-21 09:00:00,000+0000",
        "service": "processor",
        "function_request_id": "r",
        "event_id": "evt_1",
        "attempt": 2,
        "exception": 'Traceback (most recent call last):\n  File "notes.py", line 3\nKeyError: 1\n',
        "exception_name": "KeyError",
    }
)


def test_a_traceback_is_readable_under_the_line_it_belongs_to() -> None:
    assert rendered("processor", FAILURE).splitlines() == [
        "processor: WARNING message failed event_id=evt_1 attempt=2",
        "    Traceback (most recent call last):",
        '      File "notes.py", line 3',
        "    KeyError: 1",
    ]


@pytest.mark.parametrize("text", ["hello from a handler", '{"a": 1}', "[1]", "12"])
def test_what_a_handler_prints_is_shown(text: str) -> None:
    assert rendered("processor", f"{text}\n") == f"processor: {text}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "START RequestId: 1 Version: $LATEST",
        "END RequestId: 1",
        "REPORT RequestId: 1\tDuration: 3 ms",
        '{"level": "INFO", "message": "delivery accepted"}',
        '{"_aws": {"Timestamp": 1}, "Deliveries": [1]}',
    ],
)
def test_what_goes_without_saying_is_not_said(text: str) -> None:
    assert rendered("ingest", text) == ""


class _Logs:
    """CloudWatch Logs with what a test puts in."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def put(self, stream: str, *messages: str, age_ms: int = 0) -> None:
        at = int(time.time() * 1000) - age_ms
        self.events += [
            {"timestamp": at, "logStreamName": stream, "message": text} for text in messages
        ]

    def filter_log_events(self, *, logGroupName: str, startTime: int) -> dict[str, Any]:  # noqa: N803
        if logGroupName == "absent":
            raise ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "FilterLogEvents")
        return {"events": [event for event in self.events if event["timestamp"] >= startTime]}


def _follower(logs: _Logs, shown: list[str]) -> LogFollower:
    return LogFollower(logs, {"processor": "group", "replay": "absent"}, shown.append)


def test_each_invocation_is_shown_once_and_as_one() -> None:
    logs, shown = _Logs(), list[str]()
    follower = _follower(logs, shown)
    follower._begun -= 1
    logs.put("first", "START RequestId: 1", "one", "two", "END RequestId: 1")
    follower._look()
    follower._look()
    logs.put("second", "three")
    follower._look()
    assert shown == ["processor: one\nprocessor: two", "processor: three"]


def test_a_traceback_names_the_file_one_can_open() -> None:
    logs, shown = _Logs(), list[str]()
    follower = _follower(logs, shown)
    follower._begun -= 1
    unpacked = "/home/me/.local/ministack-x/ministack-lambda-Processor-1/code/handlers/notes.py"
    structured = json.dumps({"level": "ERROR", "exception": f'  File "{unpacked}", line 3'})
    logs.put("first", f'  File "{unpacked}", line 3', structured)
    follower._look()
    assert shown[0].count('File "functions/handlers/notes.py", line 3') == 2
    assert "ministack" not in shown[0]


def test_an_entry_that_appears_late_is_not_missed() -> None:
    logs, shown = _Logs(), list[str]()
    follower = _follower(logs, shown)
    follower._begun -= 5000
    logs.put("first", "one")
    follower._look()
    logs.put("late", "two", age_ms=500)
    follower._look()
    assert shown == ["processor: one", "processor: two"]


def test_what_was_logged_before_it_began_is_history() -> None:
    logs, shown = _Logs(), list[str]()
    logs.put("old", "one", age_ms=1000)
    _follower(logs, shown)._look()
    assert shown == []


def test_stopping_shows_what_is_still_there() -> None:
    logs, shown = _Logs(), list[str]()
    follower = _follower(logs, shown)
    follower.start()
    logs.put("last", "words")
    follower.stop()
    follower.stop()
    assert shown == ["processor: words"]
