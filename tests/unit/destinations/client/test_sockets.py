"""`ctx.http` over real sockets: what no transport in memory shows."""

import gzip
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.stopwatch import Stopwatch
from tests.unit.destinations.client.calling import Attempt
from tests.waiting import DEADLINE
from webhook_inbox.adapters.system import SystemClock
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.client.client import DestinationClient
from webhook_inbox.destinations.client.factory import HttpClients
from webhook_inbox.domain.errors import Permanent, Transient
from webhook_inbox.domain.manifest import DestinationSpec

OK = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"id":7}'
Script = Callable[[socket.socket], None]


class Listener:
    """Listens on this machine and plays a script on each connection, one after the other."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.script: Script = lambda _: None
        self.received: list[bytes] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                connection.settimeout(5)
                if self.script is _end:
                    return
                try:
                    self.script(connection)
                except OSError:
                    continue  # The client left: that is what some tests are about.

    def answers(self, answer: bytes) -> None:
        def script(connection: socket.socket) -> None:
            self.received.append(request_of(connection))
            connection.sendall(answer)

        self.script = script

    def close(self) -> None:
        if self.script is not _end:
            self.script = _end
            socket.create_connection(("127.0.0.1", self.port)).close()
            self._thread.join(10)
            self._socket.close()


def _end(_: socket.socket) -> None:
    """Ends the listener."""


def request_of(connection: socket.socket) -> bytes:
    """Reads a request without a body, or with one of a known length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-len")),
        0,
    )
    while len(body) < length:
        body += received(connection)
    return head + b"\r\n\r\n" + body


def until_left(connection: socket.socket) -> None:
    """Says nothing for as long as the client stays."""
    while connection.recv(65536):
        pass


def received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionResetError
    return data


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


def attempt(**values: Any) -> Attempt:
    return Attempt(deadline=datetime.now(UTC) + timedelta(seconds=DEADLINE), values=values)


def client(
    port: int,
    run: Attempt | None = None,
    *,
    scheme: str = "http",
    host: str = "127.0.0.1",
    **more: Any,
) -> DestinationClient:
    spec = DestinationSpec("crm", f"{scheme}://{host}:{port}", **{"timeout": DEADLINE, **more})
    return HttpClients(clock=SystemClock())(spec, run or attempt())


def failure(crm: DestinationClient, *, method: str = "POST") -> Transient:
    with pytest.raises(Transient) as raised:
        crm.request(method, "/notes")
    return raised.value


def test_a_call_arrives_with_all_that_it_carries(listener: Listener) -> None:
    listener.answers(OK)
    crm = client(listener.port, attempt(crm="token-1"), auth={"bearer": "crm"})

    answer = crm.post("/notes", json={"a": 1})

    assert answer.json() == {"id": 7}
    (request,) = listener.received
    assert request.startswith(b"POST /notes HTTP/1.1\r\n")
    assert request.endswith(b'\r\n\r\n{"a":1}')
    assert b"\r\nAuthorization: Bearer token-1\r\n" in request
    assert b"\r\nIdempotency-Key: POST /notes:stripe.fulfil:stripe:evt_1\r\n" in request


def test_an_answer_tells_how_long_it_took(listener: Listener) -> None:
    listener.answers(OK)
    begun = datetime.now(UTC)

    answer = client(listener.port).get("/x")

    assert timedelta(0) < answer.elapsed <= datetime.now(UTC) - begun
    assert answer.json() == {"id": 7}


