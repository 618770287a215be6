"""Every port's backends: the double in memory, moto, and the local runtime.

The local runtime is asked by the SDK, and again by ingest's own clients.

A test that asks for a port's fixture runs over all of them. Where moto or ministack differ from
AWS, the test says how, names AWS's page, and expects them to fail (`aws_differs`).
"""

import os
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

import pytest
from moto import mock_aws

from tests.connections import closed_at_the_end
from tests.contract.backends import BACKENDS, LEAN, AwsVault, Lane, MemoryVault, Vault
from tests.contract.resources import create_bucket, create_queues, create_table
from webhook_inbox.adapters.aws import clients
from webhook_inbox.adapters.aws.clients import steady
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.lean_clients import JsonClient, S3Client
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.adapters.memory import (
    ManualClock,
    MemoryBlobs,
    MemoryFifo,
    MemoryQueue,
    MemoryTable,
)
from webhook_inbox.domain.ports import Blobs, Table

REGION = "us-east-1"
MAX_RECEIVE_COUNT = 2
# The credentials of moto and of the local runtime, which otherwise has credentials of its own.
CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "differs(how): the test has to fail on this backend")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fails a test that passes on a backend of which it says that it differs from AWS.

    It is what a strict xfail does, which the summary would list by the dozen.
    """
    mark = pyfuncitem.get_closest_marker("differs")
    if mark is None:
        return (yield)
    try:
        yield
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - whichever way it fails
        return True
    return pytest.fail(f"it no longer {mark.args[0]!r}: say so here and in docs/doubles.md")


@pytest.fixture(scope="session")
def ministack_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The local runtime, started once; skipped on a laptop without it, never in CI."""
    if find_spec("ministack") is None:
        refuse = pytest.fail if os.environ.get("CI") else pytest.skip
        refuse("ministack is not installed: make setup")
    from webhookctl.local.processes.ministack import Ministack  # noqa: PLC0415 - needs ministack

    ministack = Ministack(tmp_path_factory.mktemp("ministack"))
    ministack.credentials = dict.fromkeys(CREDENTIALS, "test")
    with ministack as running:
        yield running.endpoint


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the developer's AWS set-up away."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in CREDENTIALS:
        monkeypatch.setenv(name, "test")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)


@pytest.fixture(scope="session", autouse=True)
def _own_session() -> Iterator[None]:
    """Keeps a session made before moto was imported out: it would reach for the real AWS."""
    clients.session.cache_clear()
    yield
    clients.session.cache_clear()


Clients = Callable[[str], Any]


class LeanClient:
    """Ingest's own client; the SDK's creates, rotates and lists, which ingest does not."""

    def __init__(self, service: str) -> None:
        self._lean = S3Client() if service == "s3" else JsonClient(service)
        self._steady = steady(service)

    def __getattr__(self, name: str) -> Any:
        made = name.startswith(("create_", "list_")) or name == "get_waiter"
        return getattr(self._steady if made else self._lean, name)


@pytest.fixture(params=(*BACKENDS, LEAN))
def aws(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Clients | None]:
    """Makes the backend's clients, as the functions do; None stands for the doubles."""
    if request.param == "memory":
        yield None
    elif request.param == "moto":
        with mock_aws():
            yield steady
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("ministack_url"))
        with closed_at_the_end():
            yield LeanClient if request.param == LEAN else steady


@pytest.fixture
def table(aws: Clients | None) -> Table:
    """An empty ledger table."""
    if aws is None:
        return MemoryTable()
    client = aws("dynamodb")
    return DynamoTable(client, create_table(client, f"ledger-{uuid4().hex}"))


def made_lane(aws: Clients | None, kind: type[MemoryQueue]) -> Lane:
    """Makes an empty queue and its empty DLQ."""
    if aws is None:
        clock = ManualClock()
        dead = kind(clock, name="dead")
        work = kind(clock, dead_letters=dead, max_receive_count=MAX_RECEIVE_COUNT)
        return Lane(work, dead, clock)
    client = aws("sqs")
    work_url, dead_url = create_queues(
        client, uuid4().hex, max_receive_count=MAX_RECEIVE_COUNT, fifo=kind.fifo
    )
    return Lane(SqsQueue(client, work_url), SqsQueue(client, dead_url))


@pytest.fixture
def lane(aws: Clients | None) -> Lane:
    """A standard queue."""
    return made_lane(aws, MemoryQueue)


@pytest.fixture
def fifo(aws: Clients | None) -> Lane:
    """A FIFO queue."""
    return made_lane(aws, MemoryFifo)


@pytest.fixture
def blobs(aws: Clients | None) -> Blobs:
    """An empty bucket."""
    if aws is None:
        return MemoryBlobs()
    client = aws("s3")
    return S3Blobs(client, create_bucket(client, f"bodies-{uuid4().hex}"))


@pytest.fixture
def vault(aws: Clients | None) -> Vault:
    """An empty vault."""
    if aws is None:
        return MemoryVault()
    return AwsVault(aws("secretsmanager"), f"webhook-inbox/{uuid4().hex}/sources")
