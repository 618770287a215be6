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


def outcome(name: str, **more: Any) -> str:
    entry = {
        "level": "INFO",
        "message": f"message {name}",
        "timestamp": "2026-11-21 09:00:00,000+0000",
        "outcome": name,
        "handler": "acme.fulfil",
        "event_id": "evt_1",
        "attempt": 2,
        "reason": "",
    }
    return rendered("processor", json.dumps({**entry, **more}))


TRACEBACK = """Traceback (most recent call last):
  File "/var/lang/lib/python3.13/threading.py", line 9, in run
    self.run()
    ~~~~~~~~^^
  File "functions/webhook_inbox/processor/invocation.py", line 98, in call
    registered.function(handed, context)
  File "functions/handlers/orders.py", line 12, in fulfil
    save(event.json())
  File "functions/handlers/orders.py", line 20, in save
    json.loads(order)
    ~~~~~~~~~~^^^^^^^
  File "/var/lang/lib/python3.13/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
ValueError: not an order
"""


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (outcome("done"), "done      acme.fulfil evt_1: attempt 2"),
        (outcome("skipped", reason="old"), "skipped   acme.fulfil evt_1: attempt 2: old"),
        (
            outcome("held", reason="over 1000 EUR"),
            "held      acme.fulfil evt_1: waits for approval, attempt 2: over 1000 EUR",
        ),
        (
            outcome("failed", reason="503", level="WARNING", due="2026-11-21T09:00:20+00:00"),
            "failed    acme.fulfil evt_1: retry in 20 s, attempt 2: 503",
        ),
        (
            outcome("deferred", reason="crm is down", due="2026-11-21T11:00:00+00:00", attempt=0),
            "deferred  acme.fulfil evt_1: continues in 2 h: crm is down",
        ),
        (
            outcome("dead", reason="permanent: 422", level="ERROR"),
            "dead      acme.fulfil evt_1: given up, attempt 2: permanent: 422",
        ),
        (outcome("deleted"), ""),
    ],
)
def test_each_outcome_of_a_run_is_one_line(entry: str, line: str) -> None:
    assert entry == line


def test_an_error_names_the_handlers_line_and_hides_the_frames_of_libraries() -> None:
    detail = "ValueError: not an order"
    assert outcome("failed", reason=detail, exception=TRACEBACK).splitlines() == [
        "failed    acme.fulfil evt_1: retry, attempt 2",
        "    functions/handlers/orders.py:20: ValueError: not an order",
        "    Traceback (most recent call last):",
        "      … 2 frames of libraries",
        '      File "functions/handlers/orders.py", line 12, in fulfil',
        "        save(event.json())",
        '      File "functions/handlers/orders.py", line 20, in save',
        "        json.loads(order)",
        "      … 1 frame of libraries",
        "    ValueError: not an order",
    ]


def test_an_outcome_cannot_forge_a_line() -> None:
    shown = outcome("done", event_id="evt\n12:00:00 done", reason="\x1b[2J")
    assert "\n" not in shown
    assert "\x1b" not in shown


def test_a_traceback_is_readable_under_the_line_it_belongs_to() -> None:
    assert rendered("processor", FAILURE).splitlines() == [
        "processor: WARNING message failed event_id=evt_1 attempt=2",
        "    Traceback (most recent call last):",
        '      File "notes.py", line 3',
        "    KeyError: 1",
    ]


def test_the_metrics_of_a_line_are_not_shown() -> None:
    line = {"level": "ERROR", "message": "message broken", "_aws": {"Timestamp": 1}, "Runs": [1]}
    assert rendered("processor", json.dumps(line)) == "processor: ERROR message broken"


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
