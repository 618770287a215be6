"""`skip`: closes a dead run that no operator will replay."""

import pytest

from tests.webhookctl.commands.stage import KIM, Cli, Inbox
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Change
from webhook_inbox.ledger.schema import run_key

WHY = ("--reason", "obsolete", "--by", "kim")


@pytest.mark.moto
def test_a_dead_run_is_finished(cli: Cli, inbox: Inbox) -> None:
    inbox.dead()

    shown = cli("skip", "evt-1", "--handler", "acme.fulfil", *WHY)

    assert (shown.code, shown.out) == (0, "acme.fulfil of evt-1: skipped\n")
    assert inbox.run().status is Status.SKIPPED
    assert f"skipped by {KIM}: obsolete" in inbox.run().last_error


def test_a_program_is_told_as_well(cli: Cli, inbox: Inbox) -> None:
    inbox.dead()

    assert cli("skip", "evt-1", *WHY, "--json").data == {
        "source": "acme",
        "event_id": "evt-1",
        "handler": "acme.fulfil",
        "status": "skipped",
    }


def test_who_waited_for_it_is_said(cli: Cli, inbox: Inbox) -> None:
    run = inbox.dead()
    key = run_key(run.source, run.event_id, run.handler)
    inbox.table.update(key, Change(set={"ordering_key": "cus_1", "blocking": True}))

    shown = cli("skip", "evt-1", *WHY)

    assert "Later events of cus_1 continue" in shown.err
    assert not inbox.run().blocking


def test_a_run_that_is_not_dead_is_not_skipped(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.work()
    before = inbox.run()

    shown = cli("skip", "evt-1", "--handler", "acme.fulfil", *WHY)

    assert shown.code == 1
    assert "acme.fulfil of acme is done: nothing to skip" in shown.err
    assert inbox.run() == before


def test_an_unknown_event_is_said(cli: Cli) -> None:
    shown = cli("skip", "evt-9", *WHY)

    assert shown.code == 1
    assert "no run of an event evt-9: nothing to skip" in shown.err


def test_of_several_dead_ones_one_has_to_be_chosen(cli: Cli, inbox: Inbox) -> None:
    for name in ("acme.fulfil", "acme.notify"):
        inbox.fails(name, Permanent("a 422"))
    inbox.deliver("evt-1")
    inbox.work()

    shown = cli("skip", "evt-1", *WHY)

    assert shown.code == 1
    assert "choose one with --handler or --source" in shown.err
    assert cli("skip", "evt-1", "--handler", "acme.notify", *WHY).code == 0
    assert inbox.run("evt-1", "acme.notify").status is Status.SKIPPED
    assert inbox.run().status is Status.DEAD_LETTER


def test_a_reason_is_needed(cli: Cli, inbox: Inbox) -> None:
    inbox.dead()

    assert cli("skip", "evt-1").code == 2
    assert inbox.run().status is Status.DEAD_LETTER
