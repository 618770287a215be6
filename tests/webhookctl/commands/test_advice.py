"""Suggested commands: they work when they are pasted, and run nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.webhookctl.commands.stage import Cli, Inbox
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.suggestions import PLAIN, Program
from webhook_inbox.domain.errors import Held, Permanent
from webhookctl.display.untrusted import printable


def test_a_command_begins_with_the_program_and_the_target() -> None:
    program = Program((".venv/bin/webhookctl",)).on(Selection(local=True))
    assert program.command("replay", "--source", "acme", "--yes") == (
        ".venv/bin/webhookctl --local replay --source acme --yes"
    )


def test_a_stack_is_named_with_what_leads_to_it() -> None:
    program = Program().on(Selection(stack="My Inbox", profile="prod", region="eu-west-1"))
    assert program.command("inbox list") == (
        "webhookctl --stack 'My Inbox' --profile prod --region eu-west-1 inbox list"
    )


def test_an_argument_is_never_an_option() -> None:
    assert PLAIN.command("inbox inspect", "--source", "acme", argument="evt-1") == (
        "webhookctl inbox inspect evt-1 --source acme"
    )
    assert PLAIN.command("inbox inspect", "--source", "acme", argument="--stack=x") == (
        "webhookctl inbox inspect --source acme -- --stack=x"
    )


INJECTIONS = (
    "\u200b webhookctl replay ' ; touch owned ; #",
    "\x1b webhookctl skip '; touch owned; '",
    "webhookctl inbox list $(touch owned)",
    "' webhookctl --local hold list `touch owned` \"",
)
PROGRAMS = (
    Program().on(Selection(profile="my prof", stack="it's")),
    Program(("/home/u/My Projects/.venv/bin/webhookctl",)).on(Selection(local=True)),
    Program(("python", "-m", "webhookctl")),
)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("text", INJECTIONS)
def test_a_shell_reads_a_suggested_command_as_its_parts(
    program: Program, text: str, tmp_path: Path
) -> None:
    shown = program.command("hold approve", "--source", text, argument=text)
    assert printable(shown) == shown
    assert read_by_bash(shown, tmp_path) == [
        *program.words,
        *("hold", "approve", text, "--source", text),
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("program", [".venv/bin/webhookctl", "/home/u/My Projects/webhookctl"])
def test_a_hint_with_an_events_id_runs_nothing_else(
    cli: Cli, inbox: Inbox, tmp_path: Path, program: str
) -> None:
    inbox.script("acme.notify", Held("webhookctl skip ' ; touch owned ; #"))
    inbox.deliver(INJECTIONS[0], type_="refunded")
    inbox.work()
    cli.program = Program((program,))
    shown = cli("--profile", "my prof", "inbox", "inspect", INJECTIONS[0]).out
    lines = [line.strip() for line in shown.splitlines()]
    (tmp_path / "empty").mkdir()
    for verb in ("approve", "deny"):
        hint = lines[lines.index(f"To {verb}:") + 1]
        words = read_by_bash(hint, tmp_path / "empty")
        assert words[:5] == [program, "--profile", "my prof", "hold", verb]
        assert words[5] == INJECTIONS[0]
    assert list((tmp_path / "empty").iterdir()) == []


def read_by_bash(command: str, directory: Path) -> list[str]:
    """Returns the words that bash reads."""
    read = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"],
        cwd=directory,
        env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
    )
    return read.stdout.decode().split("\0")[:-1]


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
    assert Program.running(called).words == (".venv/bin/webhookctl",)


def test_a_program_elsewhere_keeps_its_path(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert Program.running(str(installed)).words == (str(installed),)


def test_one_on_the_path_is_called_by_its_name(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(installed.parent))
    assert Program.running(str(installed)) == PLAIN


def test_a_module_is_called_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/webhookctl/__main__.py"])
    assert Program.running().words == ("python", "-m", "webhookctl")


def test_inspect_tells_the_command_for_this_target(cli: Cli, inbox: Inbox) -> None:
    inbox.fails("acme.notify", Permanent("422: no such order"))
    inbox.deliver("evt-1", type_="refunded")
    inbox.work()
    cli.program = Program((".venv/bin/webhookctl",))
    shown = cli("--stack", "Orders", "inbox", "inspect", "evt-1")
    replay = ".venv/bin/webhookctl --stack Orders replay evt-1 --source acme"
    assert replay in shown.out
    data = cli("--stack", "Orders", "inbox", "inspect", "evt-1", "--json").data
    assert replay in data["next_action"]


def test_replay_points_at_the_same_target(cli: Cli) -> None:
    shown = cli("replay", "--local", "--source", "acme", "--yes")
    assert "see `webhookctl --local inbox list --status dead_letter`" in shown.err
