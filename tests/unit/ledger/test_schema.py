"""How records lie in the table: keys, shards, lifetimes, and back again."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webhook_inbox.domain.model import Attempt, Status, StoredEvent
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.timestamps import from_ms, from_seconds, to_ms, to_seconds
from webhook_inbox.ledger.schema import (
    DUE_SHARDS,
    EVENT_LIFE,
    RECEIVED_SHARDS,
    RUN_LIFE,
    WAKE,
    WATCH,
    absent,
    attempt_to,
    conflict_key,
    dead_due_at,
    dead_entry,
    dedupe_key,
    due_bucket,
    due_buckets,
    event_from,
    event_key,
    event_pk,
    event_to,
    guard_key,
    identify,
    live,
    received_bucket,
    received_buckets,
    run_from,
    run_key,
)

NOW = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
EVENT = StoredEvent(
    source="acme",
    event_id="evt-1",
    type="paid",
    received_at=NOW,
    body=b"{}",
    fingerprint="f0" * 32,
    headers={"content-type": "application/json"},
    runs=("acme.fulfil", "acme.mail"),
    signature_hash="5e" * 32,
    verified_with=1,
    occurred_at=NOW - timedelta(seconds=5),
    guard="6a" * 32,
)


# -- events


@pytest.mark.parametrize(
    "event",
    [
        EVENT,
        replace(EVENT, occurred_at=None),
        replace(EVENT, guard="", runs=(), headers={}),
        replace(EVENT, agent="planner"),
    ],
)
def test_an_event_is_read_as_it_was_written(event: StoredEvent) -> None:
    assert event_from(event_to(event), event.body) == event


def test_hashes_that_were_written_as_text_are_read() -> None:
    texts = {name: getattr(EVENT, name) for name in ("fingerprint", "signature_hash", "guard")}
    assert event_from({**event_to(EVENT), **texts}, EVENT.body) == EVENT


def test_an_event_row_names_its_event_once() -> None:
    assert not {"source", "event_id"} & event_to(EVENT).keys()


def test_an_event_row_holds_no_body_of_its_own() -> None:
    assert "body" not in event_to(EVENT)


def test_a_row_names_an_agent_only_where_there_is_one() -> None:
    assert "agent" not in event_to(EVENT)
    assert event_to(replace(EVENT, agent="planner"))["agent"] == "planner"


def test_an_event_ends_after_thirty_five_days() -> None:
    assert event_to(EVENT)["expires_at"] == to_seconds(NOW) + 35 * 86_400


def test_a_run_outlives_its_event_by_a_week() -> None:
    assert timedelta(days=7) == RUN_LIFE - EVENT_LIFE


@pytest.mark.parametrize("event_id", ["evt-1", "a#b#c", "#", "run#x", "ü"])
def test_an_events_partition_names_it(event_id: str) -> None:
    assert identify(event_pk("acme", event_id)) == ("acme", event_id)


def test_an_event_its_runs_and_its_effects_share_a_partition() -> None:
    assert event_key("acme", "e").pk == run_key("acme", "e", "h").pk == event_pk("acme", "e")
    assert event_key("acme", "e").sk == "event"
    assert run_key("acme", "e", "h").sk == "run#h"


def test_control_rows_lie_apart() -> None:
    keys = {guard_key("a", "x").pk, conflict_key("a", "x", "f").pk, event_pk("a", "x")}
    assert len(keys) == 3


@pytest.mark.parametrize("size", [1, 511, 512])
def test_a_short_id_is_its_own_key(size: int) -> None:
    assert dedupe_key("x" * size) == "x" * size


def test_a_long_id_is_measured_in_bytes() -> None:
    assert dedupe_key("é" * 256) == "é" * 256
    assert dedupe_key("é" * 257).startswith("sha256:")
    assert dedupe_key("x" * 513) != dedupe_key("x" * 514)


# -- the received index


def test_a_bucket_is_an_hour_and_a_shard() -> None:
    bucket = received_bucket(NOW, "evt-1")
    hour, _, shard = bucket.partition("#")
    assert hour == "2026-01-01T12"
    assert 0 <= int(shard) < RECEIVED_SHARDS


def test_ids_spread_over_all_shards() -> None:
    buckets = {received_bucket(NOW, f"evt-{number}") for number in range(200)}
    assert len(buckets) == RECEIVED_SHARDS


@pytest.mark.parametrize(
    ("low", "high", "hours"),
    [
        (NOW - timedelta(minutes=10), NOW, ["12"]),
        (NOW - timedelta(minutes=57), NOW, ["12", "11"]),
        (NOW - timedelta(minutes=30), NOW, ["12"]),
        (NOW - timedelta(minutes=31), NOW, ["12", "11"]),
        (NOW - timedelta(hours=2), NOW, ["12", "11", "10"]),
        (NOW, NOW, ["12"]),
        (NOW.replace(minute=0), NOW.replace(minute=0), ["12"]),
    ],
)
def test_the_buckets_of_a_time_are_all_its_hours_newest_first(
    low: datetime, high: datetime, hours: list[str]
) -> None:
    buckets = list(received_buckets(low, high))
    assert buckets == [f"2026-01-01T{hour}#{s}" for hour in hours for s in range(RECEIVED_SHARDS)]


@pytest.mark.parametrize("minutes", range(0, 180, 13))
def test_an_events_bucket_is_among_those_of_any_time_around_it(minutes: int) -> None:
    moment = NOW - timedelta(minutes=minutes)
    around = received_buckets(moment - timedelta(minutes=57), moment + timedelta(minutes=3))
    assert received_bucket(moment, "evt-1") in set(around)


# -- the due index


def test_runs_spread_over_all_shards_and_keep_theirs() -> None:
    buckets = {due_bucket(run_key("acme", f"evt-{number}", "h")) for number in range(300)}
    assert buckets == {f"watch#h#{shard}" for shard in range(DUE_SHARDS)}
    assert due_bucket(Key("a", "b")) == due_bucket(Key("a", "b"))


def test_each_handler_and_kind_has_its_own_partitions() -> None:
    key = run_key("acme", "evt-1", "h")
    assert due_bucket(key, WAKE).removeprefix(WAKE) == due_bucket(key, WATCH).removeprefix(WATCH)
    for kind in (WAKE, WATCH):
        assert due_bucket(key, kind) in set(due_buckets("h", [kind]))
    assert {*due_buckets("h")}.isdisjoint(due_buckets("g"))
    assert len(list(due_buckets("h"))) == 2 * DUE_SHARDS


def test_a_dead_run_is_behind_every_open_one() -> None:
    key, end = run_key("acme", "evt-1", "h"), NOW + timedelta(days=42)
    assert dead_entry(key, end)["due_bucket"] == due_bucket(key, WATCH)
    assert dead_entry(key, end)["due_at"] == dead_due_at(end) > to_ms(NOW + timedelta(days=36500))


# -- expiry


@pytest.mark.parametrize(("left", "there"), [(2, True), (1, True), (0, False), (-1, False)])
def test_an_expired_row_counts_as_absent(left: int, there: bool) -> None:
    row = {"pk": "a", "sk": "b", "expires_at": to_seconds(NOW) + left}
    assert (live(row, NOW) is not None) is there
    assert absent(NOW).holds(row) is not there


def test_a_row_without_an_end_is_always_there() -> None:
    row = {"pk": "a", "sk": "b"}
    assert live(row, NOW) == row
    assert not absent(NOW).holds(row)


def test_no_row_is_absent() -> None:
    assert live(None, NOW) is None
    assert absent(NOW).holds({})


# -- runs

RUN: dict[str, Any] = {
    "pk": "event#acme#evt-1",
    "sk": "run#acme.fulfil",
    "source": "acme",
    "event_id": "evt-1",
    "handler": "acme.fulfil",
    "type": "paid",
    "status": "failed",
}


def test_a_run_row_with_little_in_it_is_readable() -> None:
    run = run_from(RUN)
    assert (run.status, run.generation, run.attempt_count, run.attempts) == (
        Status.FAILED,
        0,
        0,
        (),
    )
    assert run.claimed_until is None
    assert run.in_due_index is False


@pytest.mark.parametrize("name", ["claimed_until", "next_attempt_at", "done_at", "dead_at"])
def test_times_are_read_as_aware_times(name: str) -> None:
    run = run_from({**RUN, name: to_ms(NOW)})
    assert getattr(run, name) == NOW


def test_attributes_of_a_later_version_are_passed_over() -> None:
    assert run_from({**RUN, "from_the_future": 1}) == run_from(RUN)


def test_an_attempt_is_read_as_it_was_written() -> None:
    attempt = Attempt(3, NOW, NOW + timedelta(seconds=2), "failed", "down", "worker-1")
    (read,) = run_from({**RUN, "attempts": [attempt_to(attempt)]}).attempts
    assert read == attempt


def test_an_attempt_without_error_or_worker_stays_small() -> None:
    entry = attempt_to(Attempt(1, NOW, NOW, "done"))
    assert set(entry) == {"number", "started_at", "ended_at", "outcome"}


def test_a_run_in_the_index_says_so() -> None:
    assert run_from({**RUN, "due_bucket": "3", "due_at": 1}).in_due_index


# -- instants


@pytest.mark.parametrize("micros", [0, 1, 499, 999_999])
def test_a_time_is_kept_to_the_millisecond_rounded_down(micros: int) -> None:
    moment = NOW + timedelta(microseconds=micros)
    assert from_ms(to_ms(moment)) == NOW + timedelta(milliseconds=micros // 1000)


@pytest.mark.parametrize("year", [1970, 2000, 2026, 9999])
def test_any_year_is_exact(year: int) -> None:
    moment = datetime(year, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    assert from_ms(to_ms(moment)) == moment


def test_seconds_are_rounded_up_so_that_nothing_expires_early() -> None:
    assert from_seconds(to_seconds(NOW + timedelta(milliseconds=1))) == NOW + timedelta(seconds=1)
    assert from_seconds(to_seconds(NOW)) == NOW
