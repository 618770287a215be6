"""Clients give up as soon as their caller has to, against a service that hangs for real."""

import socket
from collections.abc import Iterator

import pytest

from tests.stopwatch import Stopwatch
from webhook_inbox.adapters.aws import clients
from webhook_inbox.adapters.aws.clients import Lazy, TimeBudget, quick, quick_caller, steady
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Key, Outgoing


@pytest.fixture(autouse=True)
def _no_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("NO_PROXY", "*")
    clients.session.cache_clear()
    yield
    clients.session.cache_clear()


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An endpoint that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        yield


@pytest.mark.usefixtures("hanging")
def test_ingest_hears_within_its_time_that_everything_hangs() -> None:
    patience = TimeBudget()
    table = DynamoTable(quick("dynamodb"), "t", call=quick_caller("dynamodb", patience))
    queue = SqsQueue(quick("sqs"), "http://x/1/q", call=quick_caller("sqs", patience))
    blobs = S3Blobs(quick("s3"), "bucket", call=quick_caller("s3", patience))
    watch = Stopwatch()
    patience.begin()

    with pytest.raises(Unavailable):
        table.get(Key("a", "b"))
    with pytest.raises(Unavailable):
        blobs.put("k", b"x" * 5_000_000)
    with pytest.raises(Unavailable):
        queue.send([Outgoing("x")])

    assert watch.seconds < 2.5


@pytest.mark.usefixtures("hanging")
def test_a_large_body_to_a_service_that_hangs_is_given_up_in_time() -> None:
    patience = TimeBudget()
    blobs = S3Blobs(quick("s3"), "bucket", call=quick_caller("s3", patience))
    watch = Stopwatch()

    with pytest.raises(Unavailable):
        blobs.put("k", b"x" * 5_000_000)

    assert watch.seconds < 2.5


def test_a_closed_port_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")

    with pytest.raises(Unavailable, match="EndpointConnectionError"):
        DynamoTable(quick("dynamodb"), "t").get(Key("a", "b"))


def test_no_body_waits_for_leave_to_be_sent() -> None:
    """With "Expect: 100-continue" botocore waits a second more than any time-out says."""
    client = quick("s3")
    headers: list[str] = []

    def sent(request: object, **_: object) -> None:
        headers.extend(name.lower() for name in request.headers)  # type: ignore[attr-defined]
        raise ConnectionResetError

    client.meta.events.register("before-send.s3", sent)
    with pytest.raises(Unavailable):
        S3Blobs(client, "bucket").put("k", b"x" * 1000)

    assert "host" in headers or "authorization" in headers
    assert "expect" not in headers


@pytest.mark.parametrize("service", ["dynamodb", "sqs", "s3", "secretsmanager"])
def test_a_quick_client_tries_once_and_its_attempt_fits(service: str) -> None:
    config = quick(service).meta.config
    patience = TimeBudget(total=2 * config.connect_timeout + config.read_timeout + 0.01)

    assert config.retries["total_max_attempts"] == 1
    assert quick_caller(service, patience)(service, "o", lambda: "fits") == "fits"
    with pytest.raises(Unavailable):
        quick_caller(service, TimeBudget(total=config.read_timeout))(service, "o", lambda: "not")


def test_a_steady_client_retries_by_itself() -> None:
    config = steady("sqs").meta.config

    assert config.retries["total_max_attempts"] == 4
    assert (config.connect_timeout, config.read_timeout) == (1.0, 5.0)


def test_a_lazy_client_is_made_once_and_not_before_it_is_used() -> None:
    made: list[list[str]] = []

    def make() -> list[str]:
        made.append([])
        return made[-1]

    client = Lazy(make)
    assert made == []

    client.append("a")
    client.append("b")

    assert made == [["a", "b"]]
