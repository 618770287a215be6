"""Replay's payload: what it takes, and in which words it refuses."""

import base64
import json
from datetime import UTC, datetime

import pytest

from tests.unit.support.world import World
from webhook_inbox.ledger.queries import DueEntry
from webhook_inbox.ledger.schema import DEAD_FROM
from webhook_inbox.replay.cursor import (
    ChosenPlace,
    Cursor,
    NamedPlace,
    OpenPlace,
    Place,
    ReceivedPlace,
)
from webhook_inbox.replay.request import InvalidRequestError, ReplayRequest

AMONG_DEAD = DueEntry(DEAD_FROM + 5, "event#acme#ü/?&", "run#x")


def test_a_filter_is_all_that_is_required() -> None:
    request = ReplayRequest.read({"status": ["dead_letter"]})
    assert (request.limit, request.rate_per_second) == (1000, 10.0)
    assert (request.dry_run, request.force, request.cursor) == (False, False, None)


def test_every_field_is_read() -> None:
    request = ReplayRequest.read(
        {
            "source": "acme",
            "type": "invoice.*",
            "handler": "acme.fulfil",
            "event_ids": ["a", "b"],
            "error_contains": "422",
            "error_class": "KeyError",
            "error_group": "0123456789ab",
            "tenant": "t1",
            "where": "data.object.amount > `1000`",
            "status": ["dead_letter", "failed"],
            "fix": False,
            "seconds": 20,
            "stop_at_failures": None,
            "selection": None,
            "received_after": "2026-01-01T00:00:00Z",
            "received_before": "2026-01-02T00:00:00+02:00",
            "limit": 5,
            "rate_per_second": 0.5,
            "dry_run": True,
            "force": True,
            "reason": "fixed",
            "requested_by": "kim",
            "cursor": Cursor(NamedPlace(3)).encode(),
        }
    )
    assert request.event_ids == ("a", "b")
    assert request.received_before == datetime(2026, 1, 1, 22, tzinfo=UTC)


def test_a_time_without_a_zone_is_utc() -> None:
    request = ReplayRequest.read({"received_after": "2026-01-01T09:30:00"})
    assert request.received_after == datetime(2026, 1, 1, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
@pytest.mark.parametrize("status", ["dead_letter", "done"])
def test_a_time_at_the_end_of_the_calendar_can_be_used(
    world: World, time: str, status: str
) -> None:
    end = "received_before" if time > "2026" else "received_after"
    asked = {"received_after": "2026-01-01", end: time}
    for window in (asked, {"received_after": time}):
        assert world.replay(dry_run=True, status=[status], **window).matched == 0


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 10_001}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"rate_per_second": 0}, "rate_per_second"),
        ({"rate_per_second": 501}, "rate_per_second"),
        ({"event_ids": []}, "event_ids"),
        ({"event_ids": ["x"] * 1001}, "event_ids"),
        ({"event_ids": "evt-1"}, "event_ids"),
        ({"event_ids": [5]}, "event_ids.0"),
        ({"event_ids": [""]}, "event_ids.0"),
        ({"event_ids": ["\ud800"]}, "event_ids.0"),
        ({"event_ids": ["x" * 10_001]}, "event_ids.0"),
        ({"reason": "\ud800", "source": "acme"}, "reason"),
        ({"received_after": "2026-01-02", "received_before": "2026-01-01"}, "not be later than"),
        ({"received_after": "yesterday"}, "received_after"),
        ({"sourse": "acme"}, "sourse"),
        ({"reason": "x" * 501}, "reason"),
        ({"dry_run": "perhaps"}, "dry_run"),
        ({"force": True, "source": "acme"}, "force"),
        ({"force": True, "event_ids": ["a"]}, "force"),
        ({"force": True, "handler": "acme.fulfil"}, "force"),
        ([], "payload"),
        (None, "payload"),
        ("replay all", "payload"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_line(payload: object, named: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        ReplayRequest.read(payload)
    text = str(caught.value)
    assert text.startswith("replay: ")
    assert named in text
    assert "\n" not in text


def test_several_faults_are_told_at_once() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        ReplayRequest.read({"limit": 0, "sourse": "acme"})
    assert "limit" in str(caught.value)
    assert "sourse" in str(caught.value)


@pytest.mark.parametrize("payload", [{}, {"dry_run": True}, {"limit": 1}, {"reason": "all"}])
def test_an_empty_filter_is_refused_and_the_choices_named(payload: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError, match=r"no filter is given.*status.*event_ids.*where"):
        ReplayRequest.read(payload)


ID = "0123456789ab"


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"error_contains": ""}, "error_contains: String should have at least 1"),
        ({"status": []}, "status: Tuple should have at least 1 item"),
        ({"status": ["dead"]}, "status.0: Input should be 'dead_letter'"),
        ({"status": ["done"]}, "runs in status done are found by time: give received_after"),
        ({"status": ["accepted", "failed"], "source": "acme"}, "give received_after"),
        ({"where": "amount >"}, "where: this is not a JMESPath expression"),
        ({"where": "sum(amounts[*]) > size(x)"}, "where: JMESPath has no function size()"),
        ({"where": "(" * 500}, "where: this is not a JMESPath expression"),
        ({"where": "x" * 501}, "where: String should have at most 500"),
        ({"selection": "../../etc"}, "selection: String should match pattern"),
        ({"selection": ID + "\n"}, "selection: String should match pattern"),
        ({"selection": ID.upper()}, "selection: String should match pattern"),
        ({"selection": ID, "source": "acme"}, "a fixed list of runs: leave source out"),
        ({"source": "acme", "fix": True}, "fix writes the list of a dry run: add dry_run"),
        ({"source": "acme", "stop_at_failures": 0.1}, "stop_at_failures needs a selection"),
        ({"selection": ID, "stop_at_failures": 0}, "stop_at_failures: Input should be greater"),
        ({"selection": ID, "force": True}, "force needs a reason"),
        ({"selection": ID, "force": True, "reason": "  "}, "force needs a reason"),
        ({"event_ids": ["a"], "handler": "acme.x", "force": True}, "force needs a reason"),
        ({"source": "acme", "force": True, "reason": "why"}, "force needs event_ids and handler"),
    ],
    ids=str,
)
def test_a_selection_that_cannot_be_made_is_refused(payload: object, text: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        ReplayRequest.read(payload)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("payload", "place"),
    [
        ({"source": "acme"}, ChosenPlace(1)),
        ({"source": "acme"}, OpenPlace(1, "watch#x#0", "event#a#b", "run#x")),
        ({"source": "acme"}, ReceivedPlace(1, "acme", "a", "x")),
        ({"status": ["failed"]}, AMONG_DEAD),
        ({"status": ["done"], "received_after": "2026-01-01"}, AMONG_DEAD),
        ({"selection": ID}, AMONG_DEAD),
        ({"selection": ID, "fix": True, "dry_run": True}, ChosenPlace(1)),
    ],
    ids=str,
)
def test_a_cursor_of_another_search_is_refused(payload: dict[str, object], place: Place) -> None:
    with pytest.raises(InvalidRequestError, match="cursor"):
        ReplayRequest.read({**payload, "cursor": Cursor(place).encode()})


