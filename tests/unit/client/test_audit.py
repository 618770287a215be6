"""`client.audit`: the actions of a window, newest first, of an action, an actor or an event."""

from datetime import timedelta

import pytest

from tests.webhookctl.commands.conftest import _alone, cli, inbox
from tests.webhookctl.commands.stage import CALLER, Cli, Inbox
from webhook_inbox.client import budget
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.domain.audit import AuditedAction

__all__ = ["_alone", "cli", "inbox"]


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client of an inbox whose handler was paused and resumed, a minute apart."""
    made = InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)
    made.handlers.pause("acme.notify", reason="the CRM moves", by=made.actor("ada"))
    inbox.clock.advance(minutes=1)
    made.handlers.resume("acme.notify", by=made.actor())
    return made


def test_the_newest_is_first_and_filters_choose(client: InboxClient, inbox: Inbox) -> None:
    resumed, paused = client.audit.list()
    assert (paused.action, paused.reason, paused.counts) == (
        "pause",
        "the CRM moves",
        {"paused": 1},
    )
    assert (paused.actor.name, paused.actor.on_behalf_of) == (CALLER, "ada")
    assert (resumed.action, resumed.at) == ("resume", inbox.now)
    now = inbox.now
    assert list(client.audit.list(action=AuditedAction.PAUSE)) == [paused]
    assert list(client.audit.list(by="ada")) == [paused]
    assert list(client.audit.list(event_id="evt-1")) == []
    assert list(client.audit.list(since=now)) == [resumed]
    assert list(client.audit.list(until=now)) == [paused]
    inbox.clock.advance(hours=25)
    assert list(client.audit.list()) == []
    assert list(client.audit.list(since=now - timedelta(days=3))) == [resumed, paused]


def test_a_list_that_reached_its_limit_is_full(client: InboxClient) -> None:
    newest = client.audit.list(limit=1)
    assert [each.action for each in newest] == ["resume"]
    assert newest.full
    every = client.audit.list(limit=3)
    assert (len(list(every)), every.full) == (2, False)


def test_a_list_that_left_out_rows_is_partial(
    client: InboxClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "ROWS", 1)
    reader = client.reading(timedelta(seconds=1))
    found = reader.audit.list()
    assert (len(list(found)), found.partial, reader.is_cut) == (1, True, True)
    whole = client.reading().audit.list()
    assert (len(list(whole)), whole.partial) == (2, False)