def test_no_connection_outlives_its_call(listener: Listener) -> None:
    ends: list[bytes] = []

    def script(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(OK)
        ends.append(connection.recv(1))

    listener.script = script
    crm = client(listener.port)

    crm.get("/a")
    crm.get("/b")
    listener.close()

    assert ends == [b"", b""]


def test_a_destination_that_never_answers_is_left_in_time(listener: Listener) -> None:
    listener.script = until_left
    run, watch = attempt(), Stopwatch()

    error = failure(client(listener.port, run, timeout=0.5))

    assert str(error) == "crm: POST /notes: it did not answer in time"
    assert not error.refused
    assert watch.wall > 0.4
    assert watch.seconds < 3
    assert run.gate.answers == [CallOutcome.failed()]


def test_an_answer_that_drips_is_left_in_time(listener: Listener) -> None:
    left = threading.Event()

    def script(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not left.wait(0.02):
            connection.sendall(b".")

    listener.script = script
    watch = Stopwatch()

    error = failure(client(listener.port, timeout=0.5), method="GET")
    left.set()

    assert not error.refused
    assert watch.seconds < 3


@pytest.mark.parametrize(
    "piece",
    [
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        OK[:-3],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\xff\xfe\x00" * 100,
    ],
    ids=range(7),
)
def test_an_answer_that_is_cut_or_none_leaves_the_call_in_doubt(
    listener: Listener, piece: bytes
) -> None:
    listener.answers(piece)
    run = attempt()

    error = failure(client(listener.port, run))

    assert str(error) == ("crm: POST /notes: the connection broke before the answer was complete")
    assert not error.refused
    assert run.gate.answers == [CallOutcome.failed()]
    assert run.effects.committed == {}


def test_a_connection_that_is_refused_leaves_nothing_in_doubt(listener: Listener) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    run = attempt()

    error = failure(client(port, run))

    assert str(error).startswith("crm: POST /notes: no connection could be made (")
    assert "refused" in str(error)
    assert error.refused
    assert run.gate.answers == [CallOutcome.failed()]


def test_a_name_that_is_none_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    run = attempt()

    error = failure(client(443, run, scheme="https", host="crm.invalid"))

    assert "its name cannot be resolved (" in str(error)
    assert (error.max_attempts, error.page, error.refused) == (3, True, True)
    assert run.gate.answers == [CallOutcome.failed()]


def test_a_handshake_that_fails_leaves_nothing_in_doubt(listener: Listener) -> None:
    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    listener.script = script

    error = failure(client(listener.port, scheme="https"))

    assert "no secure connection could be made (" in str(error)
    assert error.refused


def test_a_handshake_that_is_never_answered_leaves_nothing_in_doubt(listener: Listener) -> None:
    listener.script = until_left
    watch = Stopwatch()

    error = failure(client(listener.port, scheme="https", timeout=1.0))

    assert "no connection could be made" in str(error)
    assert error.refused
    assert watch.seconds < 4


def test_an_answer_without_end_is_not_read_to_its_end(listener: Listener) -> None:
    sent: list[int] = []

    def script(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1024):
            connection.sendall(b"x" * 65536)
            sent.append(65536)

    listener.script = script

    with pytest.raises(Permanent, match="exceeds 4 MB"):
        client(listener.port).get("/export")
    listener.close()

    assert sum(sent) < 16 * 1024 * 1024


def test_a_header_that_is_none_is_not_shown(listener: Listener) -> None:
    listener.answers(OK)

    with pytest.raises(Permanent) as raised:
        client(listener.port).get("/x", headers={"X-Own-Token": "s3cr3t\r\nX: y"})

    assert str(raised.value) == "crm: GET /x cannot be sent: LocalProtocolError"
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_a_redirect_elsewhere_takes_nothing_there(listener: Listener) -> None:
    listener.answers(
        b"HTTP/1.1 307 Over There\r\nLocation: http://localhost:1/\r\nContent-Length: 0\r\n\r\n"
    )
    crm = client(listener.port, attempt(crm="token-1"), auth={"bearer": "crm"})

    with pytest.raises(Permanent, match=r"localhost is not 127\.0\.0\.1: not sent"):
        crm.get("/x", follow_redirects=True)


def test_640_bytes_do_not_become_628_mb(listener: Listener) -> None:
    body = gzip.compress(gzip.compress(bytes(64 * 2**20), mtime=0), mtime=0)
    assert len(body) < 640
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip, gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    listener.answers(head.encode() + body)
    crm = client(listener.port)
    tracemalloc.start()

    with pytest.raises(Permanent, match="its body has the encoding 'gzip, gzip'"):
        crm.get("/export")

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20
    assert b"\r\naccept-encoding: gzip\r\n" in listener.received[0].lower()
