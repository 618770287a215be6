"""Replay's payload: what it takes, and in which words it refuses."""

from datetime import UTC, datetime

import pytest

from webhook_inbox.ledger.queries import DueEntry
from webhook_inbox.ledger.schema import DEAD_FROM
from webhook_inbox.replay.request import Cursor, InvalidRequestError, NamedPlace, ReplayRequest

AMONG_DEAD = DueEntry(DEAD_FROM + 5, "event#acme#ü/?&", "run#x")


def test_nothing_is_required() -> None:
    request = ReplayRequest.read({})
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
        ({"received_after": "yesterday"}, "received_after"),
        ({"sourse": "acme"}, "sourse"),
        ({"reason": "x" * 501}, "reason"),
        ({"dry_run": "perhaps"}, "dry_run"),
        ({"force": True}, "force"),
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


@pytest.mark.parametrize(
    "cursor",
    [
        Cursor(),
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
    payload = {"event_ids": ["a"]} if named else {}
    other = Cursor(AMONG_DEAD) if named else Cursor(NamedPlace(1))
    with pytest.raises(InvalidRequestError, match="cursor"):
        ReplayRequest.read({**payload, "cursor": other.encode()})


def test_a_cursor_survives_a_command_line() -> None:
    cursor = Cursor(AMONG_DEAD).encode()
    assert set(cursor) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=")
