"""The end of an attempt, fenced by its lease, and of a run that is given up (G2, G3)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webhook_inbox.adapters.memory import Fault, MemoryTable
from webhook_inbox.domain.death import DeathCause
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Attempt, Run, Status, WaitStrategy
from webhook_inbox.domain.ports import Item
from webhook_inbox.domain.timestamps import from_seconds, to_ms
from webhook_inbox.ledger.deadlines import overdue_at
from webhook_inbox.ledger.schema import EVENT_LIFE, RUN_LIFE, dead_due_at, run_from, run_key
from webhook_inbox.ledger.settle import (
    HISTORY_ENDS,
    LeaseLost,
    Settlement,
    as_seen,
    cut,
    death,
    give_up,
    history,
    settle,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SENT = NOW - timedelta(minutes=1)
DUE = NOW + timedelta(minutes=10)
KEY = run_key("acme", "evt-1", "acme.fulfil")
CLAIMED: dict[str, Any] = {
    "pk": KEY.pk,
    "sk": KEY.sk,
    "source": "acme",
    "event_id": "evt-1",
    "handler": "acme.fulfil",
    "type": "paid",
    "status": "processing",
    "lease_id": "lease-1",
    "claimed_by": "worker-1",
    "claimed_at": to_ms(NOW - timedelta(seconds=3)),
    "claimed_until": to_ms(NOW + timedelta(seconds=60)),
    "attempt_count": 1,
    "attempts_in_round": 1,
    "message_id": "message-1",
    "expires_at": int((NOW + RUN_LIFE).timestamp()),
}


def stored(**values: Any) -> tuple[MemoryTable, Run]:
    """Returns a table with a claimed run, changed as told, and the run as its worker sees it."""
    table = MemoryTable()
    row = {k: v for k, v in (CLAIMED | values).items() if v is not None}
    table.put(row)
    return table, run_from(row)


def settled(settlement: Settlement, **values: Any) -> tuple[Run, Item]:
    table, run = stored(**values)
    after = settle(table, run, settlement, sent_at=SENT)
    (row,) = table
    return after, row


def waiting(wait: WaitStrategy, status: Status = Status.FAILED, **parts: Any) -> Settlement:
    return Settlement(status, "failed", NOW, "down", due=DUE, wait=wait, **parts)


DONE = Settlement(Status.DONE, "done", NOW)
DEAD = death(DeathCause.PERMANENT, "no such order", NOW)
LOST = DeathCause.NEVER_RECEIVED


# -- done


def test_a_done_run_says_when_and_leaves_the_index() -> None:
    run, row = settled(DONE, due_bucket="3", due_at=5, unknown_since=7, resends=2)
    assert run.status is Status.DONE
    assert run.done_at == NOW
    gone = {"due_bucket", "due_at", "claimed_until", "unknown_since", "resends"}
    assert not gone & set(row)


def test_a_done_run_has_no_error_of_the_attempt_before() -> None:
    run, row = settled(DONE, last_error="it was down", error_line="handlers/orders.py:3")
    assert (run.last_error, run.error_line) == ("", "")
    assert not {"last_error", "error_line"} & set(row)


def test_a_skipped_run_keeps_the_reason() -> None:
    run, _ = settled(Settlement(Status.SKIPPED, "skipped", NOW, "for another shop"))
    assert run.last_error == "for another shop"


def test_each_attempt_is_entered_in_the_history() -> None:
    run, _ = settled(DONE)
    (entry,) = run.attempts
    assert (entry.number, entry.outcome, entry.worker) == (1, "done", "worker-1")
    assert entry.started_at == NOW - timedelta(seconds=3)
    assert entry.ended_at == NOW


# -- waiting


def test_a_hidden_wait_keeps_its_generation() -> None:
    run, row = settled(waiting(WaitStrategy.HIDDEN), generation=2)
    assert (run.status, run.generation, run.parked) == (Status.FAILED, 2, False)
    assert run.next_attempt_at == DUE
    assert row["due_at"] == to_ms(overdue_at(DUE))


@pytest.mark.parametrize("generation", [None, 0, 4])
@pytest.mark.parametrize("wait", [WaitStrategy.COPY, WaitStrategy.PARKED])
def test_a_wait_that_another_message_carries_raises_the_generation(
    wait: WaitStrategy, generation: int | None
) -> None:
    run, _ = settled(waiting(wait), generation=generation)
    assert run.generation == (generation or 0) + 1


def test_a_parked_run_is_looked_at_when_it_is_due() -> None:
    run, row = settled(waiting(WaitStrategy.PARKED))
    assert run.parked
    assert row["due_at"] == to_ms(DUE)


def test_a_copied_run_is_not_parked_any_more() -> None:
    run, _ = settled(waiting(WaitStrategy.COPY), parked=True)
    assert not run.parked


@pytest.mark.parametrize("wait", list(WaitStrategy))
def test_what_waits_is_looked_at_seven_days_before_its_event_ends(wait: WaitStrategy) -> None:
    late = NOW + EVENT_LIFE - timedelta(days=3)
    _, row = settled(replace(waiting(wait), due=late))
    assert row["due_at"] == to_ms(NOW + EVENT_LIFE - timedelta(days=7))


def test_a_deferral_spends_no_attempt_and_enters_no_history() -> None:
    run, _ = settled(
        waiting(WaitStrategy.COPY, Status.DEFERRED, spent=False),
        attempt_count=4,
        attempts_in_round=2,
    )
    assert (run.attempt_count, run.attempts_in_round, run.attempts) == (3, 1, ())
    assert run.last_error == "down"


def test_a_held_run_is_looked_at_for_its_last_call() -> None:
    _, row = settled(Settlement(Status.HELD, "held", NOW, "waits for approval"))
    assert row["due_at"] == to_ms(NOW + EVENT_LIFE - timedelta(days=7))
    assert "next_attempt_at" not in row


def test_a_held_run_keeps_its_generation() -> None:
    held = Settlement(Status.HELD, "held", NOW, wait=WaitStrategy.PARKED)
    assert settled(held, generation=1)[0].generation == 1


# -- unknown handlers


def test_the_first_time_a_handler_was_unknown_is_kept() -> None:
    unknown = waiting(WaitStrategy.COPY, Status.DEFERRED, spent=False, unknown=True)
    assert settled(unknown)[0].unknown_since == NOW
    before = NOW - timedelta(minutes=30)
    assert settled(unknown, unknown_since=to_ms(before))[0].unknown_since == before


def test_any_other_end_forgets_that_it_was_unknown() -> None:
    assert settled(waiting(WaitStrategy.COPY), unknown_since=5)[0].unknown_since is None


# -- dead


def test_a_dead_run_begins_its_next_round_at_nought() -> None:
    run, _ = settled(DEAD, attempts_in_round=3, attempt_count=7, next_attempt_at=5)
    assert (run.status, run.attempts_in_round, run.attempt_count) == (Status.DEAD_LETTER, 0, 7)
    assert run.next_attempt_at is None
    assert run.last_error == "permanent: no such order"


def test_each_death_of_a_run_is_counted() -> None:
    assert settled(DEAD)[0].deaths == 1
    assert settled(DEAD, deaths=2)[0].deaths == 3
    assert settled(DONE, deaths=2)[0].deaths == 2


def test_a_dead_run_stays_in_the_index_until_its_row_ends() -> None:
    _, row = settled(DEAD)
    assert "due_bucket" in row
    assert row["due_at"] == dead_due_at(from_seconds(row["expires_at"]))


@pytest.mark.parametrize("skew", [timedelta(0), timedelta(seconds=30), timedelta(hours=1)])
def test_a_death_is_never_earlier_than_the_message_that_brought_it(skew: timedelta) -> None:
    table, run = stored()
    after = settle(table, run, DEAD, sent_at=NOW + skew)
    assert after.dead_at == NOW + skew


# -- the fence


@pytest.mark.parametrize(
    "change",
    [
        {"lease_id": "lease-2"},
        {"lease_id": None, "status": "pending", "generation": 1},
        {"lease_id": None, "status": "dead_letter"},
        {"lease_id": "lease-2", "status": "done"},
    ],
    ids=["claimed by another", "replayed", "given up", "done by another"],
)
@pytest.mark.parametrize(
    "settlement", [DONE, DEAD, waiting(WaitStrategy.COPY)], ids=["done", "dead", "w"]
)
def test_a_worker_that_lost_its_lease_changes_nothing(
    change: dict[str, Any], settlement: Settlement
) -> None:
    table, run = stored()
    row = {k: v for k, v in (CLAIMED | change).items() if v is not None}
    table.put(row)
    with pytest.raises(LeaseLost):
        settle(table, run, settlement, sent_at=SENT)
    assert list(table) == [row]


def test_an_expired_lease_may_settle_while_no_other_worker_has_it() -> None:
    table, run = stored(claimed_until=to_ms(NOW - timedelta(hours=1)))
    assert settle(table, run, DONE, sent_at=SENT).status is Status.DONE


def test_a_row_that_is_gone_is_a_lost_lease() -> None:
    _, run = stored()
    with pytest.raises(LeaseLost):
        settle(MemoryTable(), run, DONE, sent_at=SENT)


@pytest.mark.parametrize(
    "settlement", [DONE, DEAD, waiting(WaitStrategy.COPY), waiting(WaitStrategy.HIDDEN)]
)
def test_a_settlement_that_the_sdk_tried_twice_is_ours_and_made_once(
    settlement: Settlement,
) -> None:
    table, run = stored()
    first = settle(table, run, settlement, sent_at=SENT)
    assert settle(table, run, settlement, sent_at=SENT) == first


@pytest.mark.parametrize("fault", list(Fault))
def test_a_table_that_is_down_is_unavailable(fault: Fault) -> None:
    table, run = stored()
    table.faults = lambda *_: fault
    with pytest.raises(Unavailable):
        settle(table, run, DONE, sent_at=SENT)


# -- giving up

PENDING = {"status": "pending", "lease_id": None, "claimed_until": None}


@pytest.mark.parametrize(
    "state",
    [
        {},
        PENDING,
        PENDING | {"attempt_count": None, "attempts_in_round": None},
        PENDING | {"attempt_count": 0, "generation": 1},
        {"status": "failed", "generation": 3, "next_attempt_at": to_ms(NOW)},
        {"status": "held"},
    ],
    ids=["processing", "pending", "never begun", "replayed", "failed", "held"],
)
def test_a_run_without_a_worker_is_given_up(state: dict[str, Any]) -> None:
    table, run = stored(**state)
    assert give_up(table, run, LOST, "never received", now=NOW, sent_at=SENT)
    (row,) = table
    assert row["status"] == "dead_letter"
    assert "lease_id" not in row
    assert row["last_error"] == "lost: never received"


def test_who_still_works_on_a_run_that_was_given_up_cannot_settle_it() -> None:
    table, run = stored()
    give_up(table, run, LOST, "never received", now=NOW, sent_at=SENT)
    with pytest.raises(LeaseLost):
        settle(table, run, DONE, sent_at=SENT)


@pytest.mark.parametrize(
    ("seen", "since"),
    [
        ({}, {"lease_id": "lease-2", "attempt_count": 2}),
        ({}, {"status": "done"}),
        ({}, {"status": "failed"}),
        (PENDING, {"status": "processing", "lease_id": "lease-1", "attempt_count": 2}),
        (PENDING, PENDING | {"generation": 1}),
        (PENDING | {"generation": 1}, PENDING | {"generation": 2}),
        (PENDING | {"attempt_count": None}, PENDING | {"attempt_count": None, "generation": 1}),
        (PENDING, PENDING | {"lease_id": "lease-9"}),
    ],
    ids=["claimed", "done", "failed", "begun", "replayed", "again", "replayed unbegun", "leased"],
)
def test_a_run_that_has_changed_since_it_was_seen_is_not_given_up(
    seen: dict[str, Any], since: dict[str, Any]
) -> None:
    table, run = stored(**seen)
    row = {k: v for k, v in (CLAIMED | since).items() if v is not None}
    table.put(row)
    assert not give_up(table, run, LOST, "never received", now=NOW, sent_at=SENT)
    assert list(table) == [row]


@pytest.mark.parametrize("generation", [None, 0])
@pytest.mark.parametrize("count", [None, 0])
def test_a_missing_number_is_nought(generation: int | None, count: int | None) -> None:
    _, run = stored(**PENDING, generation=generation, attempt_count=count)
    row = {k: v for k, v in (CLAIMED | PENDING).items() if v is not None}
    for number in (generation, count):
        assert number in {None, 0}
    assert as_seen(run).holds({**row, "attempt_count": 0})
    del row["attempt_count"]
    assert as_seen(run).holds(row)


def test_a_run_given_up_without_an_attempt_has_no_attempt_in_its_history() -> None:
    table, run = stored(**PENDING, attempt_count=None, attempts_in_round=None)
    give_up(table, run, LOST, "never received", now=NOW, sent_at=SENT)
    (row,) = table
    assert run_from(row).attempts == ()


# -- history


def entry(number: int) -> Attempt:
    return Attempt(number, NOW, NOW, "failed", f"error {number}", "worker-1")


def run_with(*numbers: int) -> Run:
    return replace(stored()[1], attempts=tuple(map(entry, numbers)))


def numbers_of(entries: tuple[Attempt, ...]) -> list[int]:
    return [entry.number for entry in entries]


@pytest.mark.parametrize("count", [1, 2, 17, 18])
def test_up_to_eighteen_attempts_are_all_kept(count: int) -> None:
    kept = history(run_with(*range(1, count)), entry(count))
    assert numbers_of(kept) == list(range(1, count + 1))


@pytest.mark.parametrize("count", [19, 20, 100])
def test_of_more_the_first_and_last_nine_are_kept(count: int) -> None:
    run = run_with()
    for number in range(1, count + 1):
        run = replace(run, attempts=history(run, entry(number)))
    wanted = [*range(1, 10), *range(count - 8, count + 1)]
    assert numbers_of(run.attempts) == wanted
    assert HISTORY_ENDS == 9


@pytest.mark.parametrize("reported", [(), (1,), (1, 2)])
@pytest.mark.parametrize("number", [4, 10, 15, 18])
def test_attempts_that_no_worker_reported_are_entered_as_lost(
    reported: tuple[int, ...], number: int
) -> None:
    kept = history(run_with(*reported), entry(number))
    assert numbers_of(kept) == list(range(1, number + 1))
    lost = kept[len(reported) : -1]
    assert {attempt.outcome for attempt in lost} == {"lost"}


def test_many_lost_attempts_are_the_first_and_last_nine_too() -> None:
    kept = history(run_with(), entry(50))
    assert numbers_of(kept) == [*range(1, 10), *range(42, 51)]


# -- errors


@pytest.mark.parametrize("text", ["", "short", "é" * 512, "x" * 1024])
def test_a_short_error_is_kept_as_it_is(text: str) -> None:
    assert cut(text) == text


@pytest.mark.parametrize("text", ["x" * 1025, "é" * 513, "😀" * 5000, "x" * 10**6])
def test_a_long_error_is_cut_to_one_kibibyte(text: str) -> None:
    assert 1018 <= len(cut(text).encode()) <= 1024
    assert cut(text).endswith("…")


def test_an_error_that_is_no_unicode_can_be_stored() -> None:
    assert cut("bad \ud800 text") == "bad ? text"


def test_the_errors_of_the_history_are_cut_too() -> None:
    run, row = settled(waiting(WaitStrategy.HIDDEN, spent=True), last_error=None)
    assert run.attempts[-1].error == "down"
    run, row = settled(replace(DEAD, error="x" * 5000))
    assert len(row["attempts"][-1]["error"].encode()) <= 1024
    assert len(row["last_error"].encode()) <= 1024
