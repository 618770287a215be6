"""A batch becomes one event for each of its items, each with a life of its own."""

import json
from datetime import timedelta

import pytest

from tests.unit.support.batches import PRIVATE, SUPPRESS, Batches, mail, mails, with_mail, written
from webhook_inbox.domain.errors import Deferred, Permanent
from webhook_inbox.domain.manifest import SPLIT
from webhook_inbox.domain.model import EventStatus, Status
from webhook_inbox.domain.ports import Outgoing
from webhook_inbox.domain.timestamps import from_seconds
from webhook_inbox.ingest.batches import RESERVE, TOLD, BatchProgress
from webhook_inbox.ingest.fingerprint import fingerprint
from webhook_inbox.ingest.ignored import KEYS, TYPES, find_ignored

EXACT = b'{"sg_event_id":"exact" , "event":"delivered", "amount":1.10, "n":1e400,"n":2}'


@pytest.fixture
def world() -> Batches:
    return Batches()


def test_each_item_is_an_event_of_its_own(world: Batches) -> None:
    batch = world.sent(mail("a"), mail("b", "bounce", timestamp=1_767_225_700))

    world.run_until_quiet()

    world.all_done(batch, "a", "b")
    world.handled_once(["b"], "mail.suppress")
    a, b = (world.overview(name, "mail").event for name in "ab")
    whole = world.overview(batch, "mail").event
    assert (a.type, a.runs) == ("delivered", ("mail.note",))
    assert (b.type, b.runs) == ("bounce", ("mail.note", "mail.suppress"))
    assert (whole.type, whole.runs) == ("batch", (SPLIT,))
    assert a.occurred_at == from_seconds(1_767_225_600)
    assert b.occurred_at == from_seconds(1_767_225_700)
    assert {a.received_at, b.received_at} == {whole.received_at}
    assert {a.signature_hash, b.signature_hash} == {whole.signature_hash}
    assert a.fingerprint == fingerprint(world.body("a", "mail"), ())


def test_an_items_body_is_what_the_provider_wrote(world: Batches) -> None:
    body = b"[" + EXACT + b",\r\n " + json.dumps(mail("b")).encode() + b"]\r\n"
    world.deliver(source="mail", secret=PRIVATE, body=body)
    world.run_until_quiet()
    assert world.body("exact", "mail") == EXACT


def test_the_common_case_costs_a_write_an_item_and_a_call_for_ten_runs(world: Batches) -> None:
    world.sent(*mails(25))

    world.work_once()

    assert world.plan.operations() == [
        "ReceiveMessage",
        *["GetItem"] * 2,
        "UpdateItem",
        *["PutItem"] * 25,
        *["SendMessageBatch"] * 3,
        "UpdateItem",
        "DeleteMessage",
    ]
    assert len(world.messages()) == 25


def test_runs_go_through_the_lanes_of_their_handlers(world: Batches) -> None:
    world.sent(*mails(3, type_="bounce"))
    world.work_once()
    assert [m["handler"] for m in world.messages("default")] == ["mail.note"] * 3
    assert [m["handler"] for m in world.messages("slow")] == ["mail.suppress"] * 3


def test_items_of_types_that_the_source_does_not_store_are_skipped_and_counted(
    world: Batches,
) -> None:
    batch = world.sent(mail("a"), mail("b", "open"), mail("c", "click"), mail("d"))

    result = world.work_once()

    assert result is not None
    assert result.items == {"accepted": 2, "ignored": 2}
    assert world.counts_of(batch) == {"accepted": 2, "ignored": 2}
    found = find_ignored(world.table, "mail", since=world.now, until=world.now, now=world.now)
    assert {each.type: each.count for each in found} == {"open": 1, "click": 1}
    assert (world.event_row("b", "mail"), world.event_row("c", "mail")) == (None, None)
    world.run_until_quiet()
    world.all_done(batch, "a", "d")


def test_an_attempt_whose_time_ends_counts_no_types_and_keeps_its_progress(
    world: Batches,
) -> None:
    """Each call takes a tenth of a second; after 60 items the attempt is late."""
    batch = world.stored(world.sent(*[mail(f"m{n}", f"type-{n}") for n in range(99)], mail("a")))
    calls: list[str] = []

    def slow(operation: str) -> None:
        calls.append(operation)
        world.clock.advance(seconds=0.1)

    world.hook = slow
    journal, end = BatchProgress({}), world.now + RESERVE
    splitter = world.splitter()
    with pytest.raises(Deferred):
        splitter.split(batch, journal, lease="lease", end=end)
    assert (calls, journal.progress["next"]) == ([], 1)

    end = world.now + RESERVE + timedelta(seconds=3)
    splitter.split(batch, journal, lease="lease", end=end)
    assert journal.items == {"ignored": 99, "accepted": 1}
    # The item and its run took 0.2 of the 3 seconds; a flush that has begun is completed.
    assert world.now <= end - RESERVE + timedelta(seconds=0.1 * 2 * KEYS)
    assert calls.count("UpdateItem") > 2 * KEYS


def test_types_without_a_count_of_their_own_cost_one_write(world: Batches) -> None:
    world.sent(*[mail(f"m{n}", f"type-{n}") for n in range(99)], mail("a"))
    world.work_once()
    # Two for the run, two for each place, one that finds them taken, and one for the rest.
    assert world.plan.operations().count("UpdateItem") == 2 + 2 * TYPES + 1
    found = find_ignored(world.table, "mail", since=world.now, until=world.now, now=world.now)
    assert (len(found), found[-1].type, found[-1].count) == (TYPES + 1, None, 99 - TYPES)


