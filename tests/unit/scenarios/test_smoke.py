"""The built-in source and handler of `webhookctl smoke`."""

from pathlib import Path

import pytest

from tests.unit.support.world import World
from webhook_inbox import Router, providers
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import SMOKE, SMOKE_FAILS, SMOKE_SOURCE, SMOKE_WORKS
from webhook_inbox.domain.model import Delivery, Run, Status
from webhook_inbox.domain.ports import Key, Outgoing
from webhook_inbox.domain.provider import Sample
from webhook_inbox.handlers.effects.journal import decode
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.ledger.schema import event_pk
from webhook_inbox.queue import dead_letters
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import RunOutcome

WHSEC = "whsec_" + "QUJD" * 8
OTHER = "whsec_" + "REVG" * 8


@pytest.fixture
def open_world(world: World) -> World:
    world.vault.rotate(SMOKE_SOURCE.secret, WHSEC)
    return world


def deliver(world: World, event_id: str, type_: str, *, secret: str = WHSEC) -> Receipt:
    sample = Sample(event_id, type_, b'{"type": "%s"}' % type_.encode())
    sent = providers.load(SMOKE_SOURCE).send(sample, secret, world.now)
    delivery = Delivery(SMOKE, "POST", f"/webhooks/{SMOKE}", "", sent.headers, sent.body, world.now)
    receipt = world.ingest.receive(delivery)
    world.clock.advance(seconds=0.001)
    return receipt


def the_run(world: World, event_id: str) -> Run:
    return world.run(event_id, SMOKE, SMOKE)


def the_effect(world: World, event_id: str) -> dict[str, object]:
    (row,) = world.overview(event_id, SMOKE).effects
    result: dict[str, object] = decode(row["result"])
    return result


# -- the source


@pytest.mark.parametrize("secret", [WHSEC, OTHER])
def test_without_its_secret_it_is_an_unknown_source_and_stores_nothing(
    world: World, secret: str
) -> None:
    receipt = deliver(world, "s-1", SMOKE_WORKS, secret=secret)
    assert receipt == Receipt(IngestOutcome.UNKNOWN_SOURCE, 404, detail="no such source")
    assert list(world.table) == []


def test_it_is_unknown_while_its_secret_cannot_be_read(open_world: World) -> None:
    open_world.plan.fail("GetSecretValue")
    assert deliver(open_world, "s-1", SMOKE_WORKS).status == 404


def test_a_forged_delivery_is_rejected_and_leaves_nothing(open_world: World) -> None:
    assert deliver(open_world, "s-1", SMOKE_WORKS, secret=OTHER).status == 401
    assert list(open_world.table) == []


def test_it_closes_within_a_minute_of_the_removal_of_its_secret(open_world: World) -> None:
    assert deliver(open_world, "s-1", SMOKE_WORKS).status == 202
    open_world.vault.remove(SMOKE_SOURCE.secret)
    open_world.clock.advance(seconds=60)
    assert deliver(open_world, "s-2", SMOKE_WORKS).status == 404


def test_a_duplicate_has_no_second_run(open_world: World) -> None:
    outcomes = [deliver(open_world, "s-1", SMOKE_WORKS).outcome for _ in range(3)]
    assert outcomes == [IngestOutcome.ACCEPTED, IngestOutcome.DUPLICATE, IngestOutcome.DUPLICATE]
    assert open_world.work()[0] is RunOutcome.DONE
    assert the_run(open_world, "s-1").attempt_count == 1
    key = "smoke:smoke:smoke:s-1"
    assert the_effect(open_world, "s-1") == {"attempt": 1, "key": key}


# -- the handler


def test_it_fails_until_it_is_replayed_and_repeats_no_effect(open_world: World) -> None:
    deliver(open_world, "s-1", SMOKE_FAILS)
    open_world.run_until_quiet()
    run = the_run(open_world, "s-1")
    assert (run.status, run.attempt_count) == (Status.DEAD_LETTER, 2)
    assert len(open_world.dlqs["default"]) == 1

    open_world.clock.advance(minutes=1)
    assert open_world.redrive() == 1
    open_world.run_until_quiet()
    run = the_run(open_world, "s-1")
    assert (run.status, run.attempt_count) == (Status.DEAD_LETTER, 4)

    report = open_world.replay(event_ids=["s-1"], source=SMOKE, dry_run=False, requested_by="me")
    assert report.counts == {"replayed": 1}
    open_world.run_until_quiet()
    run = the_run(open_world, "s-1")
    assert (run.status, run.attempt_count) == (Status.DONE, 5)
    assert the_effect(open_world, "s-1")["attempt"] == 1


def test_a_lost_message_is_sent_again(open_world: World) -> None:
    deliver(open_world, "s-1", SMOKE_WORKS)
    open_world.drop_messages()
    open_world.run_until_quiet()
    assert the_run(open_world, "s-1").status is Status.DONE


# -- after the smoke test


def test_a_message_whose_event_was_deleted_ends_there(open_world: World) -> None:
    deliver(open_world, "s-1", SMOKE_WORKS)
    open_world.table.delete(Key(event_pk(SMOKE, "s-1"), "event"))
    assert open_world.work() == [RunOutcome.DELETED]
    open_world.clock.advance(hours=1)
    assert open_world.work() == []
    assert len(open_world.dlqs["default"]) == 0


def test_a_sweep_removes_a_dead_letter_whose_rows_were_deleted(world: World) -> None:
    bodies = [RunMessage(source, "s-1", SMOKE).encode() for source in (SMOKE, "acme")]
    queue = world.dlqs["default"]
    queue.send([Outgoing(body) for body in bodies])
    deadline = world.now.replace(hour=1)
    swept = dead_letters.sweep(queue, world.table, clock=world.clock, deadline=deadline)
    assert (swept.removed, swept.finished) == (1, True)
    assert queue.bodies == bodies[1:]


# -- its names


def test_no_source_and_no_handler_takes_its_name(tmp_path: Path) -> None:
    file = tmp_path / "inbox.toml"
    file.write_text('[sources.smoke]\nprovider = "github"\n')
    with pytest.raises(
        ConfigurationError, match=r"\[sources.smoke\]: this name is the inbox's own"
    ):
        inbox_toml.load(file, stage="dev")

    def handle(event: object, ctx: object) -> None: ...

    with pytest.raises(ConfigurationError, match="this name is the inbox's own"):
        Router("github").on("*", name=SMOKE)(handle)
