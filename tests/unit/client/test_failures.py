"""`client.failures` and `client.dead_letters`: what failed, by cause, as far as a budget reads."""

from datetime import timedelta

import pytest

from tests.webhookctl.commands.conftest import _alone, cli, inbox
from tests.webhookctl.commands.stage import Cli, Inbox
from webhook_inbox.client import budget
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.search import EventQuery
from webhook_inbox.domain.errors import Permanent, Unavailable
from webhook_inbox.domain.model import EventStatus

__all__ = ["_alone", "cli", "inbox"]


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client of an inbox in which three runs died of two causes."""
    errors = [Permanent("no address of ord_1"), Permanent("no address of ord_2"), KeyError("id")]
    inbox.script("acme.notify", *errors)
    for number, _ in enumerate(errors):
        inbox.deliver(f"evt-{number}", type_="refunded")
        inbox.work()
        inbox.clock.advance(seconds=1)
    return InboxClient(cli._connect(Selection()), clock=inbox.clock)


def test_a_summary_has_the_largest_groups_and_counts_the_others(client: InboxClient) -> None:
    summary = client.failures.summarize(limit=1)
    [group] = summary.groups
    assert (group.count, group.dead, group.message) == (2, 2, "no address of <id>")
    assert (summary.runs, summary.group_count, summary.partial) == (3, 2, False)
    assert group.example.event_id == "evt-1"
    assert group.replay is not None
    assert group.group in group.replay


def test_filters_and_wrong_ones(client: InboxClient) -> None:
    dead = EventQuery(status=EventStatus.DEAD_LETTER, handler="acme.notify")
    assert client.failures.summarize(dead).runs == 2
    assert client.failures.summarize(EventQuery(tenant="other")).runs == 0
    for wrong in (EventQuery(status=EventStatus.DONE), EventQuery(source="acne")):
        with pytest.raises(WrongArgument):
            client.failures.summarize(wrong)


def test_a_spent_budget_makes_it_partial(
    client: InboxClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "LATEST", -1.0)
    summary = client.reading(timedelta(seconds=-1)).failures.summarize()
    assert (summary.runs, summary.partial) == (0, True)


def test_queues_that_cannot_be_read_are_unavailable(client: InboxClient) -> None:
    with pytest.raises(Unavailable, match="the dead-letter queues cannot be read: "):
        client.dead_letters.summarize()
