"""`tenants`: lists, pauses and resumes tenants."""

from dataclasses import replace

import pytest

from tests.unit.support.world import ACME
from tests.webhookctl.commands.stage import CALLER, KIM, MANIFEST, Cli, Inbox
from webhook_inbox.client import tenants, waiting
from webhook_inbox.domain.model import Status
from webhook_inbox.ledger.pauses import TENANT_RESUMPTION, Subject, control_key

WHY = ("--reason", "a flood", "--by", "kim")
NAME = "acme.notify"


@pytest.fixture
def inbox(inbox: Inbox) -> Inbox:
    """An inbox whose source has tenants."""
    source = replace(ACME, tenant=("header", "x-tenant"))
    inbox.deploy(replace(MANIFEST, sources={**MANIFEST.sources, "acme": source}))
    return inbox


@pytest.fixture
def cli(cli: Cli, inbox: Inbox) -> Cli:
    cli.manifest = inbox.manifest
    return cli


def deliver(inbox: Inbox, *ids: str, tenant: str = "acct_7") -> None:
    for event_id in ids:
        inbox.deliver(event_id, type_="refunded", headers={"x-tenant": tenant})
    inbox.work()


def test_a_paused_tenant_begins_no_more_runs(cli: Cli, inbox: Inbox) -> None:
    shown = cli("tenants", "pause", "acct_7", *WHY)
    assert (shown.code, shown.out) == (0, "acct_7 is paused\n")
    assert "Resume it with `webhookctl tenants resume acct_7`." in shown.err
    deliver(inbox, "evt-1")
    deliver(inbox, "evt-2", tenant="acct_8")
    assert [event_id for _, event_id, _ in inbox.handled] == ["evt-2"]
    assert inbox.run("evt-1", NAME).waits_for == TENANT_RESUMPTION


def test_a_paused_run_shows_no_time_of_an_attempt(cli: Cli, inbox: Inbox) -> None:
    cli("tenants", "pause", "acct_7", *WHY)
    deliver(inbox, "evt-1")
    shown = cli("inbox", "list").out
    assert ": the resumption of its tenant: " in shown
    assert "attempt" not in shown


def test_a_resumed_tenant_continues_within_two_minutes(cli: Cli, inbox: Inbox) -> None:
    cli("tenants", "pause", "acct_7", *WHY)
    deliver(inbox, "evt-1", "evt-2")
    shown = cli("tenants", "resume", "acct_7")
    assert (shown.code, shown.out) == (0, "acct_7 is resumed\n")
    assert shown.err == "Waiting: 2 runs; sending starts within a minute.\n"
    inbox.pass_minutes(2)
    statuses = {inbox.run(event_id, NAME).status for event_id in ("evt-1", "evt-2")}
    assert statuses == {Status.DONE}


def test_the_name_is_given_as_in_the_deliveries(cli: Cli, inbox: Inbox) -> None:
    """SQS takes no blank in a group, so such a name is stored as its hash."""
    cli("tenants", "pause", "Acme Ltd", *WHY)
    deliver(inbox, "evt-1", tenant="Acme Ltd")
    assert inbox.handled == []
    [listed] = cli("tenants", "list", "--json").objects
    assert listed["tenant"].startswith("sha256:")
    assert cli("tenants", "resume", "Acme Ltd").code == 0
    assert cli("tenants", "list", "--json").objects == []


def test_both_actions_are_audited(cli: Cli, inbox: Inbox) -> None:
    cli("tenants", "pause", "acct_7", *WHY)
    inbox.clock.advance(seconds=1)
    cli("tenants", "resume", "acct_7", "--reason", "it is over")
    inbox.clock.advance(seconds=1)
    found = [
        (each["action"], each["request"], each["reason"], each["counts"])
        for each in cli("audit", "--json").objects
    ]
    assert found == [
        ("resume", {"tenant": "acct_7"}, "it is over", {"resumed": 1}),
        ("pause", {"tenant": "acct_7"}, "a flood", {"paused": 1}),
    ]


