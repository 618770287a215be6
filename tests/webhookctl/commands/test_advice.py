"""Suggested commands: they work when they are pasted."""

import sys
from pathlib import Path

import pytest

from tests.webhookctl.commands.stage import Cli, Inbox
from webhook_inbox.domain.errors import Permanent
from webhookctl.display.suggestions import pasteable, program
from webhookctl.target import Selection

REPLAY = "To run it: webhookctl replay --source acme --yes (see `webhookctl inbox list`)"


def test_every_command_of_a_text_gets_the_program_and_the_target() -> None:
    assert pasteable(REPLAY, called=".venv/bin/webhookctl", selection=Selection(local=True)) == (
        "To run it: .venv/bin/webhookctl --local replay --source acme --yes"
        " (see `.venv/bin/webhookctl --local inbox list`)"
    )


def test_a_stack_is_named_with_what_leads_to_it() -> None:
    selection = Selection(stack="My Inbox", profile="prod", region="eu-west-1")
    assert pasteable("webhookctl inbox list", called="webhookctl", selection=selection) == (
        "webhookctl --stack 'My Inbox' --profile prod --region eu-west-1 inbox list"
    )


def test_without_a_selection_a_text_stays_as_it_is() -> None:
    assert pasteable(REPLAY, called="webhookctl", selection=Selection()) == REPLAY


@pytest.mark.parametrize("command", ["complete", "skip evt-1", "sources reconcile"])
def test_what_ends_a_run_by_hand_can_be_pasted_too(command: str) -> None:
    told = pasteable(f"webhookctl {command}", called="webhookctl", selection=Selection(local=True))
    assert told == f"webhookctl --local {command}"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in an environment of the working directory, which is not on the PATH."""
    file = tmp_path / ".venv" / "bin" / "webhookctl"
    file.parent.mkdir(parents=True)
    file.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    return file


@pytest.mark.parametrize("absolute", [True, False])
def test_a_program_of_this_directory_is_called_from_here(installed: Path, absolute: bool) -> None:
    called = str(installed) if absolute else ".venv/bin/webhookctl"
    assert program(called) == ".venv/bin/webhookctl"


def test_a_program_elsewhere_keeps_its_path(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert program(str(installed)) == str(installed)


def test_one_on_the_path_is_called_by_its_name(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(installed.parent))
    assert program(str(installed)) == "webhookctl"


def test_a_module_is_called_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/webhookctl/__main__.py"])
    assert program() == "python -m webhookctl"


def test_inspect_tells_the_command_for_this_target_and_json_tells_it_plain(
    cli: Cli, inbox: Inbox
) -> None:
    inbox.fails("acme.notify", Permanent("422: no such order"))
    inbox.deliver("evt-1", type_="refunded")
    inbox.work()
    cli.program = ".venv/bin/webhookctl"
    shown = cli("--stack", "Orders", "inbox", "inspect", "evt-1")
    assert ".venv/bin/webhookctl --stack Orders replay --source acme --event-id evt-1" in shown.out
    data = cli("--stack", "Orders", "inbox", "inspect", "evt-1", "--json").data
    assert " webhookctl replay --source acme --event-id evt-1" in data["next_action"]


def test_replay_points_at_the_same_target(cli: Cli) -> None:
    shown = cli("replay", "--local", "--yes")
    assert "see `webhookctl --local inbox list --status dead_letter`" in shown.err
