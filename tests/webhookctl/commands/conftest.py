"""The command line, called in this process, and what it is called on."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer
from moto import mock_aws

from tests.unit.support.world import World
from tests.webhookctl.commands.stage import Cli, Inbox, ingesting, serving

CONFIGURATION = """
[alarms]
notify = []

[sources.acme]
provider = "hmac"
signature = { header = "X-Acme-Signature", signs = "{id}.{timestamp}.{body}" }
timestamp = { header = "X-Acme-Timestamp", tolerance = "5m" }
event_id = { header = "X-Acme-Id" }
event_type = { header = "X-Acme-Type" }

[sources.github]
provider = "github"

[sources.stripe]
provider = "stripe"

[sources.hashed]
provider = "hmac"
signature = { header = "X-Signature" }
event_id = { body = "sha256" }
"""
HANDLERS = '''"""Handlers of a test."""

from webhook_inbox import Router

acme = Router("acme")


@acme.on("paid", max_attempts=3)
def fulfil(event, ctx):
    """Does nothing."""
'''


@pytest.fixture(scope="session", autouse=True)
def _one_command_tree() -> Iterator[None]:
    """Builds the tree of commands once; for each call, it takes longer than most commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Takes the developer's AWS set-up, target and directory away."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "WEBHOOKCTL_"))]:
        monkeypatch.delenv(name)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def inbox(request: pytest.FixtureRequest) -> Iterator[Inbox]:
    """An inbox over the doubles; secrets, callers, alarms and figures are moto's.

    tests/contract proves that the doubles agree with AWS. The tests marked `moto`, at least one of
    each command that reads or writes the ledger, keep rows and bodies in moto's DynamoDB and S3.
    """
    with mock_aws():
        made = Inbox()
        if request.node.get_closest_marker("moto"):
            made.move_to_aws()
        yield made


@pytest.fixture
def cli(inbox: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line, its target the inbox."""
    return Cli(inbox, capsys, monkeypatch)


@pytest.fixture
def served(inbox: World, cli: Cli) -> Iterator[str]:
    """The inbox's address, and what it answers with is the real ingest."""
    with serving(ingesting(inbox)) as address:
        cli.api_url = address
        cli.urls = {name: f"{address}/webhooks/{name}" for name in cli.urls}
        yield address


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository's `functions/`, in the working directory."""
    functions = tmp_path / "functions"
    (functions / "handlers").mkdir(parents=True)
    (functions / "inbox.toml").write_text(CONFIGURATION)
    registration = '"""Registered."""\n\nMODULES = ("orders",)\n'
    (functions / "handlers" / "__init__.py").write_text(registration)
    (functions / "handlers" / "orders.py").write_text(HANDLERS)
    return functions
