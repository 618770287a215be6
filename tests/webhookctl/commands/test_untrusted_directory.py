"""A command in a directory that the user does not trust runs none of its code."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.webhookctl.commands.stage import Cli, Inbox
from webhookctl.app import app

# Their purpose is the checkout's handlers; `dev` is replaced in tests.
IMPORTING = {"check", "dev", "rejected release"}
WHY = ("--reason", "why")
COMMANDS: dict[str, tuple[str, ...]] = {
    "complete": ("--event-id", "evt-1", "--result", "1"),
    "conformance": ("body.json",),
    "handlers list": (),
    "handlers pause": ("acme.notify", *WHY),
    "handlers resume": ("acme.notify",),
    "hold approve": ("evt-1", *WHY),
    "hold deny": ("evt-1", *WHY),
    "hold list": ("--handler", "no.such"),
    "inbox inspect": ("evt-1", "--body"),
    "inbox list": ("--handler", "no.such"),
    "init": ("demo",),
    "rejected list": (),
    "rejected reverify": (),
    "rejected show": ("1-1",),
    "replay": ("--handler", "no.such"),
    "secrets enrol": ("acme",),
    "secrets set": ("acme",),
    "send": ("body.json", "--source", "acme", "--secret", "only a test"),
    "skip": ("evt-1", *WHY),
    "sources reconcile": ("github", "--hook", "octo/app/7"),
    "verify": (
        *("--source", "acme", "--headers", "headers.txt", "--body", "body.json"),
        *("--secret-env", "SECRET"),
    ),
}


def _leaves(group: Any, prefix: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _leaves(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}"


@pytest.fixture
def mark(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that the directory's handlers write when they are imported."""
    written = checkout.parent / "imported"
    text = f"import json, os\njson.dump(dict(os.environ), open({str(written)!r}, 'w'))\n"
    orders = checkout / "handlers" / "orders.py"
    orders.write_text(text + orders.read_text())
    (checkout.parent / "headers.txt").write_text("X-Acme-Id: evt-1\n")
    (checkout.parent / "body.json").write_text("{}")
    monkeypatch.setenv("SECRET", "only a test")
    return written


def test_every_command_is_known_here() -> None:
    assert set(_leaves(typer.main.get_command(app))) == COMMANDS.keys() | IMPORTING


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_no_handlers(cli: Cli, inbox: Inbox, mark: Path, command: str) -> None:
    inbox.deliver(type_="refunded")
    shown = cli(*command.split(), *COMMANDS[command], stdin="only a test")
    assert shown.code in {0, 1}, shown.err
    assert not mark.exists()


@pytest.mark.parametrize("command", ["check", "rejected release"])
def test_those_that_do_keep_the_aws_environment(
    cli: Cli, mark: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "the operator's")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    cli(*command.split())
    assert "the operator's" not in mark.read_text()
    assert "eu-north-1" not in mark.read_text()
