"""Certificates are verified, and a connection over TLS is kept as any other."""

import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.stopwatch import Stopwatch
from tests.unit.adapters.aws.certificates import Authority, made_authority
from tests.unit.adapters.aws.servers import OK, Server, answers, read_request, serving
from tests.waiting import DEADLINE
from webhook_inbox.adapters.aws import connection as connections
from webhook_inbox.adapters.aws.connection import Connection, Limits

LONG = Limits(connect=DEADLINE, read=DEADLINE)
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Authority]:
    """The only authority that the process trusts."""
    made = made_authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.path))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    connections._context.cache_clear()
    yield made
    connections._context.cache_clear()


def to_localhost(server: Server, limits: Limits = LONG) -> Connection:
    return Connection("localhost", server.port, tls=True, limits=limits)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: str(version.name))
def test_a_connection_to_a_verified_server_is_kept(
    authority: Authority, version: ssl.TLSVersion
) -> None:
    """A connection is reused although TLS 1.3 sends session tickets that no request asked for."""
    context = authority.context("localhost")
    context.minimum_version = context.maximum_version = version
    with serving(answers(*[OK] * 5), context=context) as server:
        connection = to_localhost(server)
        bodies = [connection.exchange("GET", "/", {}, b"").body for _ in range(5)]
        connection.close()

    assert bodies == [b"ok"] * 5
    assert server.connections == 1


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: str(version.name))
def test_a_connection_that_the_server_closed_is_replaced(
    authority: Authority, version: ssl.TLSVersion
) -> None:
    context = authority.context("localhost")
    context.minimum_version = context.maximum_version = version
    scripts = answers(OK, closing=True), answers(OK)
    with serving(*scripts, context=context) as server:
        connection = to_localhost(server)
        connection.exchange("GET", "/", {}, b"")
        assert server.ended.acquire(timeout=DEADLINE)
        assert connection.exchange("GET", "/", {}, b"").body == b"ok"
        connection.close()

    assert server.connections == 2


@pytest.mark.parametrize("size", [0, 65_536, 5_000_000])
def test_a_body_of_any_size_arrives_over_tls(authority: Authority, size: int) -> None:
    seen: list[bytes] = []

    def script(peer: socket.socket) -> None:
        seen.append(read_request(peer).partition(b"\r\n\r\n")[2])
        peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + b"y" * size)

    with serving(script, context=authority.context("localhost")) as server:
        connection = to_localhost(server)
        assert connection.exchange("PUT", "/", {}, b"x" * size).body == b"y" * size
        connection.close()

    assert seen == [b"x" * size]


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        ({"host": "other.example"}, "Hostname mismatch"),
        ({"host": "*.localhost"}, "Hostname mismatch"),
        ({"host": "localhost", "ends": timedelta(days=-1)}, "certificate has expired"),
        ({"host": "localhost", "known": False}, "self-signed certificate|self signed certificate"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_server_that_is_not_verified_gets_no_request(
    authority: Authority, context: dict[str, object], reason: str
) -> None:
    requests: list[bytes] = []
    made = authority.context(**context)  # type: ignore[arg-type]
    refused = pytest.raises(ssl.SSLCertVerificationError, match=reason)
    with serving(lambda peer: requests.append(read_request(peer)), context=made) as server, refused:
        to_localhost(server).exchange("PUT", "/", {}, b"secret")

    assert requests == []


def test_an_authority_that_the_process_does_not_know_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    context = made_authority(other).context("localhost")
    refused = pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed")
    with serving(lambda peer: None, context=context) as server, refused:
        to_localhost(server).exchange("PUT", "/", {}, b"secret")


def test_an_old_version_of_tls_is_refused(authority: Authority) -> None:
    assert connections._context().minimum_version >= ssl.TLSVersion.TLSv1_2


def test_the_server_is_told_the_name_that_is_verified(authority: Authority) -> None:
    context, names = authority.context("localhost"), list[str | None]()
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    with serving(answers(OK), context=context) as server:
        connection = to_localhost(server)
        connection.exchange("GET", "/", {}, b"")
        connection.close()

    assert names == ["localhost"]


@pytest.mark.usefixtures("authority")
def test_a_handshake_that_hangs_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        connection = Connection("localhost", port, tls=True, limits=Limits(0.1, 5))
        watch = Stopwatch()
        with pytest.raises(TimeoutError):
            connection.exchange("GET", "/", {}, b"")

    assert watch.seconds < 1


def test_a_large_body_to_a_server_that_reads_slowly_is_given_up_in_time(
    authority: Authority,
) -> None:
    """The time-out of `SSLSocket.sendall` would hold for each 16 KB."""
    pause = threading.Event()

    def script(peer: socket.socket) -> None:
        try:
            while peer.recv(16_384):
                pause.wait(0.01)
        except OSError:
            pass  # the client gave up

    with serving(script, context=authority.context("localhost")) as server:
        connection = to_localhost(server, Limits(connect=DEADLINE, read=0.3))
        watch = Stopwatch()
        with pytest.raises(TimeoutError):
            connection.exchange("PUT", "/", {}, b"x" * 20_000_000)
        assert watch.seconds < 1


def test_http_is_not_an_answer_to_tls(authority: Authority) -> None:
    with serving(lambda peer: peer.sendall(OK)) as server, pytest.raises(ssl.SSLError):
        to_localhost(server).exchange("GET", "/", {}, b"")
