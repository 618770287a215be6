"""One connection, against servers that answer well, badly, late, or not at all."""

import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import time
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psutil import Process

from tests.stopwatch import Stopwatch
from tests.unit.adapters.aws.servers import OK, Script, Server, answers, read_request, serving
from tests.waiting import DEADLINE
from webhook_inbox.adapters.aws import connection as connections
from webhook_inbox.adapters.aws.connection import HEAD, IDLE, BadReply, Connection, Limits, Reply

# Longer than any wait of a test that is not about time.
LONG = Limits(connect=DEADLINE, read=DEADLINE)
SHORT = Limits(connect=DEADLINE, read=0.1)
HEADERS = {"x-name": "value"}


@pytest.fixture(autouse=True)
def _no_socket_stays_open() -> Iterator[None]:
    before = len(Process().net_connections())
    yield
    assert len(Process().net_connections()) == before


def connected(server: Server, limits: Limits = LONG) -> Connection:
    return Connection("127.0.0.1", server.port, tls=False, limits=limits)


def post(connection: Connection, body: bytes = b"", *, limit: int = 1000) -> Reply:
    return connection.exchange("POST", "/path", HEADERS, body, limit=limit)


def get_once(reply: bytes, *, limit: int = 1000, closing: bool = True) -> Reply:
    """Returns what a connection makes of these bytes."""
    with serving(answers(reply, closing=closing)) as server:
        connection = connected(server)
        try:
            return post(connection, limit=limit)
        finally:
            connection.close()


def test_a_request_is_sent_as_http_wants_it() -> None:
    seen: list[bytes] = []

    def script(peer: socket.socket) -> None:
        seen.append(read_request(peer))
        peer.sendall(OK)

    with serving(script) as server:
        connection = connected(server)
        assert post(connection, b"body") == Reply(200, {"content-length": "2"}, b"ok")
        connection.close()

    host = f"127.0.0.1:{server.port}".encode()
    assert seen == [
        b"POST /path HTTP/1.1\r\nhost: " + host + b"\r\nx-name: value\r\n"
        b"content-length: 4\r\n\r\nbody"
    ]


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 5_000_000])
def test_a_body_of_any_size_arrives(size: int) -> None:
    sizes: list[int] = []

    def script(peer: socket.socket) -> None:
        sizes.append(len(read_request(peer).partition(b"\r\n\r\n")[2]))
        peer.sendall(OK)

    with serving(script) as server:
        connection = connected(server)
        post(connection, b"x" * size)
        connection.close()

    assert sizes == [size]


def test_a_connection_is_kept_between_requests() -> None:
    with serving(answers(OK, OK, OK)) as server:
        connection = connected(server)
        bodies = [post(connection).body for _ in range(3)]
        connection.close()

    assert bodies == [b"ok"] * 3
    assert server.connections == 1


def test_a_connection_that_the_server_closed_is_replaced_before_it_is_used() -> None:
    with serving(answers(OK, closing=True), answers(OK)) as server:
        connection = connected(server)
        post(connection)
        assert server.ended.acquire(timeout=DEADLINE)
        assert post(connection).body == b"ok"
        connection.close()

    assert server.connections == 2


