"""Which message may claim which run, clause by clause; and why another may not (G2, G3)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from webhook_inbox.adapters.memory import MemoryTable
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import Run, Status, StoredEvent
from webhook_inbox.domain.ports import Message
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.lease import CLOCK_SKEW, Lease, NotClaimable, Refusal, claim, claimable
from webhook_inbox.ledger.schema import run_key

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MS = timedelta(milliseconds=1)
SPEC = HandlerSpec("acme.fulfil", "module", "function", "acme", ("*",), max_attempts=3)
EVENT = StoredEvent("acme", "evt-1", "paid", NOW, b"", "f" * 64, {}, ("acme.fulfil",))
KEY = run_key("acme", "evt-1", "acme.fulfil")
MESSAGE = Message("message-1", "receipt", "", sent_at=NOW, receive_count=1)
OTHER = replace(MESSAGE, id="message-2")
LEASE = Lease("lease-new", "worker-2", NOW + 65 * SECOND, "v2")


def row(status: Status | None, **values: Any) -> MemoryTable:
    """Returns a table with the run in a state, or with none."""
    table = MemoryTable()
    if status is not None:
        known = {"source": "acme", "event_id": "evt-1", "handler": "acme.fulfil", "type": "paid"}
        item = {"pk": KEY.pk, "sk": KEY.sk, **known, "status": str(status), "lease_id": "lease-old"}
        item |= {"message_id": "message-1", "attempt_count": 1, "attempts_in_round": 1}
        item |= {k: to_ms(v) if isinstance(v, datetime) else v for k, v in values.items()}
        table.put({k: v for k, v in item.items() if v is not None})
    return table


def attempt(
    table: MemoryTable, message: Message = MESSAGE, *, generation: int = 0, now: datetime = NOW
) -> Run:
    return claim(
        table,
        event=EVENT,
        spec=SPEC,
        generation=generation,
        message=message,
        lease=LEASE,
        now=now,
    )


def refused(
    table: MemoryTable, message: Message = MESSAGE, *, generation: int = 0, now: datetime = NOW
) -> Refusal:
    before = list(table)
    with pytest.raises(NotClaimable) as caught:
        attempt(table, message, generation=generation, now=now)
    assert list(table) == before
    return caught.value.refusal


# -- no row


def test_the_first_message_begins_a_run() -> None:
    run = attempt(row(None))
    assert run.status is Status.PROCESSING
    assert (run.attempt_count, run.attempts_in_round) == (1, 1)
    assert run.first_at == run.claimed_at == NOW
    assert (run.lease_id, run.claimed_by, run.message_id) == ("lease-new", "worker-2", "message-1")
    assert run.claimed_until == LEASE.until
    assert run.code_version == "v2"


def test_a_later_generation_begins_no_run() -> None:
    assert refused(row(None), generation=1) is Refusal.STALE_GENERATION


# -- pending


def test_a_pending_run_is_claimed_by_any_message_of_its_generation() -> None:
    assert attempt(row(Status.PENDING), OTHER).attempt_count == 2


@pytest.mark.parametrize(("held", "carried"), [(1, 0), (1, 2), (0, 1), (None, 1), (5, 4)])
def test_another_generation_is_refused(held: int | None, carried: int) -> None:
    table = row(Status.PENDING, generation=held)
    assert refused(table, OTHER, generation=carried) is Refusal.STALE_GENERATION


@pytest.mark.parametrize("held", [0, None])
def test_no_generation_is_generation_0(held: int | None) -> None:
    assert attempt(row(Status.PENDING, generation=held)).status is Status.PROCESSING


def test_the_current_generation_is_accepted_and_kept() -> None:
    assert attempt(row(Status.PENDING, generation=3), OTHER, generation=3).generation == 3


# -- failed and deferred

WAITING = pytest.mark.parametrize("status", [Status.FAILED, Status.DEFERRED])


@WAITING
@pytest.mark.parametrize("message", [MESSAGE, OTHER], ids=["same", "other"])
def test_a_waiting_run_that_is_due_is_claimed(status: Status, message: Message) -> None:
    assert attempt(row(status, next_attempt_at=NOW), message).status is Status.PROCESSING


@WAITING
def test_before_it_is_due_only_the_message_that_claimed_it_last_may(status: Status) -> None:
    table = row(status, next_attempt_at=NOW + 60 * SECOND)
    assert refused(table, OTHER) is Refusal.NOT_DUE
    assert attempt(table, MESSAGE).status is Status.PROCESSING


@WAITING
def test_a_message_that_comes_a_moment_early_by_this_workers_clock_may(status: Status) -> None:
    """It is the only one: dropped for a second, its run would wait for the reconciler."""
    table = row(status, next_attempt_at=NOW + CLOCK_SKEW)
    assert attempt(table, OTHER).status is Status.PROCESSING


@WAITING
def test_a_message_that_is_earlier_than_clocks_differ_may_not(status: Status) -> None:
    table = row(status, next_attempt_at=NOW + CLOCK_SKEW + MS)
    assert refused(table, OTHER) is Refusal.NOT_DUE


@WAITING
def test_a_claim_takes_the_due_time_away(status: Status) -> None:
    table = row(status, next_attempt_at=NOW, parked=True)
    run = attempt(table)
    assert run.next_attempt_at is None
    assert run.parked is False


@WAITING
def test_its_own_older_message_is_told_that_the_copy_may_be_missing(status: Status) -> None:
    table = row(status, generation=1, next_attempt_at=NOW + 300 * SECOND)
    assert refused(table, MESSAGE, generation=0) is Refusal.COPY_MISSING


@WAITING
def test_a_parked_run_has_no_copy_to_miss(status: Status) -> None:
    table = row(status, generation=1, parked=True, next_attempt_at=NOW + 3000 * SECOND)
    assert refused(table, MESSAGE, generation=0) is Refusal.STALE_GENERATION


@WAITING
def test_an_older_message_of_another_claim_is_dropped(status: Status) -> None:
    table = row(status, generation=1, next_attempt_at=NOW + 300 * SECOND)
    assert refused(table, OTHER, generation=0) is Refusal.STALE_GENERATION


# -- processing


@pytest.mark.parametrize(
    ("message", "why"),
    [(MESSAGE, Refusal.CLAIMED_HERE), (OTHER, Refusal.CLAIMED_ELSEWHERE)],
    ids=["same", "other"],
)
@pytest.mark.parametrize("until", [60 * SECOND, SECOND, timedelta(0), -CLOCK_SKEW])
def test_a_live_lease_is_respected(message: Message, why: Refusal, until: timedelta) -> None:
    assert refused(row(Status.PROCESSING, claimed_until=NOW + until), message) is why


@pytest.mark.parametrize("message", [MESSAGE, OTHER], ids=["same", "other"])
def test_a_lease_is_over_when_it_is_over_on_every_clock(message: Message) -> None:
    table = row(Status.PROCESSING, claimed_until=NOW - CLOCK_SKEW - MS)
    run = attempt(table, message)
    assert (run.lease_id, run.attempt_count) == ("lease-new", 2)


@pytest.mark.parametrize("micros", [1, 500, 999])
def test_a_lease_that_ends_within_this_millisecond_is_no_exhausted_run(micros: int) -> None:
    """Rows keep milliseconds and clocks tell microseconds; both sides must round alike."""
    now = NOW + timedelta(microseconds=micros)
    table = row(Status.PROCESSING, claimed_until=NOW - CLOCK_SKEW)
    assert refused(table, MESSAGE, now=now) is Refusal.CLAIMED_HERE


def test_of_two_claims_of_one_message_one_gets_the_lease() -> None:
    table = row(None)
    attempt(table)
    with pytest.raises(NotClaimable) as caught:
        claim(
            table,
            event=EVENT,
            spec=SPEC,
            generation=0,
            message=MESSAGE,
            lease=replace(LEASE, id="lease-third"),
            now=NOW,
        )
    assert caught.value.refusal is Refusal.CLAIMED_HERE
    assert caught.value.run is not None
    assert caught.value.run.lease_id == "lease-new"


# -- dead


@pytest.mark.parametrize("sent", [-SECOND, timedelta(0)])
def test_a_message_from_before_the_death_stays_dead(sent: timedelta) -> None:
    table = row(Status.DEAD_LETTER, dead_at=NOW, attempts_in_round=0)
    assert refused(table, replace(OTHER, sent_at=NOW + sent)) is Refusal.DEAD


def test_a_message_from_after_the_death_begins_a_new_round() -> None:
    table = row(Status.DEAD_LETTER, dead_at=NOW, attempts_in_round=0, attempt_count=3)
    run = attempt(table, replace(OTHER, sent_at=NOW + MS))
    assert (run.attempt_count, run.attempts_in_round) == (4, 1)


def test_a_redriven_message_needs_the_current_generation_too() -> None:
    table = row(Status.DEAD_LETTER, dead_at=NOW, attempts_in_round=0, generation=1)
    late = replace(OTHER, sent_at=NOW + SECOND)
    assert refused(table, late, generation=0) is Refusal.STALE_GENERATION


# -- refused


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (Status.DONE, Refusal.FINISHED),
        (Status.SKIPPED, Refusal.FINISHED),
        (Status.HELD, Refusal.HELD),
    ],
)
@pytest.mark.parametrize("message", [MESSAGE, OTHER], ids=["same", "other"])
def test_a_finished_or_held_run_is_not_claimed(
    status: Status, why: Refusal, message: Message
) -> None:
    late = replace(message, sent_at=NOW + timedelta(days=1))
    past = {"next_attempt_at": NOW - SECOND, "claimed_until": NOW - timedelta(hours=1)}
    assert refused(row(status, dead_at=NOW - SECOND, **past), late) is why


# -- attempts

EXHAUSTIBLE = [
    (Status.PENDING, {}),
    (Status.FAILED, {"next_attempt_at": NOW}),
    (Status.DEFERRED, {"next_attempt_at": NOW}),
    (Status.PROCESSING, {"claimed_until": NOW - 60 * SECOND}),
]


@pytest.mark.parametrize(("status", "state"), EXHAUSTIBLE)
def test_the_last_attempt_of_a_round_may_be_made(status: Status, state: dict[str, Any]) -> None:
    table = row(status, attempts_in_round=2, attempt_count=9, **state)
    assert attempt(table).attempts_in_round == 3


@pytest.mark.parametrize(("status", "state"), EXHAUSTIBLE)
def test_one_more_is_refused_as_exhausted(status: Status, state: dict[str, Any]) -> None:
    table = row(status, attempts_in_round=3, attempt_count=3, **state)
    assert refused(table) is Refusal.EXHAUSTED


@pytest.mark.parametrize("receives", [1, 2, 12, 1000])
def test_receives_are_no_attempts(receives: int) -> None:
    table = row(Status.PENDING, attempts_in_round=2)
    assert attempt(table, replace(MESSAGE, receive_count=receives)).attempts_in_round == 3


# -- calls tried twice, and calls that fail


def test_a_claim_that_the_sdk_tried_twice_is_ours() -> None:
    """The first try took the lease and its answer was lost; the second meets our own lease."""
    table = row(Status.PROCESSING, lease_id="lease-new", claimed_until=LEASE.until)
    run = attempt(table)
    assert run.lease_id == "lease-new"
    assert run.attempt_count == 1


def test_a_claim_that_fails_is_unavailable() -> None:
    table = row(None)
    table.faults = lambda *_: "before"
    with pytest.raises(Unavailable):
        attempt(table)


# -- the due index


@pytest.mark.parametrize(
    ("receives", "generation", "listed"), [(1, 0, False), (2, 0, True), (1, 1, True)]
)
def test_a_first_attempt_alone_stays_off_the_due_index(
    receives: int, generation: int, listed: bool
) -> None:
    table = row(Status.PENDING, generation=generation)
    attempt(table, replace(MESSAGE, receive_count=receives), generation=generation)
    (item,) = table
    assert ("due_bucket" in item) is listed
    assert item["due_at"] > to_ms(LEASE.until)


def test_a_run_that_is_listed_stays_listed() -> None:
    table = row(Status.DEAD_LETTER, dead_at=NOW - SECOND, attempts_in_round=0, due_bucket="7")
    attempt(table)
    (item,) = table
    assert item["due_bucket"] == "7"


def test_a_claim_proves_that_messages_arrive_so_earlier_resends_do_not_count() -> None:
    table = row(Status.PENDING, resends=5)
    assert attempt(table).resends == 0


def test_a_claim_outlives_its_event() -> None:
    run = attempt(row(None))
    assert run.expires_at == NOW + timedelta(days=42)


def test_the_first_time_is_kept() -> None:
    table = row(Status.PENDING, first_at=NOW - timedelta(days=1))
    assert attempt(table).first_at == NOW - timedelta(days=1)


# -- condition and refusal tell the same story


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("message", [MESSAGE, OTHER], ids=["same", "other"])
@pytest.mark.parametrize("offset", [-7, -5, 0, 3, 5, 6, 60])
@pytest.mark.parametrize("generation", [0, 1])
@pytest.mark.parametrize("attempts", [0, 3])
def test_nothing_is_called_exhausted_that_has_attempts_left(
    status: Status, message: Message, offset: int, generation: int, attempts: int
) -> None:
    at = NOW + offset * SECOND
    table = row(
        status, claimed_until=at, next_attempt_at=at, dead_at=at, attempts_in_round=attempts
    )
    (item,) = table
    if claimable(generation, message, SPEC.max_attempts, NOW).holds(item):
        assert attempts < 3
        assert attempt(table, message, generation=generation).status is Status.PROCESSING
    else:
        why = refused(table, message, generation=generation)
        assert why is not Refusal.EXHAUSTED or attempts == 3
