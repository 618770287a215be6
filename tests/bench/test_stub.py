"""The stub answers as AWS does where a client looks, and counts what it answers."""

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.measuring import Stub, stub
from tests.waiting import DEADLINE


@pytest.fixture
def aws() -> Iterator[Stub]:
    with stub() as running:
        yield running


@contextmanager
def connected(aws: Stub) -> Iterator[socket.socket]:
    port = int(aws.endpoint.rpartition(":")[2])
    context = ssl.create_default_context(cafile=str(aws.trusted))
    with (
        socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        yield connection


def ask(aws: Stub, *parts: bytes) -> bytes:
    """Sends a request in parts, each after the answer to the one before; returns all answers."""
    received = b""
    with connected(aws) as connection:
        for part in parts:
            connection.sendall(part)
            received += connection.recv(65_536)
    return received


def operation(target: str, body: bytes) -> bytes:
    head = f"POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: {target}\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def test_a_batch_of_messages_is_taken_whole(aws: Stub) -> None:
    body = json.dumps({"Entries": [{"Id": "0"}, {"Id": "1"}]}).encode()
    answer = ask(aws, operation("AmazonSQS.SendMessageBatch", body)).partition(b"\r\n\r\n")[2]
    assert [entry["Id"] for entry in json.loads(answer)["Successful"]] == ["0", "1"]


def test_a_body_may_wait_for_100_continue(aws: Stub) -> None:
    body = b"x" * 1_000_000
    head = b"PUT /b/k HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n"
    answer = ask(aws, head, body)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


def test_a_body_in_chunks_ends_with_its_trailer(aws: Stub) -> None:
    head = b"PUT /b/k HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n"
    answer = ask(aws, head, body)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert aws.counts() == {"s3 put": 1}


def test_two_requests_in_one_packet_have_two_answers(aws: Stub) -> None:
    both = operation("DynamoDB_20120810.PutItem", b"{}") + operation("AmazonSQS.SendMessage", b"{}")
    with connected(aws) as connection:
        connection.sendall(both)
        received = b""
        while received.count(b"HTTP/1.1 200 OK") < 2:
            received += connection.recv(65_536)
    assert aws.counts() == {"putitem": 1, "sendmessage": 1}
    assert aws.counts() == {}
