"""`--tenant` in `inbox tail` and `inbox errors`."""

from dataclasses import replace

import pytest

from tests.unit.support.world import ACME
from tests.webhookctl.commands.live import Waits
from tests.webhookctl.commands.stage import MANIFEST, Cli, Inbox
from webhook_inbox.domain.errors import Permanent, Transient

# A name with a blank is stored as its hash, and given as it is.
NAMES = pytest.mark.parametrize("tenant", ["acct_7", "Acme Ltd"])


@pytest.fixture
def inbox() -> Inbox:
    """An inbox in memory whose source has tenants."""
    made = Inbox()
    source = replace(ACME, tenant=("header", "x-tenant"))
    made.deploy(replace(MANIFEST, sources={**MANIFEST.sources, "acme": source}))
    return made


def deliver(inbox: Inbox, tenant: str) -> None:
    inbox.deliver("evt-1", headers={"x-tenant": tenant})
    inbox.deliver("evt-2", headers={"x-tenant": "another"})
    inbox.deliver("evt-3")


@NAMES
def test_a_tail_shows_the_events_and_runs_of_the_tenant(
    cli: Cli, inbox: Inbox, tenant: str
) -> None:
    cli.clock = Waits(inbox, (lambda: deliver(inbox, tenant), inbox.work, lambda: None))
    shown = cli("inbox", "tail", "--json", "--tenant", tenant)
    found = [(each["event_id"], each["change"]) for each in shown.objects]
    assert sorted(found) == [("evt-1", "received"), ("evt-1", "run"), ("evt-1", "run")]


@NAMES
def test_errors_are_those_of_the_tenant(cli: Cli, inbox: Inbox, tenant: str) -> None:
    inbox.fails("acme.fulfil", Permanent("422"))
    inbox.fails("acme.notify", Transient("503"))
    deliver(inbox, tenant)
    inbox.work()
    counts = {
        each["handler"]: each["count"]
        for each in cli("inbox", "errors", "--json", "--tenant", tenant).objects
    }
    assert counts == {"acme.fulfil": 1, "acme.notify": 1}
    assert sum(each["count"] for each in cli("inbox", "errors", "--json").objects) == 6