def test_a_connection_of_which_the_server_closed_its_half_is_replaced() -> None:
    closed = threading.Event()

    def half_closing(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(OK)
        peer.shutdown(socket.SHUT_WR)
        closed.set()
        peer.recv(1)

    with serving(half_closing, answers(OK)) as server:
        connection = connected(server)
        post(connection)
        assert closed.wait(DEADLINE)
        assert post(connection).body == b"ok"
        connection.close()

    assert server.connections == 2


def test_a_connection_that_was_reset_is_replaced() -> None:
    with serving(resetting(after=OK), answers(OK)) as server:
        connection = connected(server)
        post(connection)
        assert server.ended.acquire(timeout=DEADLINE)
        assert post(connection).body == b"ok"
        connection.close()


@pytest.mark.parametrize(("idle", "connections"), [(IDLE - 10, 1), (IDLE + 10, 2)])
def test_a_connection_that_a_gateway_may_have_forgotten_is_replaced(
    idle: float, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway tells neither end, so that a request would wait for its time-out."""
    with serving(answers(OK, OK), answers(OK)) as server:
        connection = connected(server)
        post(connection)
        later = time() + idle
        monkeypatch.setattr("webhook_inbox.adapters.aws.connection.time", lambda: later)
        assert post(connection).body == b"ok"
        connection.close()

    assert server.connections == connections


def resetting(*, after: bytes) -> Script:
    """Answers so much, and resets the connection once the client has it."""

    def script(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(after)
        # With a reset, the client may lose bytes that it has not read; so it is only then.
        unread = struct.pack("ii", 1, 0)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, unread)

    return script


@pytest.mark.parametrize("taken", [0, 1, 100, 100_000])
def test_a_server_that_closes_within_the_request_is_an_error(taken: int) -> None:
    def script(peer: socket.socket) -> None:
        left = taken
        while left > 0:
            left -= len(peer.recv(min(left, 65536)))

    with serving(script, answers(OK)) as server:
        connection = connected(server)
        with pytest.raises((ConnectionError, BadReply)):
            post(connection, b"x" * 5_000_000)
        assert post(connection).body == b"ok"
        connection.close()


@pytest.mark.parametrize(
    "part",
    [
        b"",
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n1234",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n1234",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
@pytest.mark.parametrize("reset", [False, True])
def test_a_response_that_is_cut_off_is_an_error(part: bytes, *, reset: bool) -> None:
    first = resetting(after=part) if reset else answers(part, closing=True)
    with serving(first, answers(OK)) as server:
        connection = connected(server)
        with pytest.raises((ConnectionError, BadReply)):
            post(connection)
        assert post(connection).body == b"ok"
        connection.close()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (CHUNKED + b"2\r\nok\r\n0\r\n\r\n", b"ok"),
        (CHUNKED + b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n", b"ok"),
        (CHUNKED + b"2;name=value\r\nok\r\n0;last\r\n\r\n", b"ok"),
        (CHUNKED + b"2\r\nok\r\n0\r\nx-sum: 1\r\nx-other: 2\r\n\r\n", b"ok"),
        (CHUNKED + b"00a\r\n\r\n\r\n\r\n\r\n\r\n\r\n0\r\n\r\n", b"\r\n" * 5),
        (CHUNKED + b"0\r\n\r\n", b""),
        (b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\nCONTENT-LENGTH:2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 100 Continue\r\nx: 1\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n" + OK, b"ok"),
    ],
)
def test_a_response_is_read_to_its_end_and_the_connection_kept(reply: bytes, body: bytes) -> None:
    with serving(answers(reply, OK)) as server:
        connection = connected(server)
        assert post(connection).body == body
        assert post(connection).body == b"ok"
        connection.close()

    assert server.connections == 1


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nConnection: Close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n\r\nok",
    ],
)
def test_a_response_that_ends_its_connection_is_followed_by_another_one(reply: bytes) -> None:
    with serving(answers(reply, closing=True), answers(OK)) as server:
        connection = connected(server)
        assert post(connection).body == b"ok"
        assert post(connection).body == b"ok"
        connection.close()

    assert server.connections == 2


@given(reply=st.sampled_from([OK, CHUNKED + b"1;x\r\no\r\n1\r\nk\r\n0\r\n\r\n"]), data=st.data())
@settings(max_examples=30)
def test_a_response_is_the_same_in_whatever_pieces_it_arrives(
    reply: bytes, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(reply) - 1), max_size=6)))

    def script(peer: socket.socket) -> None:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        read_request(peer)
        for start, end in zip([0, *cuts], [*cuts, len(reply)], strict=True):
            peer.sendall(reply[start:end])
        peer.recv(1)

    with serving(script) as server:
        connection = connected(server)
        assert post(connection).body == b"ok"
        connection.close()


@pytest.mark.parametrize(
    "reply",
    [
        b"garbage\r\n\r\n",
        b"\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"\x15\x03\x03\x00\x02\x02\x28" * 20 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n" + b"x" * 1001,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001,
        b"HTTP/1.1 200 OK\r\n" + b"x-many: 1\r\n" * 20_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nx-huge: " + b"x" * (2 * HEAD),
        b"x" * 1_000_000,
        CHUNKED + b"zz\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"-2\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"1\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"ffffffffff\r\nok",
        CHUNKED + b"1f4\r\n" + b"x" * 500 + b"\r\n1f5\r\n" + b"x" * 501 + b"\r\n0\r\n\r\n",
    ],
    ids=lambda reply: repr(reply[:60]),
)
def test_a_bad_response_is_an_error_and_ends_the_connection(reply: bytes) -> None:
    with serving(answers(reply), answers(OK)) as server:
        connection = connected(server)
        with pytest.raises(BadReply):
            post(connection)
        assert post(connection).body == b"ok"
        connection.close()

    assert server.connections == 2


@given(reply=st.binary(max_size=200) | st.binary(max_size=100).map(lambda tail: OK[:30] + tail))
@settings(max_examples=100)
def test_any_bytes_are_a_response_or_an_error(reply: bytes) -> None:
    with suppress(OSError):
        assert isinstance(get_once(reply).body, bytes)


def test_the_largest_response_is_accepted() -> None:
    for head in (b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"):
        assert len(get_once(head + b"x" * 1000).body) == 1000


# A server takes one of these actions after its response, or instead of one.
def _and_again(peer: socket.socket, answer: bytes, reached: threading.Event) -> None:
    peer.sendall(answer * 2)


def _and_more_later(peer: socket.socket, answer: bytes, reached: threading.Event) -> None:
    peer.sendall(answer)
    reached.wait(DEADLINE)
    peer.sendall(answer)


def _too_late(peer: socket.socket, answer: bytes, reached: threading.Event) -> None:
    reached.wait(DEADLINE)
    with suppress(OSError):
        peer.sendall(answer)


def _in_part(peer: socket.socket, answer: bytes, reached: threading.Event) -> None:
    peer.sendall(answer[: len(answer) // 2])
    reached.wait(DEADLINE)
    with suppress(OSError):
        peer.sendall(answer[len(answer) // 2 :])


def _well(peer: socket.socket, answer: bytes, reached: threading.Event) -> None:
    peer.sendall(answer)


def _and_closes(peer: socket.socket, answer: bytes, reached: threading.Event) -> None:
    peer.sendall(answer)
    peer.shutdown(socket.SHUT_RDWR)


def _not_at_all(peer: socket.socket, answer: bytes, reached: threading.Event) -> None:
    peer.shutdown(socket.SHUT_RDWR)


Behaviour = Callable[[socket.socket, bytes, threading.Event], None]
BEHAVIOURS: list[Behaviour] = [
    _well,
    _and_again,
    _and_more_later,
    _and_closes,
    _too_late,
    _in_part,
    _not_at_all,
]


@given(st.lists(st.sampled_from(BEHAVIOURS), min_size=2, max_size=5), st.booleans())
@settings(max_examples=60)
def test_no_request_gets_the_response_of_another_one(
    behaviours: list[Behaviour], chunked: bool
) -> None:
    """`reached` is set once the request before has ended for the client, however it did."""
    reached = [threading.Event() for _ in behaviours]
    done = [threading.Event() for _ in behaviours]

    def script(peer: socket.socket) -> None:
        while request := read_request(peer):
            number = int(request.split(b" ")[1][1:])
            text = b"%d" % number
            plain = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text)
            answer = CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(text), text) if chunked else plain
            try:
                behaviours[number](peer, answer, reached[number])
            finally:
                done[number].set()

    with serving(*[script] * len(behaviours)) as server:
        connection = connected(server, Limits(connect=DEADLINE, read=0.03))
        for number, behaviour in enumerate(behaviours):
            with suppress(OSError):
                reply = connection.exchange("GET", f"/{number}", {}, b"")
                assert reply.body == b"%d" % number, behaviour.__name__
            reached[number].set()
            # The bytes that come late are there before the next request. HTTP/1.1 cannot tell those
            # that come after it from its response.
            done[number].wait(DEADLINE)
            if behaviour is _and_more_later and connection._socket is not None:
                select.select([connection._socket], [], [], DEADLINE)
        connection.close()


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a server that takes connections, and neither reads nor answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("size", [0, 20_000_000])
def test_a_server_that_does_nothing_is_given_up_in_time(silent: int, size: int) -> None:
    connection = Connection("127.0.0.1", silent, tls=False, limits=SHORT)
    watch = Stopwatch()

    with pytest.raises(TimeoutError):
        post(connection, b"x" * size)

    assert watch.wall > 0.09
    assert watch.seconds < 1


def dripping(part: bytes) -> Script:
    """Sends a byte whenever the client may have waited half its time, and never ends."""

    def script(peer: socket.socket) -> None:
        read_request(peer)
        ended = threading.Event()
        with suppress(OSError):
            for n in range(1000):
                peer.sendall(part[n : n + 1] or b"x")
                ended.wait(0.02)

    return script


@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\nx: ", b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n", CHUNKED],
)
def test_a_response_that_drips_is_given_up_in_time(start: bytes) -> None:
    with serving(dripping(start)) as server:
        connection = connected(server, SHORT)
        watch = Stopwatch()
        with pytest.raises(TimeoutError):
            post(connection)

    assert watch.seconds < 1


def test_a_slow_upload_leaves_the_response_only_the_rest_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed = [0.0]
    monkeypatch.setattr(connections, "monotonic", lambda: passed[0])

    def script(peer: socket.socket) -> None:
        # The client has begun to send, and cannot end before this reads.
        peer.recv(1, socket.MSG_PEEK)
        passed[0] = 0.75 * LONG.read
        read_request(peer)
        peer.sendall(OK)

    with serving(script) as server:
        connection = connected(server)
        post(connection, b"x" * 20_000_000)
        assert connection._socket is not None
        assert connection._socket.gettimeout() == 0.25 * LONG.read
        connection.close()


def test_a_response_within_its_time_is_waited_for() -> None:
    def script(peer: socket.socket) -> None:
        read_request(peer)
        threading.Event().wait(0.2)
        peer.sendall(OK)

    with serving(script) as server:
        connection = connected(server)
        assert post(connection).body == b"ok"
        connection.close()


def test_a_server_that_takes_no_connection_is_given_up_in_time() -> None:
    """Its queue of connections is full, so that the kernel does not answer."""
    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        port = server.getsockname()[1]
        connection = Connection("127.0.0.1", port, tls=False, limits=Limits(0.1, 5))
        watch = Stopwatch()

        with pytest.raises(TimeoutError):
            post(connection)

    assert watch.seconds < 1


def test_a_closed_port_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    with pytest.raises(ConnectionRefusedError):
        post(Connection("127.0.0.1", port, tls=False, limits=LONG))


def test_closing_twice_or_before_a_request_does_nothing() -> None:
    connection = Connection("127.0.0.1", 1, tls=False, limits=LONG)
    connection.close()
    connection.close()


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://sqs.us-east-1.amazonaws.com", "sqs.us-east-1.amazonaws.com"),
        ("https://example.com:443/path", "example.com"),
        ("https://example.com:8443", "example.com:8443"),
        ("http://example.com:80", "example.com"),
        ("http://example.com:443", "example.com:443"),
        ("http://127.0.0.1:4566", "127.0.0.1:4566"),
        ("http://[::1]:4566", "[::1]:4566"),
        ("https://[::1]", "[::1]"),
    ],
)
def test_the_header_host_has_the_port_where_it_is_not_the_usual_one(url: str, host: str) -> None:
    assert Connection.to(urlsplit(url), LONG).host == host


def test_a_server_with_an_ipv6_address_is_reached() -> None:
    with serving(answers(OK), host="::1") as server:
        connection = Connection.to(urlsplit(f"http://[::1]:{server.port}"), LONG)
        assert post(connection).body == b"ok"
        connection.close()
