"""`client.sources`: the state of each source, and an audited request to redeliver."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.webhookctl.commands.conftest import _alone, cli, inbox, served
from tests.webhookctl.commands.provider_apis import TOKEN, GitHub, answering
from tests.webhookctl.commands.stage import CALLER, Cli, Inbox, documents
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.errors import Refused, WrongArgument
from webhook_inbox.client.sources import ProviderHook
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.secret_document import TOOLS

__all__ = ["_alone", "cli", "inbox", "served"]


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client that may change the inbox."""
    documents().set(TOOLS, "github-api", TOKEN)
    return InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)


@pytest.fixture
def hub(inbox: Inbox, served: str) -> GitHub:
    """GitHub, which has sent one event that arrived, and two that did not."""
    made = GitHub(inbox, served)
    made.deliver("g-1")
    made.deliver("g-2", lost=True)
    made.deliver("g-3", lost=True)
    inbox.clock.advance(minutes=10)
    return made


@pytest.fixture
def hook(hub: GitHub) -> Iterator[ProviderHook]:
    with answering(hub) as address:
        yield ProviderHook("github", "octo/app/7", api=address)


def test_the_state_of_each_source(client: InboxClient, inbox: Inbox) -> None:
    inbox.deliver("evt-1")
    states = {each.source: each for each in client.sources.list()}
    assert list(states) == ["acme", "github", "stripe"]
    acme, github = states["acme"], states["github"]
    assert acme.last is not None
    assert (acme.last.event_id, acme.verified_with, acme.url) == (
        "evt-1",
        0,
        "https://inbox.example/webhooks/acme",
    )
    assert (github.last, github.verified_with) == (None, None)
    assert (acme.events_searched, acme.search_is_complete) == (1, True)


def test_the_search_for_the_last_events_may_be_partial(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox.deliver("evt-1")
    inbox.deliver("evt-2")
    monkeypatch.setattr("webhook_inbox.client.sources.EVENTS", 1)
    states = list(client.sources.list())
    assert {(each.events_searched, each.search_is_complete) for each in states} == {(1, False)}


def test_the_first_delivery_is_an_event_before_anything_else(
    client: InboxClient, inbox: Inbox
) -> None:
    since = inbox.now
    assert client.sources.first_delivery("acme", since).event is None
    inbox.deliver("forged", secret="of-a-stranger")
    found = client.sources.first_delivery("acme", since)
    assert found.rejected is not None
    assert (found.event, found.rejected.source) == (None, "acme")
    inbox.deliver("evt-1")
    found = client.sources.first_delivery("acme", since)
    assert found.event is not None
    assert (found.event.event_id, found.rejected) == ("evt-1", None)


def test_missing_events_are_requested_again_and_audited(
    client: InboxClient, inbox: Inbox, hook: ProviderHook, hub: GitHub
) -> None:
    window = {"since": inbox.now - timedelta(hours=1), "until": inbox.now}
    found = client.reading().sources.reconcile(hook, **window)
    assert (found.looked_at, found.unwanted) == (3, 0)
    assert [each.logged.event_id for each in found.missing] == ["g-2", "g-3"]
    with pytest.raises(Refused, match="only reads"):
        client.reading().sources.redeliver(found, by=client.actor())
    inbox.plan.fail("PutItem")
    with pytest.raises(Unavailable, match="0 were requested so far"):
        client.sources.redeliver(found, by=client.actor()).complete()
    assert (hub.times("POST"), list(inbox.rows("audit#"))) == (0, [])
    operation = client.sources.redeliver(found, reason="lost", by=client.actor("kim"))
    assert [each.redelivery for each in operation] == ["asked", "asked"]
    [row] = inbox.rows("audit#")
    assert (row["action"], row["by"], row["counts"]) == ("redeliver", CALLER, {"asked": 2})
    assert client.sources.reconcile(hook, **window).missing == ()


def test_what_a_stopped_operation_left_is_returned_as_not_asked(
    client: InboxClient, inbox: Inbox, hook: ProviderHook, hub: GitHub
) -> None:
    since = inbox.now - timedelta(hours=1)
    found = client.sources.reconcile(hook, since=since, until=inbox.now)
    operation = client.sources.redeliver(found, by=client.actor())
    assert next(operation).redelivery == "asked"
    operation.stop()
    assert [each.redelivery for each in operation] == ["not asked"]
    assert dict(operation.counts) == {"asked": 1, "not asked": 1}
    assert hub.times("POST") == 1


def test_the_kinds_of_errors(client: InboxClient, inbox: Inbox) -> None:
    window = {"since": inbox.now - timedelta(hours=1), "until": inbox.now}
    with pytest.raises(WrongArgument, match="no source odd"):
        client.sources.reconcile(ProviderHook("odd", "octo/app/7"), **window)
    with pytest.raises(Refused, match="has no delivery log"):
        client.sources.reconcile(ProviderHook("acme", "octo/app/7"), **window)
    with pytest.raises(Refused, match="is no webhook of github"):
        client.sources.reconcile(ProviderHook("github", "7"), **window)
    with pytest.raises(Refused, match="the API token is not set"):
        client.sources.reconcile(ProviderHook("github", "octo/app/7", token="other"), **window)
