"""`erase`: erases an event's payload and keeps its ledger."""

import pytest

from tests.webhookctl.commands.stage import KIM, Cli, Inbox
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.model import Status

WHY = ("--reason", "GDPR request 17", "--by", "kim")


def test_nothing_is_erased_without_yes(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.work()

    shown = cli("erase", "evt-1", *WHY)

    assert shown.code == 0
    assert shown.out == "evt-1 of acme: would erase body, headers, and the error texts of 2 runs\n"
    assert "Nothing was erased" in shown.err
    assert cli("inbox", "inspect", "evt-1", "--body").code == 0


@pytest.mark.moto
def test_an_erased_event_shows_no_body_and_no_error(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.fulfil", Permanent("no such customer ada@example.com"))
    inbox.deliver("evt-1")
    inbox.work()

    shown = cli("erase", "evt-1", "--yes", *WHY)

    assert (shown.code, shown.out) == (0, "evt-1 of acme: erased\n")
    assert "ada@" not in cli("inbox", "inspect", "evt-1", "-v").out
    assert "payload erased on" in cli("inbox", "inspect", "evt-1").out
    assert inbox.run().status is Status.DEAD_LETTER
    body = cli("inbox", "inspect", "evt-1", "--body")
    assert body.code == 1
    assert "its payload was erased on" in body.err


def test_an_erasure_is_audited_before_it_happens(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.work()

    cli("erase", "evt-1", "--yes", *WHY)

    [row] = inbox.table.query(f"audit#{inbox.now:%Y-%m-%d}")
    assert row["action"] == "erase"
    assert (str(Actor.of(row)), row["reason"]) == (KIM, "GDPR request 17")
    assert row["event_ids"] == ["evt-1"]
    assert row["counts"] == {"erased": 1}


def test_a_program_is_told_as_well(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.work()

    told = cli("erase", "evt-1", "--yes", *WHY, "--json").data

    assert told["event_id"] == "evt-1"
    assert told["erased_at"]
    assert told["unfinished"] == []


def test_an_unknown_event_is_said(cli: Cli) -> None:
    shown = cli("erase", "evt-9", "--yes", *WHY)

    assert shown.code == 1
    assert "no event evt-9" in shown.err


def test_a_reason_is_needed(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1")

    assert cli("erase", "evt-1", "--yes").code == 2


def test_what_is_left_is_said(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.work()

    shown = cli("erase", "evt-1", "--yes", *WHY)

    assert (
        "A delivery that was received before the erasure may still store its payload." in shown.err
    )
    assert "Not erased: backups of the table (35 days), rejected deliveries (7 days)" in shown.err
    told = cli("erase", "evt-1", "--yes", *WHY, "--json").data
    assert told["arriving_until"]
    assert told["batch"] is None
    assert {"errors that jobs reported", "exports"} <= set(told["not_erased"])


def test_a_day_later_nothing_arrives(cli: Cli, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    inbox.work()
    inbox.clock.advance(days=1)

    assert cli("erase", "evt-1", "--yes", *WHY, "--json").data["arriving_until"] is None


def test_what_is_left_of_an_expired_event_is_erased(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.fulfil", Permanent("no such customer ada@example.com"))
    inbox.deliver("evt-1")
    inbox.work()
    inbox.clock.advance(days=36)
    inbox.table.delete_expired(inbox.now)

    shown = cli("erase", "evt-1", "--yes", *WHY)

    assert (shown.code, shown.out) == (0, "evt-1 of acme: erased\n")
    assert "ada@" not in repr(list(inbox.table.everything()))
