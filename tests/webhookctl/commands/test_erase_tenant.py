"""`erase --tenant`: erases the payloads of all stored events of a tenant."""

from dataclasses import replace

import pytest

from tests.unit.support.world import ACME
from tests.webhookctl.commands.stage import MANIFEST, Cli, Inbox
from webhook_inbox.domain.errors import Held

WHY = ("--reason", "GDPR request 17", "--by", "kim")


@pytest.fixture
def tenants(cli: Cli, inbox: Inbox) -> Inbox:
    """An inbox whose source has tenants: two events of acct_7, one of acct_8, one of none."""
    source = replace(ACME, tenant=("header", "x-tenant"))
    cli.manifest = replace(MANIFEST, sources={**MANIFEST.sources, "acme": source})
    inbox.deploy(cli.manifest)
    for number, tenant in enumerate(("acct_7", "acct_7", "acct_8", "")):
        body = b'{"id": "evt-%d", "email": "ada@example.com"}' % number
        inbox.deliver(f"evt-{number}", body=body, headers={"x-tenant": tenant} if tenant else {})
        inbox.clock.advance(minutes=50)
    inbox.work()
    return inbox


def has_body(cli: Cli, number: int) -> bool:
    return cli("inbox", "inspect", f"evt-{number}", "--body").code == 0


def test_a_dry_run_counts_the_events_of_a_tenant(cli: Cli, tenants: Inbox) -> None:
    shown = cli("erase", "--tenant", "acct_7", *WHY)

    assert (shown.code, shown.out) == (0, "acct_7: 2 events (acme 2)\n")
    assert "Nothing was erased. Add --yes" in shown.err
    assert has_body(cli, 0)
    assert cli("audit", "--json").objects == []


def test_the_payloads_of_a_tenant_are_erased_and_no_others(cli: Cli, tenants: Inbox) -> None:
    shown = cli("erase", "--tenant", "acct_7", "--yes", *WHY)

    assert (shown.code, shown.out) == (0, "acct_7: 2 events (acme 2)\nerased: 2\n")
    assert [has_body(cli, number) for number in range(4)] == [False, False, True, True]
    tenants.clock.advance(seconds=1)
    [entry] = cli("audit", "--json").objects
    assert (entry["action"], entry["request"]) == ("erase", {"tenant": "acct_7"})
    assert entry["counts"] == {"erased": 2}


def test_a_repeated_erasure_changes_what_is_left_only(cli: Cli, tenants: Inbox) -> None:
    cli("erase", "evt-0", "--yes", *WHY)

    told = cli("erase", "--tenant", "acct_7", "--yes", *WHY, "--json").data

    assert "events that have expired (S3 keeps bodies for 49 days)" in told.pop("not_erased")
    assert told == {
        "tenant": "acct_7",
        "events": 2,
        "by_source": {"acme": 2},
        "erased": 1,
        "unfinished": 0,
        "arriving": 0,
        "batches": [],
    }
    again = cli("erase", "--tenant", "acct_7", "--yes", *WHY)
    assert again.out == "acct_7: 2 events (acme 2)\nerased: 0; 2 before, or expired\n"


def test_an_event_id_or_a_tenant_is_needed_and_not_both(cli: Cli, tenants: Inbox) -> None:
    for given in ((), ("evt-0", "--tenant", "acct_7")):
        shown = cli("erase", *given, "--yes", *WHY)
        assert shown.code == 2
        assert "EVENT_ID or --tenant" in shown.err
    assert has_body(cli, 0)


def test_a_tenant_or_a_source_without_events_is_an_error(cli: Cli, tenants: Inbox) -> None:
    for given in (("--tenant", "acct_9"), ("--tenant", "acct_7", "--source", "github")):
        shown = cli("erase", *given, "--yes", *WHY)
        assert shown.code == 1
        assert "no stored event has the tenant" in shown.err


def test_an_event_with_a_held_run_is_named_unfinished(cli: Cli, tenants: Inbox) -> None:
    tenants.fails("acme.fulfil", Held("large"))
    tenants.deliver("evt-9", headers={"x-tenant": "acct_9"})
    tenants.work()

    shown = cli("erase", "--tenant", "acct_9", "--yes", *WHY)

    assert "Events with runs in progress or held: 1." in shown.err


def test_a_delivery_in_progress_is_named_until_it_has_ended(cli: Cli, tenants: Inbox) -> None:
    """A program repeats the command until it counts none."""
    tenants.deliver("evt-9", headers={"x-tenant": "acct_9"})
    tenants.work()
    counts = []
    for minutes in (0, 2, 4):
        tenants.clock.advance(minutes=minutes)
        result = cli("erase", "--tenant", "acct_9", "--yes", *WHY, "--json").data
        counts.append((result["erased"], result["arriving"]))

    assert counts == [(0, 1), (0, 1), (0, 0)]