def test_a_batch_without_a_wanted_item_is_done(world: Batches) -> None:
    batch = world.sent(mail("a", "open"))
    world.run_until_quiet()
    assert world.statuses() == {batch: EventStatus.DONE}


def test_an_item_without_a_handler_is_stored_and_skipped() -> None:
    world = Batches(with_mail(SUPPRESS))
    batch = world.sent(mail("a"))
    world.run_until_quiet()
    assert world.statuses() == {batch: EventStatus.DONE, "a": EventStatus.SKIPPED}


def test_an_item_may_be_of_a_type_called_batch(world: Batches) -> None:
    batch = world.sent(mail("batch:a", "batch"))
    world.pass_minutes(10)
    world.all_done(batch, "batch:a")
    assert world.statuses() == dict.fromkeys((batch, "batch:a"), EventStatus.DONE)


def test_an_empty_batch_is_done_at_once(world: Batches) -> None:
    event = world.stored(world.slipped_in())
    world.plan.operations()
    journal = BatchProgress({})
    split = world.splitter(batch=lambda _: ()).split
    split(event, journal, lease="lease", end=world.now + timedelta(seconds=50))
    assert (world.plan.operations(), journal) == ([], BatchProgress({}))


def test_items_share_the_signature_and_the_guard_of_their_batch(world: Batches) -> None:
    """If only a part of the delivery is signed, the part is the same for all of them."""

    def guarded(*_: object) -> bytes:
        return b"the signed part"

    batch = world.stored(world.slipped_in(mail("a"), mail("b")))
    journal, end = BatchProgress({}), world.now + timedelta(seconds=50)
    world.splitter(guard=guarded).split(batch, journal, lease="lease", end=end)
    assert journal.items == {"accepted": 2}
    assert world.rows("guard#") == []


def test_a_conflict_is_told_when_all_other_items_are_taken(world: Batches) -> None:
    world.sent(mail("b"))
    world.run_until_quiet()
    world.handled.clear()
    stored = world.event_row("b", "mail")

    batch = world.sent(mail("a"), mail("b", reason="other"), mail("c"))
    world.run_until_quiet()

    run = world.split_of(batch)
    assert run.status is Status.DEAD_LETTER
    assert run.last_error == (
        "permanent: 1 of 3 items were not taken: item 2: b is known with other content"
    )
    assert world.counts_of(batch) == {"accepted": 2, "conflict": 1}
    world.handled_once(["a", "c"])
    assert world.event_row("b", "mail") == stored
    [kept] = world.rows("conflict#mail#b")
    assert json.loads(kept["body"])["reason"] == "other"


def test_items_that_cannot_be_named_are_told_when_all_others_are_taken(world: Batches) -> None:
    batch = world.slipped_in(mail("a"), {"event": "delivered"}, mail("c"), mail("\u0000"))
    world.run_until_quiet()
    world.handled_once(["a", "c"])
    run = world.split_of(batch)
    assert (run.status, run.attempt_count) == (Status.DEAD_LETTER, 1)
    assert run.last_error.startswith(
        "permanent: 2 of 4 items were not taken: item 2: missing-event-id: the delivery has no"
    )
    assert "item 4: malformed: " in run.last_error
    assert world.counts_of(batch) == {"accepted": 2, "rejected": 2}


def test_of_many_such_items_the_first_are_told_and_all_counted(world: Batches) -> None:
    batch = world.slipped_in(*[{"event": "delivered"}] * 1000, mail("a"))
    world.run_until_quiet()
    world.handled_once(["a"])
    error = world.split_of(batch).last_error
    assert error.startswith("permanent: 1000 of 1001 items were not taken: item 1: ")
    assert error.endswith(f"and {1000 - TOLD} more")
    assert len(error) <= 1024


def test_what_is_no_batch_any_more_is_dead_and_says_so(world: Batches) -> None:
    event = world.stored(world.slipped_in())
    split, end = world.splitter(batch=None).split, world.now + timedelta(seconds=50)
    with pytest.raises(Permanent, match="to the provider 'sendgrid' as it is now it is no batch"):
        split(event, BatchProgress({}), lease="lease", end=end)
    with pytest.raises(Permanent, match="it cannot be split: malformed: no list of events"):
        world.splitter().split(event, BatchProgress({}), lease="lease", end=end)


def test_bodies_that_are_too_large_for_their_rows_lie_apart(world: Batches) -> None:
    noise = [b"".join(world.randomness.token().encode() for _ in range(2000)).decode()] * 2
    batch = world.sent(mail("a", noise=noise[0]), mail("b"))
    world.run_until_quiet()
    world.all_done(batch, "a", "b")
    row = world.event_row("a", "mail")
    assert row is not None
    assert row["body_ref"].startswith("bodies/mail/")
    assert json.loads(world.body("a", "mail"))["noise"] == noise[0]


def test_splitting_is_sent_by_name(world: Batches) -> None:
    """The queue holds a reference, never a body."""
    batch = world.sent(mail("a"))
    [message] = world.messages()
    assert (message["handler"], message["event_id"]) == (SPLIT, batch)
    assert Outgoing(json.dumps(message)).body.isascii()
    assert written(mail("a")).decode() not in json.dumps(message)
