"""A batch that comes again, is replayed, or takes several attempts."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.unit.support.batches import MAIL, NOTE, SUPPRESS, Batches, mail, mails, with_mail
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.manifest import SPLIT
from webhook_inbox.domain.model import EventStatus, Status
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ledger.schema import run_key


@pytest.fixture
def world() -> Batches:
    return Batches()


def test_a_second_delivery_of_the_batch_is_a_duplicate(world: Batches) -> None:
    batch = world.sent(*mails(3))
    world.work_once()
    assert world.send(*mails(3)).outcome is IngestOutcome.DUPLICATE
    world.run_until_quiet()
    assert world.send(*mails(3)).outcome is IngestOutcome.DUPLICATE
    assert world.messages() == []
    world.all_done(batch, "mail-0", "mail-1", "mail-2")
    assert world.split_of(batch).attempt_count == 1


def test_an_item_that_comes_in_two_batches_or_twice_in_one_is_handled_once(world: Batches) -> None:
    first = world.sent(mail("a"), mail("b"), mail("b"))
    second = world.sent(mail("b"), mail("c"))
    world.run_until_quiet()
    world.all_done(first, "a", "b", "c")
    world.all_done(second, "a", "b", "c")
    assert world.counts_of(first) == {"accepted": 2, "duplicate": 1}
    assert world.counts_of(second) == {"accepted": 1, "duplicate": 1}


def test_an_item_that_comes_twice_in_one_batch_is_sent_once(world: Batches) -> None:
    world.sent(mail("b"), mail("b"))
    world.work_once()
    assert len(world.messages()) == 1


def test_a_batch_of_a_source_that_is_not_deployed_waits_for_it(world: Batches) -> None:
    batch, manifest = world.sent(mail("a")), world.manifest
    others = {name: spec for name, spec in manifest.sources.items() if name != "mail"}
    world.deploy(replace(manifest, sources=others))
    world.work_once()
    assert world.split_of(batch).status is Status.FAILED
    assert world.split_of(batch).last_error == "source 'mail' is not in this deployment"
    world.deploy(manifest)
    world.run_until_quiet()
    world.all_done(batch, "a")


def test_replaying_the_split_run_repeats_nothing(world: Batches) -> None:
    batch = world.sent(*mails(3))
    world.script("mail.note", Permanent("the first is refused"))
    world.run_until_quiet()
    dead = {name for name, status in world.statuses().items() if status == "dead_letter"}
    before = sorted(world.handled)

    for _ in range(2):
        world.replay(event_ids=[batch], handler=SPLIT, force=True)
        world.run_until_quiet()

    assert sorted(world.handled) == before
    assert world.split_of(batch).status is Status.DONE
    assert world.counts_of(batch) == {"duplicate": 3}
    assert {n for n, status in world.statuses().items() if status == "dead_letter"} == dead


def test_a_replay_takes_what_the_source_wants_since(world: Batches) -> None:
    batch = world.sent(mail("a"), mail("b", "open"))
    world.run_until_quiet()
    world.deploy(with_mail(NOTE, SUPPRESS, source=replace(MAIL, types=("*",))))

    world.replay(event_ids=[batch], handler=SPLIT, force=True)
    world.run_until_quiet()

    world.all_done(batch, "a", "b")
    assert world.counts_of(batch) == {"duplicate": 1, "accepted": 1}


def test_each_item_is_replayed_by_itself(world: Batches) -> None:
    batch = world.sent(*mails(3))
    world.script("mail.note", Permanent("the first is refused"))
    world.run_until_quiet()
    [dead] = [name for name, status in world.statuses().items() if status == "dead_letter"]

    assert world.replay(source="mail").counts == {"replayed": 1}
    world.run_until_quiet()

    assert set(world.statuses().values()) == {EventStatus.DONE}
    assert [attempt for _, event_id, attempt in world.handled if event_id == dead] == [1, 2]
    assert world.split_of(batch).attempt_count == 1


def test_a_failing_items_run_is_tried_again_alone(world: Batches) -> None:
    batch = world.sent(*mails(3))
    world.script("mail.note", Transient("later"), None, None, None)
    world.run_until_quiet()
    assert sorted(attempt for _, _, attempt in world.handled) == [1, 1, 1, 2]
    assert world.split_of(batch).attempt_count == 1


def test_a_batch_that_was_stored_and_not_sent_is_found_by_the_reconciler(world: Batches) -> None:
    world.plan.fail("SendMessageBatch")
    assert world.send(mail("a")).outcome is IngestOutcome.UNAVAILABLE
    world.pass_minutes(9)
    [batch] = [name for name in world.statuses() if name.startswith("batch:")]
    world.all_done(batch, "a")


def test_an_item_of_a_batch_that_waited_for_hours_is_found_by_the_reconciler(
    world: Batches,
) -> None:
    """The reconciler has read the time at which the batch was received long ago."""
    batch = world.sent(mail("a"))
    world.clock.advance(hours=3)
    world.reconcile()
    world.work_once()
    (message,) = world.queues["default"].receive(1, hidden_for=60)
    world.queues["default"].delete(message.receipt)
    world.pass_minutes(5)
    world.all_done(batch, "a")
    assert world.statuses() == dict.fromkeys((batch, "a"), EventStatus.DONE)


def test_the_reconciler_reads_no_batch_whose_run_has_a_row(world: Batches) -> None:
    world.sent(*mails(1))
    world.run_until_quiet()
    empty = Batches()
    for each in (world, empty):
        each.plan.operations()
        each.pass_minutes(40)
    more = Counter(world.plan.operations()) - Counter(empty.plan.operations())
    assert set(more) == {"BatchGetItem"}


def test_a_large_batch_is_split_over_several_attempts_and_costs_one(world: Batches) -> None:
    ids = [item["sg_event_id"] for item in mails(120)]
    batch = world.sent(*mails(120))

    def slowly(operation: str) -> None:
        if operation == "PutItem":
            world.clock.advance(seconds=1)

    world.hook = slowly
    first = world.work_once()

    assert first is not None
    waiting = world.split_of(batch)
    assert (waiting.status, waiting.last_error) == (
        Status.DEFERRED,
        "45 of 120 items are taken",
    )
    assert (waiting.attempt_count, first.items) == (0, {})
    assert len(world.messages()) == 46  # of 45 items, and what goes on
    world.run_until_quiet()
    world.all_done(batch, *ids)
    assert world.split_of(batch).attempt_count == 1
    assert world.counts_of(batch) == {"accepted": 120}
    puts = [operation for _, operation in world.plan.calls].count("PutItem")
    assert puts == 120


def test_a_batch_whose_last_item_takes_the_time_is_done(world: Batches) -> None:
    batch = world.sent(*mails(45))
    world.hook = lambda operation: world.clock.advance(seconds=operation == "PutItem")
    result = world.work_once()
    assert result is not None
    assert result.items == {"accepted": 45}
    assert world.split_of(batch).status is Status.DONE


def test_an_attempt_takes_one_item_at_least() -> None:
    world = Batches(with_mail())
    batch = world.sent(*mails(3))
    for taken in (1, 2):
        world.clock.advance(seconds=2)
        message = world.taken()
        world.process(message, seconds=5)
        world.queues["default"].delete(message.receipt)
        assert world.split_of(batch).progress["next"] == taken


def test_a_conflict_in_an_earlier_attempt_is_told_in_the_last(world: Batches) -> None:
    world.sent(mail("mail-0", reason="other"))
    world.run_until_quiet()
    batch = world.sent(*mails(100))
    world.hook = lambda operation: world.clock.advance(seconds=operation == "PutItem")
    world.run_until_quiet()
    assert world.split_of(batch).last_error.endswith("item 1: mail-0 is known with other content")
    assert world.counts_of(batch) == {"accepted": 99, "conflict": 1}


def test_progress_of_a_batch_that_is_now_split_otherwise_counts_for_nothing(world: Batches) -> None:
    batch = world.sent(*mails(3))
    key = run_key("mail", batch, SPLIT)
    world.work_once()
    row = world.peek(key)
    assert row is not None
    stale = {"of": 7, "next": 2, "counts": {"accepted": 2}, "faults": []}
    world.table.put({**row, "progress": stale})
    world.replay(event_ids=[batch], handler=SPLIT, force=True)
    world.run_until_quiet()
    assert world.counts_of(batch) == {"duplicate": 3}
