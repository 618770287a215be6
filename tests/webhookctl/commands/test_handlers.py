"""`handlers`: which there are, and pausing and resuming them."""

import re
from typing import Any

import pytest

from tests.webhookctl.commands.stage import KIM, MANIFEST, Cli, Inbox
from webhook_inbox.domain.model import Status
from webhook_inbox.ledger.pauses import RESUMPTION, control_key

WHY = ("--reason", "the CRM moves", "--by", "kim")
DEPLOYED = ", ".join(MANIFEST.handlers)
UNKNOWN = (
    f"webhookctl: no handler acme.fullfil; known handlers: {DEPLOYED};"
    ' did you mean "acme.fulfil"?\n'
)


def pause(cli: Cli, name: str = "acme.notify") -> None:
    assert cli("handlers", "pause", name, *WHY).code == 0


def waiting(inbox: Inbox, *ids: str) -> None:
    """Delivers events whose run finds its handler paused."""
    for event_id in ids:
        inbox.deliver(event_id, type_="refunded")
    inbox.work()


# -- pause


def test_a_paused_handler_begins_no_more_runs(cli: Cli, inbox: Inbox) -> None:
    shown = cli("handlers", "pause", "acme.notify", *WHY)
    assert (shown.code, shown.out) == (0, "acme.notify is paused\n")
    assert "Resume it with `webhookctl handlers resume acme.notify`." in shown.err
    waiting(inbox, "evt-1")
    assert inbox.handled == []
    assert inbox.run(handler="acme.notify").waits_for == RESUMPTION


def test_who_paused_it_is_the_caller_unless_told(cli: Cli, inbox: Inbox) -> None:
    cli("handlers", "pause", "acme.notify", "--reason", "the CRM moves")
    row = inbox.table.get(control_key("acme.notify"))
    assert row is not None
    assert row["by"].startswith("arn:aws:sts::123456789012:")


def test_a_reason_is_asked_for(cli: Cli, inbox: Inbox) -> None:
    shown = cli("handlers", "pause", "acme.notify")
    assert shown.code == 2
    assert "--reason" in shown.err
    assert inbox.table.get(control_key("acme.notify")) is None


def test_what_is_paused_already_says_since_when_by_whom_and_why(cli: Cli, inbox: Inbox) -> None:
    pause(cli)
    inbox.clock.advance(minutes=5)
    shown = cli("handlers", "pause", "acme.notify", "--reason", "again", "--by", "ada")
    assert shown.code == 1
    assert shown.err == (
        "webhookctl: acme.notify is already paused since 2026-01-01T00:00:00.000Z by"
        f" {KIM}: the CRM moves; resume it with `webhookctl handlers resume acme.notify`\n"
    )


def test_a_handler_that_is_not_deployed_is_refused(cli: Cli, inbox: Inbox) -> None:
    shown = cli("handlers", "pause", "acme.fullfil", *WHY)
    assert (shown.code, shown.err) == (
        2,
        UNKNOWN,
    )
    assert inbox.table.get(control_key("acme.fullfil")) is None


def test_as_json_either_says_what_it_did(cli: Cli) -> None:
    shown = cli("handlers", "pause", "acme.notify", "--json", *WHY)
    assert shown.data == {"handler": "acme.notify", "paused": True}
    shown = cli("handlers", "resume", "acme.notify", "--json")
    assert shown.data == {"handler": "acme.notify", "paused": False, "waiting": 0}


# -- resume


@pytest.mark.moto
def test_a_resumed_handler_takes_up_what_waits_within_two_minutes(cli: Cli, inbox: Inbox) -> None:
    pause(cli)
    waiting(inbox, "evt-1", "evt-2")
    shown = cli("handlers", "resume", "acme.notify")
    assert (shown.code, shown.out) == (0, "acme.notify is resumed\n")
    assert shown.err == "Waiting runs: 2; sending starts within a minute.\n"
    inbox.pass_minutes(2)
    assert inbox.run("evt-1", "acme.notify").status is Status.DONE
    assert inbox.run("evt-2", "acme.notify").status is Status.DONE


