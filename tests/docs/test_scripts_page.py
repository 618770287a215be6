"""The scripts of docs/scripts.md do what the page says, on an inbox in memory."""

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.docs.blocks import blocks
from tests.webhookctl.commands.conftest import _alone, cli, inbox
from tests.webhookctl.commands.stage import Cli, Inbox, documents
from webhook_inbox.client import InboxClient, OperationError
from webhook_inbox.client.connection import Selection
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.secret_document import SOURCES
from webhook_inbox.testing.operations import WorkingClock

__all__ = ["_alone", "cli", "inbox"]
PAGE = Path(__file__).parents[2] / "docs" / "scripts.md"
# Sent with a secret that the inbox gets afterwards.
LATER = "the-secret-that-is-right"


@pytest.fixture
def scripts() -> ModuleType:
    """The functions of the page, as one module; the blocks that connect to AWS are left out."""
    module: Any = ModuleType("scripts")
    for block in blocks(PAGE):
        if block.language == "python" and "with InboxClient.connect" not in block.text:
            exec(compile(block.text, f"{PAGE.name}:{block.line}", "exec"), vars(module))
    return module


@pytest.fixture
def client(cli: Cli, inbox: Inbox) -> InboxClient:
    def pass_time(span: Any) -> None:
        inbox.clock.advance(seconds=span.total_seconds())
        inbox.work()

    clock = WorkingClock(inbox.clock, pass_time)
    return InboxClient(cli._connect(Selection()), write=True, clock=clock)


def die(inbox: Inbox, number: int, error: BaseException) -> None:
    inbox.fails("acme.fulfil", error)
    for each in range(number):
        inbox.deliver(f"evt-{error}-{each}")
    inbox.work()


def test_the_report_has_the_dead_runs_by_cause(
    client: InboxClient, inbox: Inbox, scripts: ModuleType
) -> None:
    assert scripts.dead_letter_report(client) == ""
    die(inbox, 2, Permanent("no such customer"))
    die(inbox, 1, Permanent("the order is closed"))
    die(inbox, 1, Transient("503"))
    first, replay, second, _ = scripts.dead_letter_report(client).splitlines()
    assert first == "2 dead: acme.fulfil: Permanent: no such customer"
    assert second == "1 dead: acme.fulfil: Permanent: the order is closed"
    assert replay.startswith("  webhookctl replay --handler acme.fulfil --error-group ")


def test_all_runs_are_sent_behind_a_canary_that_succeeds(
    client: InboxClient, inbox: Inbox, scripts: ModuleType
) -> None:
    die(inbox, 12, Permanent("the ERP refuses it"))
    inbox.script("acme.fulfil", *[None] * 12)
    assert scripts.replay_after_fix(client, "acme.fulfil", "INC-42") == 12
    inbox.work()
    assert {run.status for run in runs(inbox)} == {Status.DONE}
    [rest, canary] = client.audit.list()
    assert (rest.actor.on_behalf_of, rest.reason) == ("the script replay_after_fix", "INC-42")
    assert canary.counts == {"replayed": 5}


def test_a_canary_that_fails_keeps_the_rest_dead(
    client: InboxClient, inbox: Inbox, scripts: ModuleType
) -> None:
    die(inbox, 12, Permanent("the ERP refuses it"))
    with pytest.raises(OperationError, match="5 of the first 5 failed again"):
        scripts.replay_after_fix(client, "acme.fulfil", "INC-42")
    assert sorted(run.generation for run in runs(inbox)) == [0] * 7 + [1] * 5


def runs(inbox: Inbox) -> list[Any]:
    every = [run for each in inbox.statuses() for run in inbox.overview(each).runs]
    return [run for run in every if run.handler == "acme.fulfil"]


def test_what_is_valid_now_is_released_once(
    client: InboxClient, inbox: Inbox, scripts: ModuleType
) -> None:
    inbox.deliver("evt-right", secret=LATER)
    inbox.deliver("evt-forged", secret="of-a-stranger")
    documents().set(SOURCES, "acme", LATER)
    inbox.clock.advance(minutes=2)
    assert scripts.release_valid(client, "acme", "INC-43") == {"accepted": 1, "invalid": 1}
    assert list(inbox.statuses()) == ["evt-right"]
    assert "accepted" not in scripts.release_valid(client, "acme", "INC-43")
    assert list(inbox.statuses()) == ["evt-right"]


def test_the_page_tests_its_script(scripts: ModuleType) -> None:
    scripts.test_a_replay_sends_all_dead_runs()


def test_every_operation_of_the_page_exists(client: InboxClient) -> None:
    table = PAGE.read_text(encoding="utf-8").partition("| group |")[2].partition("\n\n")[0]
    for row in table.splitlines()[2:]:
        cells = row.split("|")[1:3]
        groups = re.findall(r"`inbox\.(\w+)`", cells[0])
        operations = [name for name in re.findall(r"`(\w+)`", cells[1]) if name != "doctor"]
        for group in groups:
            found = getattr(client, group)
            assert all(hasattr(found, name) for name in operations), (group, row)


def test_every_group_of_the_client_is_in_the_page() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("| group |")[2].partition("\n\n")[0]
    groups = {
        name
        for name, value in vars(InboxClient).items()
        if type(value).__name__ == "cached_property"
    }
    named = set(re.findall(r"`inbox\.(\w+)`", table))
    assert {name for name in groups if name[0] != "_"} == named
