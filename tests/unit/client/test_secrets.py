"""`client.secrets`: audited before it is stored, refused by a client that only reads."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.webhookctl.commands.conftest import _alone, cli, inbox
from tests.webhookctl.commands.stage import MANIFEST, PREFIX, Cli, Inbox, documents
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.errors import NotFound, Refused, WrongArgument
from webhook_inbox.client.secret_documents import SecretChange
from webhook_inbox.client.secrets import PlannedSecrets
from webhook_inbox.client.target import NoStack
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.secret_document import HANDLERS, READERS, SOURCES

__all__ = ["_alone", "cli", "inbox"]

ASANA = SourceSpec("asana", "asana", "asana-key")
DECLARED = replace(MANIFEST, sources={"asana": ASANA}, secrets=("openai",))
HOUR = timedelta(hours=1)
Change = Callable[[InboxClient], Any]
CHANGES: dict[str, Change] = {
    "set": lambda c: c.secrets.set("acme", "a-new-value", by=c.actor()),
    "rotate": lambda c: c.secrets.rotate("acme", "a-new-value", overlap=HOUR, by=c.actor()),
    "revoke": lambda c: c.secrets.revoke("acme", by=c.actor()),
    "enrol": lambda c: c.secrets.enrol("asana", by=c.actor()),
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client that may change an inbox whose secret has two values."""
    cli.manifest = replace(MANIFEST, sources={**MANIFEST.sources, "asana": ASANA})
    cli.urls["asana"] = "https://inbox.example/webhooks/asana"
    for value in ("the-first-value", "the-second-value"):
        documents().set(SOURCES, "acme", value)
    return InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)


@each_change
def test_a_client_that_only_reads_changes_and_records_nothing(
    client: InboxClient, inbox: Inbox, change: Change
) -> None:
    with pytest.raises(Refused, match="only reads"):
        change(client.reading())
    assert list(inbox.table) == []
    assert documents().read(SOURCES) == {"acme": ("the-second-value", "the-first-value")}


@each_change
def test_without_its_audit_row_nothing_is_changed(
    client: InboxClient, inbox: Inbox, change: Change
) -> None:
    inbox.plan.fail("PutItem")
    with pytest.raises(Unavailable):
        change(client)
    assert list(inbox.table) == []
    assert documents().read(SOURCES) == {"acme": ("the-second-value", "the-first-value")}


def test_each_change_says_what_it_did(client: InboxClient, inbox: Inbox) -> None:
    rotated = CHANGES["rotate"](client)
    assert (rotated.change, rotated.previous_until) == (SecretChange.REPLACED, inbox.now + HOUR)
    [status] = client.secrets.status("acme")
    assert (status.values, status.replaced_at) == (2, inbox.now)
    assert (status.previous_until, status.metric_known) == (inbox.now + HOUR, True)
    assert not client.reading().secrets.plan_revocation("acme").revoked
    assert CHANGES["revoke"](client).revoked
    assert CHANGES["set"](client).change is SecretChange.UNCHANGED
    opened = CHANGES["enrol"](client)
    assert opened.open_until == inbox.now + timedelta(minutes=15)
    assert opened.opened_by == client.actor().name
    assert {each.action: each.counts for each in client.audit.list()} == {
        "enrol secret": {"opened": 1},
        "set secret": {"unchanged": 1},
        "revoke secret": {"revoked": 1},
        "rotate secret": {"replaced": 1},
    }


def test_wrong_arguments_and_states_are_told_apart(client: InboxClient, cli: Cli) -> None:
    secrets, by = client.secrets, client.actor()
    with pytest.raises(WrongArgument, match='did you mean "acme"'):
        secrets.set("acne", "a-new-value", by=by)
    with pytest.raises(WrongArgument, match="at most 30 days"):
        secrets.rotate("acme", "a-new-value", overlap=timedelta(days=31), by=by)
    with pytest.raises(WrongArgument, match="at most 1 hour"):
        secrets.enrol("asana", span=timedelta(hours=2), by=by)
    with pytest.raises(WrongArgument, match="no secret acne"):
        secrets.status("acne")
    with pytest.raises(Refused, match="no previous value"):
        secrets.plan_revocation("github")
    with pytest.raises(Refused, match="delivers no secret"):
        secrets.enrol("github", by=by)
    cli.manifest = None
    with pytest.raises(Refused, match="unknown whether"):
        secrets.document_of("acme")


def test_a_declared_secret_is_known_before_it_is_deployed(client: InboxClient) -> None:
    set_ = client.secrets.set("openai", "a-new-value", declared=DECLARED, by=client.actor())
    assert (set_.document, set_.seen_within_seconds) == (PREFIX + HANDLERS, 60)
    listed = {each.name: each for each in client.secrets.list()}
    assert (listed["openai"].values, listed["openai"].used_by) == (1, ())
    assert [each.name for each in listed.values() if each.is_missing] == [
        "github",
        "stripe",
        "asana-key",
    ]


def test_a_stack_that_is_not_deployed_has_secrets_only(cli: Cli) -> None:
    cli.deployed = False
    with pytest.raises(NoStack) as error:
        cli._connect(Selection())
    planned = PlannedSecrets(error.value)
    changed = planned.set("asana-key", "a-new-value", declared=DECLARED)
    assert (changed.change, changed.seen_within_seconds) == (SecretChange.CREATED, None)
    assert [(each.name, each.values) for each in planned.list(declared=DECLARED)] == [
        ("asana-key", 1),
        ("openai", 0),
    ]
    with pytest.raises(NotFound, match="there is no stack"):
        planned.set("asana-key", "a-new-value", declared=Manifest())
    assert {reader: len(documents().read(reader)) for reader in READERS} == {
        "sources": 1,
        "handlers": 0,
        "tools": 0,
    }
