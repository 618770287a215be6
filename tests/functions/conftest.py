"""The four functions as Lambda runs them, in an account by moto."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from tests.functions.account import REGION, Account, open_account
from tests.functions.bundles import NAMES, build, forget, start_cold
from tests.functions.faults import Faults
from tests.functions.inbox import SECRET, Inbox, Output
from webhook_inbox.adapters.aws import clients
from webhook_inbox.adapters.aws.connection import Connection, Reply
from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.adapters.system import SystemClock
from webhook_inbox.domain.manifest import Manifest
from webhookctl.local.processes import sink as sinks


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the developer's AWS and Powertools set-up away."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "POWERTOOLS_"))]:
        monkeypatch.delenv(name)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "test")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)


@pytest.fixture(scope="session")
def _faults() -> Iterator[Faults]:
    yield Faults()
    clients.session.cache_clear()


@pytest.fixture
def faults(_faults: Faults, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """Between the functions' clients and AWS; one session, as in a Lambda's process.

    Other tests that run in this process between these forget it, or leave one of their own.
    """
    if not _faults.installed(clients.session()):
        clients.session.cache_clear()
        _faults.install(clients.session())
    _faults.clear()

    def exchange(connection: Connection, *args: Any, **more: Any) -> Reply:
        return _faults.exchange(connection, *args, **more)

    monkeypatch.setattr(Connection, "exchange", exchange)
    yield _faults
    _faults.clear()


@pytest.fixture(scope="session")
def _sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sinks.Sink]:
    journal = tmp_path_factory.mktemp("sink") / "journal.jsonl"
    with pytest.MonkeyPatch.context() as patch, sinks.Sink(0, journal) as sink:
        patch.setattr(sinks, "_say", lambda line: None)
        thread = threading.Thread(target=sink.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield sink
        sink.shutdown()
        thread.join()


@pytest.fixture
def sink(_sink: sinks.Sink) -> sinks.Sink:
    """The downstream of the repository's own handlers, with nothing done yet."""
    _sink.effects.reset()
    return _sink


# A source for callers of one's own, who get a status URL, and people who approve effects.
MORE = """
[sources.agents]
auth = "api-key"
event_id = { body = "sha256" }
event_type = { json = "type" }
allow = ["unhandled"]

[approvers.finance]
people = { ann = "sink:/ann", bob = "sink:/bob" }
"""


@pytest.fixture(scope="session")
def built(_sink: sinks.Sink, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    directory = tmp_path_factory.mktemp("built") / "functions"
    url = f"http://127.0.0.1:{_sink.server_address[1]}"
    return directory, build(directory, sink_url=url, sources=MORE)


@pytest.fixture
def manifest(built: tuple[Path, Manifest]) -> Manifest:
    return built[1]


@pytest.fixture
def bundle(built: tuple[Path, Manifest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deployed copy of handlers and manifest, for this test alone."""
    directory = tmp_path / "bundle"
    shutil.copytree(built[0], directory)
    monkeypatch.syspath_prepend(directory)
    invalidate_caches()
    return directory


@pytest.fixture
def account() -> Iterator[Account]:
    with mock_aws():
        opened = open_account()
        for name in ("acme", "agents", "github", "slack", "stripe"):
            opened.set_secret(name, SECRET)
        yield opened


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str]) -> Output:
    return Output(capsys)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The clock of all functions, which stands still in the middle of an hour and of a minute.

    What a function reads once a minute, or writes in another row each minute, would depend on the
    time at which a step begins.
    """
    stopped = ManualClock(datetime.now(UTC).replace(minute=30, second=30, microsecond=0))
    monkeypatch.setattr(SystemClock, "now", lambda _: stopped.now())
    monkeypatch.setattr(SystemClock, "sleep", lambda _, seconds: stopped.sleep(seconds))
    return stopped


Start = Callable[..., Inbox]


@pytest.fixture
def start(
    bundle: Path,
    manifest: Manifest,
    faults: Faults,
    output: Output,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Start]:
    """Starts the functions of an account."""

    def started(account: Account, *, hurried: bool = False) -> Inbox:
        for name, value in account.environment.items():
            monkeypatch.setenv(name, value)

        def cold(function: str) -> object:
            monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", function)
            module = start_cold(function)
            if function == "ingest" and not hurried:
                # A busy machine must not fail tests that are not about time.
                module.budget._total = 60.0
            return module

        return Inbox(account, manifest, cold, output)

    yield started
    for name in NAMES:
        forget(name)


@pytest.fixture
def inbox(start: Start, account: Account) -> Inbox:
    """The whole inbox."""
    return start(account)
