"""`client.health`: the checks of an inbox and of an account, and what a client may change."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ClientError

from tests.webhookctl.commands.conftest import _alone, cli, inbox, served
from tests.webhookctl.commands.stage import MANIFEST, Cli, Inbox
from tests.webhookctl.commands.test_doctor import Account, account
from webhook_inbox.adapters.aws.reader import Unread
from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.errors import Refused
from webhook_inbox.client.health.doctor.checks import CHECKS
from webhook_inbox.client.health.preflight.checks import check_account
from webhook_inbox.client.health.result import Level
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.domain.errors import Permanent

__all__ = ["_alone", "account", "cli", "inbox", "served"]

DENIED: Any = {"Error": {"Code": "AccessDenied", "Message": "no"}}


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    """A client that may change the inbox."""
    return InboxClient(cli._connect(Selection()), write=True, clock=inbox.clock)


@pytest.mark.usefixtures("account")
def test_a_client_that_only_reads_examines_the_inbox_and_writes_nothing(
    client: InboxClient, inbox: Inbox
) -> None:
    found = list(client.reading().health.examine())
    assert len(found) >= len(CHECKS)
    assert {each.level for each in found} <= {Level.OK, Level.WARNING, Level.FAILURE}
    assert list(inbox.table) == []


def test_a_client_that_only_reads_starts_no_drift_detection_and_no_smoke_test(
    account: Account, client: InboxClient, inbox: Inbox
) -> None:
    reader = client.reading()
    with pytest.raises(Refused, match="only reads"):
        reader.health.examine(start_drift=True)
    with pytest.raises(Refused, match="only reads"):
        reader.health.smoke_test(by=reader.actor())
    assert "detect_stack_drift" not in account.calls
    assert list(inbox.table) == []


def test_resources_that_cannot_be_listed_end_the_examination(
    account: Account, client: InboxClient
) -> None:
    account.answers["list_stack_resources"] = ClientError(DENIED, "ListStackResources")
    with pytest.raises(Unread) as raised:
        client.health.examine()
    assert str(raised.value) == (
        "the stack's resources cannot be listed: request the right"
        " cloudformation:ListStackResources"
    )


@pytest.mark.usefixtures("account")
def test_the_deployed_code_is_compared_with_a_configuration(
    client: InboxClient, tmp_path: Path
) -> None:
    (tmp_path / "inbox.toml").write_text('[sources.new]\nprovider = "github"\n')
    configuration = inbox_toml.load(tmp_path / "inbox.toml", stage="test")
    found = {each.check: each for each in client.health.examine(configuration=configuration)}
    assert found["code"].level is Level.WARNING
    assert "source new" in found["code"].figure


def test_a_smoke_test_ends_with_its_first_failure_and_cleans_up(
    client: InboxClient, cli: Cli, inbox: Inbox, served: str
) -> None:
    assert served
    inbox.deploy(MANIFEST)
    unreachable = replace(client.target, api_url="http://127.0.0.1:1")
    test = InboxClient(unreachable, write=True, clock=inbox.clock).health.smoke_test(
        by=client.actor("ada")
    )
    [opened] = test
    assert (opened.check, opened.level) == ("open", Level.FAILURE)
    assert opened.figure.startswith("no answer: ")
    cleaned = test.clean_up()
    assert (cleaned.check, cleaned.level) == ("clean up", Level.OK)
    assert list(inbox.table) == []


def test_an_account_without_a_region_is_not_read(
    inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def synthesize() -> NoReturn:
        raise AssertionError

    monkeypatch.delenv("AWS_DEFAULT_REGION")
    [found] = check_account(
        Selection(stack="any"), project=tmp_path, synthesize=synthesize, clock=inbox.clock
    )
    assert (found.check, found.level) == ("region", Level.FAILURE)


def test_dead_runs_are_counted_and_a_spent_budget_is_no_count(
    client: InboxClient, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox.fails("acme.fulfil", Permanent("422 no such order"))
    inbox.deliver("evt-1")
    inbox.work()
    found = client.reading().dead_letters.count_runs()
    assert (found.runs, found.is_complete) == (1, True)

    monkeypatch.setattr("webhook_inbox.client.budget.LATEST", -1.0)
    found = client.reading(timedelta(seconds=-1)).dead_letters.count_runs()
    assert (found.runs, found.is_complete) == (0, False)