def test_a_second_pause_says_since_when_by_whom_and_why(cli: Cli) -> None:
    cli("tenants", "pause", "acct_7", *WHY)
    shown = cli("tenants", "pause", "acct_7", "--reason", "again")
    assert shown.code == 1
    assert shown.err == (
        f"webhookctl: acct_7 is already paused since 2026-01-01T00:00:00.000Z by {KIM}: a flood;"
        " resume it with `webhookctl tenants resume acct_7`\n"
    )


def test_a_tenant_that_is_not_paused_cannot_be_resumed(cli: Cli) -> None:
    shown = cli("tenants", "resume", "acct_7")
    assert (shown.code, shown.err) == (
        1,
        "webhookctl: acct_7 is not paused; see `webhookctl tenants list`\n",
    )


def test_a_reason_is_required(cli: Cli, inbox: Inbox) -> None:
    assert cli("tenants", "pause", "acct_7").code == 2
    assert inbox.table.get(control_key("acct_7", Subject.TENANT)) is None


def test_no_more_tenants_are_paused_than_a_worker_reads(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenants, "TENANTS", 1)
    cli("tenants", "pause", "acct_7", *WHY)
    shown = cli("tenants", "pause", "acct_8", *WHY)
    assert (shown.code, shown.err) == (
        1,
        "webhookctl: 1 tenants are paused; resume one of `webhookctl tenants list` first\n",
    )
    cli("tenants", "resume", "acct_7")
    assert cli("tenants", "pause", "acct_8", *WHY).code == 0


def test_without_tenants_in_the_sources_a_note_says_so(cli: Cli) -> None:
    cli.manifest = MANIFEST
    shown = cli("tenants", "pause", "acct_7", *WHY)
    assert shown.code == 0
    assert "No source has tenants" in shown.err


def test_the_list_has_the_paused_tenants_with_their_waiting_runs(cli: Cli, inbox: Inbox) -> None:
    cli("tenants", "pause", "acct_7", "--reason", "a flood")
    cli("tenants", "pause", "acct_8", *WHY)
    deliver(inbox, "evt-1", "evt-2")
    assert cli("tenants", "list", "--json").objects == [
        {
            "tenant": "acct_7",
            "paused": True,
            "paused_at": "2026-01-01T00:00:00.000Z",
            "paused_by": CALLER,
            "reason": "a flood",
            "waiting": 2,
            "waiting_is_complete": True,
        },
        {
            "tenant": "acct_8",
            "paused": True,
            "paused_at": "2026-01-01T00:00:00.000Z",
            "paused_by": KIM,
            "reason": "a flood",
            "waiting": 0,
            "waiting_is_complete": True,
        },
    ]
    assert "acct_7" in cli("tenants", "list").out


def test_a_count_that_is_not_complete_is_the_least(
    cli: Cli, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("tenants", "pause", "acct_7", *WHY)
    deliver(inbox, *(f"evt-{number}" for number in range(12)))
    monkeypatch.setattr(waiting, "PER_SHARD", 1)
    assert "at least " in cli("tenants", "list").out
    [listed] = cli("tenants", "list", "--json").objects
    assert not listed["waiting_is_complete"]


def test_without_a_paused_tenant_the_list_says_so(cli: Cli) -> None:
    shown = cli("tenants", "list")
    assert (shown.code, shown.out) == (0, "")
    assert shown.err.startswith("No tenant is paused.")


def test_the_runs_are_not_counted_for_their_handler(cli: Cli, inbox: Inbox) -> None:
    cli("tenants", "pause", "acct_7", *WHY)
    cli("handlers", "pause", "acme.fulfil", *WHY)
    deliver(inbox, "evt-1")
    listed = {
        each["handler"]: each["waiting"] for each in cli("handlers", "list", "--json").objects
    }
    assert listed[NAME] == 0
    assert "acct_7" not in listed


def test_inspect_names_the_command_that_resumes_the_run(cli: Cli, inbox: Inbox) -> None:
    cli("tenants", "pause", "acct_7", *WHY)
    deliver(inbox, "evt-1")
    shown = cli("inbox", "inspect", "evt-1")
    assert "tenant acct_7 is paused: a flood" in shown.out
    assert "webhookctl tenants resume acct_7" in shown.out
    cli("tenants", "resume", "acct_7")
    assert f"acct_7 was resumed by {CALLER}" in cli("inbox", "inspect", "evt-1").out
