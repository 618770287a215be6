"""Every command on the pages parses, and names targets, files, sources and ports that exist."""

import re
import shlex
import tomllib
from typing import Any

import botocore.session
import pytest
import typer
from botocore import xform_name

from tests.docs.blocks import blocks
from tests.docs.pages import GUIDES, README, ROOT
from webhook_inbox.configuration import inbox_toml
from webhookctl.app import app

COMMANDS = [
    pytest.param(line, id=f"{page.name}:{block.line}: {line[:60]}")
    for page in GUIDES
    for block in blocks(page)
    if block.language == "sh"
    for line in block.text.replace("\\\n", " ").splitlines()
]
# Programs of other projects, which the pages show how to configure.
FOREIGN = {"stripe", "gh", "cloudflared", "ngrok"}
# The files of a project that `webhookctl init` writes.
PROJECT = ROOT / "webhookctl" / "template" / "project"
CDK = "aws-cdk@2.1148.1"


def test_the_pages_have_commands() -> None:
    assert len(COMMANDS) > 40


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_given(command: str) -> None:
    words = shlex.split(command.partition(" < ")[0])
    check = {
        "make": _check_make,
        ".venv/bin/webhookctl": _check_webhookctl,
        "webhookctl": _check_webhookctl,
        "../inbox/.venv/bin/webhookctl": _check_webhookctl,
        "../inbox/.venv/bin/pip": _check_wheel,
        ".venv/bin/pytest": _check_pytest,
        "pytest": _check_pytest,
        "python3": lambda words: None,
        "cd": lambda words: None,
        ".": lambda words: None,
        "npx": _check_cdk,
        "aws": _check_aws,
        "curl": _check_addresses,
        "echo": lambda words: None,
        "openssl": lambda words: None,
    }
    program = words[0]
    if program in FOREIGN:
        _check_addresses(words)
    else:
        check[program](words)


def _check_make(words: list[str]) -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert words[1] in targets
    for word in words[2:]:
        name, _, arguments = word.partition("=")
        assert name in ("ARGS", "PACKAGE")
        if name == "ARGS":
            parse(["dev", *shlex.split(arguments)])
        else:
            assert (ROOT / "tests" / "unit" / arguments).is_dir()


def _check_webhookctl(words: list[str]) -> None:
    parse(words[1:])
    for word in words[1:]:
        if word.startswith("events/"):
            assert (ROOT / word).is_file() or (PROJECT / word).is_file()
    if "--source" in words:
        named = inbox_toml.load(ROOT / "functions" / "inbox.toml", stage="local").sources
        assert words[words.index("--source") + 1] in {*named, "shipments", "shop", "SOURCE"}


def _check_pytest(words: list[str]) -> None:
    assert words[1:] in ([], ["tests/test_shipments.py"], ["tests/test_shop.py"])


def _check_wheel(words: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wheel = f"dist/webhook_inbox-{project['version']}-py3-none-any.whl"
    assert words[1:] == ["install", f"{wheel}[cdk,dev]"]


def _check_cdk(words: list[str]) -> None:
    assert words[1:3] == ["--yes", CDK]
    assert words[3] in {"bootstrap", "deploy", "destroy", "import"}


def _check_aws(words: list[str]) -> None:
    """Compares a command of the AWS CLI with the API that it is generated from."""
    _, service, command, *rest = words
    session = botocore.session.get_session()
    model = session.get_service_model(service)
    if command == "wait":
        waiter, *rest = rest
        waiters = session.get_waiter_model(service)
        named = {xform_name(name, "-"): name for name in waiters.waiter_names}
        operation = waiters.get_waiter(named[waiter]).operation
    else:
        operation = {xform_name(name, "-"): name for name in model.operation_names}[command]
    members = model.operation_model(operation).input_shape.members
    known = {xform_name(name, "-") for name in members} | {"query", "output", "region"}
    options = {word.removeprefix("--").removeprefix("no-") for word in rest if word[:2] == "--"}
    assert options <= known


def _check_addresses(words: list[str]) -> None:
    for port in re.findall(r"127\.0\.0\.1:(\d+)", " ".join(words)):
        assert port in {"8787", "8788"}


def parse(words: list[str]) -> None:
    """Parses a command line without running it; wrong options raise."""
    command: Any = typer.main.get_command(app)
    words = [word for word in words if not re.fullmatch(r"/tmp/.*", word)] + _stand_in(words)
    context = command.make_context("webhookctl", list(words), resilient_parsing=False)
    while hasattr(command, "commands"):
        name, command, words = command.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        context = command.make_context(name, list(words), parent=context)


def _stand_in(words: list[str]) -> list[str]:
    return [str(README)] if any(word.startswith("/tmp/") for word in words) else []
