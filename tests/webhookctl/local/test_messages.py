import asyncio
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from webhookctl.local.http import messages
from webhookctl.local.http.messages import Connections, Request, Response
from webhookctl.local.ports import free_port

POST = Request(b"POST", b"/a?b=%2F", ((b"Host", b"h"), (b"X-Odd-CASE", b"kept")), b"\x00\xff")


def _whole_request(connection: socket.socket) -> bytes:
    """Reads up to the end that the request itself tells: it may come in several pieces.

    An unread rest would turn the close into a reset.
    """
    received = b""
    while not _is_whole(received):
        piece = connection.recv(65536)
        if not piece:
            break
        received += piece
    return received


def _is_whole(received: bytes) -> bool:
    head, end, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    return bool(end) and len(body) >= (int(length[1]) if length else 0)


async def send(port: int, *requests: Request) -> Response:
    """Sends requests one after the other; returns the last response."""
    connections = Connections()
    try:
        for request in requests:
            response = await connections.send(port, request)
    finally:
        connections.close()
    return response


@contextmanager
def _server(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Takes one connection, remembers what comes, answers as told and closes."""
    with _patient_server([answer]) as found:
        yield found


@contextmanager
def _patient_server(*answers: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Takes as many connections as it has lists of answers, one for each request."""
    received: list[bytes] = []

    def serve() -> None:
        for each in answers:
            connection, _ = listener.accept()
            with connection:
                for answer in each:
                    received.append(_whole_request(connection))
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], received
        thread.join()


def test_a_request_goes_out_byte_for_byte() -> None:
    with _server(b"HTTP/1.1 204 \r\n\r\n") as (port, received):
        asyncio.run(send(port, POST))
    assert received == [
        b"POST /a?b=%2F HTTP/1.1\r\nHost: h\r\nX-Odd-CASE: kept\r\nContent-Length: 2\r\n\r\n"
        b"\x00\xff"
    ]


@pytest.mark.parametrize("method", [b"GET", b"HEAD", b"OPTIONS", b"DELETE"])
def test_a_request_without_a_body_tells_no_length(method: bytes) -> None:
    with _server(b"HTTP/1.1 204 \r\n\r\n") as (port, received):
        asyncio.run(send(port, Request(method, b"/", ((b"Host", b"h"),))))
    assert received == [method + b" / HTTP/1.1\r\nHost: h\r\n\r\n"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nabc",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 3\r\n\r\nabc",
    ],
    ids=["length", "chunked", "until the end", "after 100"],
)
def test_an_answer_is_read_whole_however_it_is_framed(answer: bytes) -> None:
    with _server(answer) as (port, _):
        assert asyncio.run(send(port, POST)) == Response(200, ((b"X-A", b"1"),), b"abc")


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na", b"no HTTP at all\r\n\r\n"]
)
def test_an_answer_that_breaks_off_is_a_connection_error(answer: bytes) -> None:
    with _server(answer) as (port, _), pytest.raises(ConnectionError):
        asyncio.run(send(port, POST))


def test_a_closed_port_is_a_connection_error() -> None:
    with pytest.raises(ConnectionError):
        asyncio.run(send(free_port(), POST))


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
CLOSED = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def test_requests_one_after_another_use_one_connection() -> None:
    with _patient_server([OK, OK, OK]) as (port, received):
        asyncio.run(send(port, POST, POST, POST))
    assert received == [received[0]] * 3


def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    with _patient_server([CLOSED], [OK]) as (port, received):
        asyncio.run(send(port, POST, POST))
    assert len(received) == 2


def test_a_connection_that_was_idle_for_long_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server may close it at any moment, with our request on its way."""
    monkeypatch.setattr(messages, "KEPT", 0.0)
    with _patient_server([OK], [OK]) as (port, received):
        asyncio.run(send(port, POST, POST))
    assert len(received) == 2
