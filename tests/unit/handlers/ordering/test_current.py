"""The thin pattern: a handler acts on what is now, and the event only says of what."""

import json
from datetime import timedelta
from typing import Any

import pytest

from webhook_inbox import Event, Permanent, Skipped, Transient, current
from webhook_inbox.adapters.memory.system import START

VERSIONS = {"version": "data.updated", "fetched": "updated_at"}


def event(**data: Any) -> Event:
    body = json.dumps({"data": {"id": "cus_1", **data}}).encode()
    return Event("shop", "evt_1", "customer.updated", START, {}, body)


def test_it_returns_what_was_fetched_of_the_ordering_key() -> None:
    asked: list[str] = []

    def fetch(ordering_key: str) -> dict[str, str]:
        asked.append(ordering_key)
        return {"name": "Ada"}

    assert current(event(), fetch, key="data.id") == {"name": "Ada"}
    assert asked == ["cus_1"]


def test_a_state_may_be_anything_that_is_there() -> None:
    assert current(event(), lambda _: [], key="data.id") == []


def test_what_is_gone_is_nothing_to_do() -> None:
    with pytest.raises(Skipped, match="cus_1 no longer exists"):
        current(event(), lambda _: None, key="data.id")


@pytest.mark.parametrize(
    ("told", "found"),
    [(5, 5), (5, 6), ("9", "10"), ("2026-01-02T00:00:00Z", "2026-01-02T01:00:00+01:00")],
)
def test_what_is_as_new_as_the_event_or_newer_is_acted_on(told: Any, found: Any) -> None:
    state = {"updated_at": found}
    assert current(event(updated=told), lambda _: state, key="data.id", **VERSIONS) == state


def test_a_copy_that_lags_is_asked_again_soon() -> None:
    with pytest.raises(Transient, match="was fetched as of 4, and the event has 5") as raised:
        current(event(updated=5), lambda _: {"updated_at": 4}, key="data.id", **VERSIONS)
    assert raised.value.retry_after == timedelta(seconds=10)


def test_without_both_paths_nothing_is_compared() -> None:
    state = {"updated_at": 4}
    for paths in ({}, {"version": "data.updated"}, {"fetched": "updated_at"}):
        assert current(event(updated=5), lambda _: state, key="data.id", **paths) == state


@pytest.mark.parametrize(
    ("given", "state", "path"),
    [
        ({"id": None}, {"updated_at": 5}, "data.id"),
        ({}, {"updated_at": 5}, "data.updated"),
        ({"updated": 5}, {}, "updated_at"),
        ({"updated": 5}, "text", "updated_at"),
    ],
)
def test_a_path_that_leads_nowhere_is_permanent(given: Any, state: Any, path: str) -> None:
    with pytest.raises(Permanent, match=r"current\(\) needs the ") as raised:
        current(event(**given), lambda _: state, key="data.id", **VERSIONS)
    assert repr(path) in str(raised.value)


def test_what_fetching_raises_is_the_handlers() -> None:
    def fetch(ordering_key: str) -> None:
        raise ConnectionError("no route")

    with pytest.raises(ConnectionError):
        current(event(), fetch, key="data.id")


def test_a_body_that_is_no_json_is_permanent() -> None:
    broken = Event("shop", "evt_1", "t", START, {}, b"{")
    with pytest.raises(Permanent, match="not JSON"):
        current(broken, lambda _: {}, key="data.id")
