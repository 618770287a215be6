"""A command in a directory that the user does not trust runs none of its code."""

import os
from pathlib import Path

import pytest

from tests.webhookctl.commands.every_command import ARGUMENTS, IMPORTING, ended, leaves
from tests.webhookctl.commands.stage import Cli, Inbox


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
    assert leaves().keys() == ARGUMENTS.keys() | IMPORTING


@pytest.mark.parametrize("command", ARGUMENTS)
def test_a_command_imports_no_handlers(cli: Cli, inbox: Inbox, mark: Path, command: str) -> None:
    inbox.deliver(type_="refunded")
    shown = cli(*command.split(), *ARGUMENTS[command], stdin="only a test")
    assert ended(shown.code, shown.err), shown.err
    assert not mark.exists()


@pytest.mark.parametrize("command", ["check", "rejected release --yes"])
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
