"""`client.destinations`: states, and circuits that a person opens and closes."""

from dataclasses import replace

import pytest

from tests.unit.support.world import handler
from tests.webhookctl.commands.conftest import _alone, cli, inbox
from tests.webhookctl.commands.stage import CALLER, MANIFEST, Cli, Inbox
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.destinations import DestinationStatus, ManualOpening
from webhook_inbox.client.errors import Refused, WrongArgument
from webhook_inbox.destinations.circuit import Phase
from webhook_inbox.domain.errors import AccessDenied, Unavailable
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec

__all__ = ["_alone", "cli", "inbox"]

CRM = DestinationSpec("crm", "https://crm.example", rate=2.0, breaker=BreakerSpec(failures=3))
CALLING = replace(
    MANIFEST,
    handlers={"acme.fulfil": handler("acme.fulfil", "paid", destinations=("crm",))},
    destinations={"crm": CRM},
)


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client that may change an inbox with a destination."""
    inbox.deploy(CALLING)
    cli.manifest = CALLING
    return InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)


def crm(client: InboxClient) -> DestinationStatus:
    [found] = client.destinations.list()
    return found


def test_an_opened_circuit_has_its_person_and_the_oldest_run_that_waits(
    client: InboxClient, inbox: Inbox
) -> None:
    opened = client.destinations.open("crm", reason="maintenance", by=client.actor("kim"))
    assert (opened.destination, opened.opened_by_hand) == ("crm", True)
    at = inbox.now
    inbox.deliver("evt-1")
    inbox.work_once()
    found = crm(client)
    assert (found.circuit, found.next_probe, found.rate) == (Phase.OPEN, None, "2/s")
    assert found.opened_by_hand == ManualOpening(at, f"{CALLER} for kim", "maintenance")
    assert (found.waiting, found.waiting_is_complete) == (1, True)
    assert found.oldest is not None
    assert (found.oldest.event_id, found.oldest.handler) == ("evt-1", "acme.fulfil")
    assert found.oldest.received_at <= inbox.now
    assert not client.destinations.close("crm", by=client.actor()).opened_by_hand
    assert crm(client).circuit is Phase.CLOSED


def test_a_change_that_the_state_forbids_is_refused(client: InboxClient, inbox: Inbox) -> None:
    by = client.actor()
    with pytest.raises(Refused, match="is not open"):
        client.destinations.close("crm", by=by)
    client.destinations.open("crm", reason="r", by=by)
    inbox.clock.advance(seconds=1)
    with pytest.raises(Refused, match="already open by hand since"):
        client.destinations.open("crm", reason="r", by=by)
    with pytest.raises(WrongArgument, match='did you mean "crm"'):
        client.destinations.open("crn", reason="r", by=by)


def test_a_client_that_only_reads_changes_and_records_nothing(
    client: InboxClient, inbox: Inbox
) -> None:
    reader = client.reading()
    with pytest.raises(Refused, match="only reads"):
        reader.destinations.open("crm", reason="r", by=reader.actor())
    with pytest.raises(Refused, match="only reads"):
        reader.destinations.close("crm", by=reader.actor())
    assert list(inbox.table) == []
    assert crm(reader).circuit is Phase.CLOSED


def test_without_its_audit_row_no_circuit_is_changed(client: InboxClient, inbox: Inbox) -> None:
    inbox.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        client.destinations.open("crm", reason="r", by=client.actor())
    assert crm(client).opened_by_hand is None


def test_without_the_manifest_the_list_is_an_error_and_not_empty(
    client: InboxClient, cli: Cli
) -> None:
    cli.manifest = None
    with pytest.raises(AccessDenied):
        list(client.destinations.list())