@pytest.mark.parametrize(
    "data",
    [
        ["dead", 0, [], 5, "a", "b"],
        ["received", 0, [], 1 << 60, "a", "b", "c"],
        ["open", 0, [], 1 << 60, "a", "b", "c"],
        ["chosen", 0, [], -1],
        ["chosen", 0, [], True],
        ["chosen", 0, [], 1, "more"],
        ["named", 0, []],
        ["", 0, [], 1],
        ["chosen", -1, [], 1],
        ["chosen", 1 << 60, [], 1],
        ["chosen", 0, [["a", "b"]], 1],
        [["chosen"], 0, [], 1],
        [{}, 0, [], 1],
    ],
    ids=str,
)
def test_a_hostile_cursor_is_refused(data: object) -> None:
    text = base64.urlsafe_b64encode(json.dumps(data).encode()).decode()
    with pytest.raises(ValueError, match="cursor"):
        Cursor.decode(text)


@pytest.mark.parametrize(
    "cursor",
    [
        Cursor(),
        Cursor(ChosenPlace(7), begun=5),
        Cursor(OpenPlace(1, "watch#x#0", "event#a#b", "run#x")),
        Cursor(ReceivedPlace(1, "acme", "a", "x")),
        Cursor(NamedPlace(7)),
        Cursor(NamedPlace(7, "acme", "acme.fulfil"), (("acme", "a#b", "acme.mail"),)),
        Cursor(AMONG_DEAD),
    ],
    ids=str,
)
def test_a_cursor_is_read_as_it_was_written(cursor: Cursor) -> None:
    assert Cursor.decode(cursor.encode()) == cursor


@pytest.mark.parametrize("named", [True, False])
def test_a_cursor_of_the_other_search_is_refused(named: bool) -> None:
    payload = {"event_ids": ["a"]} if named else {"source": "acme"}
    other = Cursor(AMONG_DEAD) if named else Cursor(NamedPlace(1))
    with pytest.raises(InvalidRequestError, match="cursor"):
        ReplayRequest.read({**payload, "cursor": other.encode()})


def test_a_cursor_survives_a_command_line() -> None:
    cursor = Cursor(AMONG_DEAD).encode()
    assert set(cursor) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=")