def test_what_is_not_paused_cannot_be_resumed(cli: Cli) -> None:
    shown = cli("handlers", "resume", "acme.notify")
    assert (shown.code, shown.err) == (
        1,
        "webhookctl: acme.notify is not paused; see `webhookctl handlers list`\n",
    )


def test_a_slip_in_its_name_is_told(cli: Cli) -> None:
    shown = cli("handlers", "resume", "acme.fullfil")
    assert shown.err == UNKNOWN


def test_a_paused_handler_that_has_left_the_deployment_can_be_resumed(cli: Cli) -> None:
    deployed, cli.manifest = cli.manifest, None
    pause(cli, "acme.gone")
    cli.manifest = deployed
    assert cli("handlers", "resume", "acme.gone").code == 0


# -- list


def listed(cli: Cli, name: str = "acme.notify") -> dict[str, Any]:
    [found] = [h for h in cli("handlers", "list", "--json").objects if h["handler"] == name]
    return dict(found)


def test_every_deployed_handler_is_listed(cli: Cli) -> None:
    names = [shown["handler"] for shown in cli("handlers", "list", "--json").objects]
    assert ", ".join(names) == DEPLOYED
    assert listed(cli, "acme.fulfil") == {
        "handler": "acme.fulfil",
        "source": "acme",
        "types": ["paid"],
        "lane": "default",
        "order": None,
        "paused": False,
        "paused_at": None,
        "paused_by": None,
        "reason": None,
        "waiting": 0,
    }


@pytest.mark.moto
def test_a_paused_one_shows_since_when_by_whom_why_and_what_waits(cli: Cli, inbox: Inbox) -> None:
    pause(cli)
    waiting(inbox, "evt-1", "evt-2")
    shown = listed(cli)
    assert shown["paused"]
    assert shown["paused_at"] == "2026-01-01T00:00:00.000Z"
    assert (shown["paused_by"], shown["reason"]) == (KIM, "the CRM moves")
    assert shown["waiting"] == 2


def test_for_people_it_is_a_table(cli: Cli, inbox: Inbox) -> None:
    pause(cli, "acme.fulfil")
    inbox.deliver()
    inbox.work()
    shown = cli("handlers", "list")
    assert shown.out.splitlines()[0].split() == [
        "HANDLER",
        "SOURCE",
        "TYPES",
        "LANE",
        "ORDER",
        "WAITING",
        "PAUSED",
    ]
    assert re.search(
        r"^acme.fulfil +acme +paid +default +- +1"
        r" +since 2026-01-01T00:00:00.000Z by " + KIM + r": the CRM moves$",
        shown.out,
        re.M,
    )


def test_a_resumed_one_whose_runs_still_wait_shows_them(cli: Cli, inbox: Inbox) -> None:
    pause(cli)
    waiting(inbox, "evt-1")
    cli("handlers", "resume", "acme.notify")
    shown = listed(cli)
    assert (shown["paused"], shown["waiting"]) == (False, 1)


def test_without_a_manifest_what_was_ever_paused_is_listed(cli: Cli) -> None:
    pause(cli)
    cli.manifest = None
    shown = cli("handlers", "list")
    assert "acme.notify" in shown.out
    assert "stripe.book" not in shown.out
    assert "permission cloudformation:GetTemplateSummary" in shown.err


def test_inspect_says_that_it_waits_for_the_resumption(cli: Cli, inbox: Inbox) -> None:
    pause(cli)
    waiting(inbox, "evt-1")
    shown = cli("inbox", "inspect", "evt-1", "--json").data
    assert shown["runs"][0]["waits_for"] == RESUMPTION
    assert "the CRM moves" in shown["next_action"]
    assert "within two minutes of: webhookctl handlers resume acme.notify" in shown["next_action"]
    people = cli("inbox", "inspect", "evt-1").out
    assert "why       resumption: handler acme.notify is paused: the CRM moves\n" in people
