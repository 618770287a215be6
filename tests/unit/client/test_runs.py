"""`client.runs`: a change is refused for a reading client, and audited before it happens."""

import pytest

from tests.unit.handlers.completions.job_stage import Labour
from tests.webhookctl.commands.conftest import _alone, cli, inbox
from tests.webhookctl.commands.stage import CALLER, Cli, Inbox
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.errors import NotFound, Refused, WrongArgument
from webhook_inbox.client.runs import JobResult
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Status

__all__ = ["_alone", "cli", "inbox"]


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client that may change the inbox."""
    return InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)


def audited(inbox: Inbox) -> list[str]:
    return [row["action"] for row in inbox.rows("audit#")]


def test_a_reading_client_changes_nothing(client: InboxClient, inbox: Inbox) -> None:
    inbox.dead()
    reader, by = client.reading(), client.actor()
    with pytest.raises(Refused, match="only reads"):
        reader.runs.skip("evt-1", reason="obsolete", by=by)
    with pytest.raises(Refused, match="only reads"):
        reader.runs.complete("evt-1", JobResult(7), by=by)
    with pytest.raises(Refused, match="only reads"):
        reader.runs.complete_by_token("a-token", JobResult(7))
    assert (inbox.run().status, audited(inbox)) == (Status.DEAD_LETTER, [])


def test_a_skip_is_audited_before_the_run_is_closed(client: InboxClient, inbox: Inbox) -> None:
    inbox.dead()
    inbox.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        client.runs.skip("evt-1", reason="obsolete", by=client.actor())
    assert inbox.run().status is Status.DEAD_LETTER
    run = client.runs.skip("evt-1", reason="obsolete", by=client.actor("kim"))
    assert (run.handler, run.status, run.continues) == ("acme.fulfil", Status.SKIPPED, "")
    rows = list(inbox.rows("audit#"))
    assert [(row["by"], row["on_behalf_of"]) for row in rows] == [(CALLER, "kim")]
    with pytest.raises(Refused, match="nothing to skip"):
        client.runs.skip("evt-1", reason="obsolete", by=client.actor())


def test_a_completion_is_audited_before_it_is_recorded(client: InboxClient, inbox: Inbox) -> None:
    labour = Labour(inbox)
    labour.begin()
    inbox.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        client.runs.complete("evt-1", JobResult(7), by=client.actor())
    assert inbox.run().status is Status.DEFERRED
    job = client.runs.complete("evt-1", JobResult(7), by=client.actor())
    assert (job.effect, job.outcome) == ("render", "recorded")
    with pytest.raises(Refused, match="with a different end"):
        client.runs.complete("evt-1", JobResult(8), by=client.actor())
    assert client.runs.complete_by_token(labour.token, JobResult(7)).outcome == "repeated"


def test_the_kinds_of_errors(client: InboxClient, inbox: Inbox) -> None:
    by = client.actor()
    with pytest.raises(NotFound):
        client.runs.skip("evt-9", reason="obsolete", by=by)
    with pytest.raises(NotFound):
        client.runs.complete("evt-9", JobResult(7), by=by)
    with pytest.raises(WrongArgument, match="no handler"):
        client.runs.skip("evt-9", handler="acme.x", reason="obsolete", by=by)
    labour = Labour(inbox)
    labour.begin()
    with pytest.raises(WrongArgument, match="is a completion token"):
        client.runs.complete(labour.token, JobResult(7), by=by)
