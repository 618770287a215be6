"""`client.alarms`: the alarms of one stack, and a test that is audited before it is sent."""

import pytest

from tests.webhookctl.commands.conftest import _alone, cli, inbox
from tests.webhookctl.commands.stage import CALLER, Cli, Inbox
from tests.webhookctl.commands.test_alarms import BURST, ERRORS, Topics, alarms, changes, topics
from webhook_inbox.client.alarms import _TEXT
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.errors import Refused
from webhook_inbox.domain.errors import Unavailable

__all__ = ["_alone", "alarms", "cli", "inbox", "topics"]


@pytest.fixture
def client(cli: Cli, inbox: Inbox, alarms: Topics) -> InboxClient:
    """A client that may test the alarms of a stack."""
    return InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)


def sent() -> bool:
    return [*changes(ERRORS), *changes(BURST)] != ["5 died"] * 2


def test_a_plan_sends_nothing_and_a_test_is_recorded(
    client: InboxClient, alarms: Topics, inbox: Inbox
) -> None:
    alarms.pending = {"team@a.example"}
    errors, burst = client.reading().alarms.plan_test()
    assert (errors.alarm, errors.severity, errors.confirmed) == ("ApiErrors", "notify", ())
    assert (errors.pending, errors.sent) == (("team@a.example",), False)
    assert (burst.alarm, burst.confirmed) == ("DeadLetterBurst", ("https://pager.example/x",))
    assert not sent()
    assert [each.sent for each in client.alarms.test(by=client.actor("ana"))] == [True, True]
    assert changes(BURST)[0].startswith(f"A test by {CALLER} for ana")
    [entry] = client.audit.list()
    assert (entry.action, entry.counts) == ("test alarms", {"tested": 2})
    assert entry.request == {"notify": ERRORS, "page": BURST}


def test_a_client_that_only_reads_sends_and_records_nothing(
    client: InboxClient, inbox: Inbox
) -> None:
    reader = client.reading()
    with pytest.raises(Refused, match="only reads"):
        reader.alarms.test(by=reader.actor())
    assert not sent()
    assert list(inbox.table) == []


def test_without_its_audit_row_nothing_is_sent(client: InboxClient, inbox: Inbox) -> None:
    inbox.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        client.alarms.test(by=client.actor())
    assert not sent()


def test_an_inbox_on_this_machine_has_none(cli: Cli) -> None:
    cli.local = True
    with pytest.raises(Refused, match="has no alarms"):
        list(InboxClient(cli._connect(Selection())).alarms.list())


def test_the_texts_are_read_as_the_stack_writes_them() -> None:
    from webhook_inbox_cdk.alarm_declaration import Severity, describe  # noqa: PLC0415 - loads jsii

    text = describe(
        "It failed.", first="alarms list", severity=Severity.PAGE, page="runs-given-up", stack="S"
    )
    found = _TEXT.search(text)
    assert found is not None
    assert found.groupdict() == {
        "first": "webhookctl --stack S alarms list",
        "severity": "page",
        "page": "webhookctl --stack S runbook runs-given-up",
    }
