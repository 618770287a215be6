"""Processes of ingest take the same deliveries at once while the sockets of AWS misbehave.

Requests and answers go over TLS. Each fault strikes any call: the connection ends before the
request has its effect, after it, or within the answer, or the answer is another one.
"""

import json
import os
import random
import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, NamedTuple

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from moto.core.models import botocore_stubber

from tests.functions.account import Account
from tests.functions.bundles import FUNCTIONS
from tests.functions.inbox import SECRET
from tests.functions.invocations import http_event
from tests.unit.adapters.aws.certificates import made_authority
from tests.unit.adapters.aws.servers import read_request
from tests.waiting import DEADLINE
from webhook_inbox import providers
from webhook_inbox.domain.digest import digest_of
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.provider import Sample
from webhook_inbox.ledger.schema import identify

PROCESSES = 2
EVENTS = 8
# The server applies a fault to one call in three.
RARITY = 3
# Answers each event that is written to it. A busy machine must not add faults of its own.
RUN = """
import json, sys
from webhook_inbox.adapters.aws import lean_clients
from webhook_inbox.adapters.aws.connection import Limits

lean_clients.QUICK = lean_clients.QUICK_BLOBS = Limits(connect=10, read=1)
from ingest import lambda_function

lambda_function.budget._total = 60.0

class Context:
    aws_request_id = "id"

for line in sys.stdin:
    answer = lambda_function.lambda_handler(json.loads(line), Context())
    print(json.dumps(answer), file=sys.stderr, flush=True)
"""
HOSTS = {"DynamoDB_20120810": "dynamodb", "AmazonSQS": "sqs", "secretsmanager": "secretsmanager"}
THROTTLED = b'{"__type":"com.amazonaws#ThrottlingException","message":"slow down"}'
PROXY = b"<html>the answer of a proxy</html>"


def answered(status: int, body: bytes, *lengths: str) -> bytes:
    named = lengths or (f"content-length: {len(body)}",)
    return "\r\n".join([f"HTTP/1.1 {status} X", *named, "", ""]).encode() + body


def chunked(status: int, body: bytes) -> bytes:
    parts = [body[n : n + 7] for n in range(0, len(body), 7)]
    text = b"".join(b"%x;x=y\r\n%s\r\n" % (len(part), part) for part in parts)
    text += b"0\r\nx-trailer: 1\r\n\r\n"
    interim = b"HTTP/1.1 100 Continue\r\n\r\n" * 2
    return interim + answered(status, text, "transfer-encoding: chunked")


def shorter(status: int, body: bytes) -> bytes:
    return answered(status, body, f"content-length: {max(len(body) - 1, 0)}")


def longer(status: int, body: bytes) -> bytes:
    return answered(status, body, f"content-length: {len(body) + 1}")


def of_two_lengths(status: int, body: bytes) -> bytes:
    return answered(status, body, f"content-length: {len(body)}", "content-length: 1")


def reset(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def wait(peer: socket.socket) -> None:
    """Waits until the client gives up."""
    peer.recv(1)


def close(_: socket.socket) -> None:
    """Does nothing more."""


class Fault(NamedTuple):
    """A fault of one call: it is performed or not, has this reply, and its connection ends so."""

    effective: bool
    reply: Callable[[int, bytes], bytes] = lambda status, body: b""
    end: Callable[[socket.socket], None] | None = None


FAULTS = (
    Fault(False, end=close),
    Fault(False, end=reset),
    Fault(False, lambda *_: answered(503, b"")),
    Fault(False, lambda *_: answered(500, PROXY)),
    Fault(False, lambda *_: answered(400, THROTTLED)),
    Fault(True, end=close),
    Fault(True, end=reset),
    Fault(True, end=wait),
    Fault(True, lambda status, body: answered(status, body)[:-1], close),
    Fault(True, lambda status, body: answered(status, body)[:20], close),
    Fault(True, lambda *_: answered(200, PROXY)),
    Fault(True, shorter),
    Fault(True, longer, close),
    Fault(True, of_two_lengths),
    Fault(True, chunked),
    # The second one is no answer to the next request.
    Fault(True, lambda status, body: answered(status, body) * 2),
    Fault(True, answered, close),
)


@dataclass
class Aws:
    """AWS by moto, over sockets; some of the calls meet a fault unless the storm is over."""

    context: ssl.SSLContext
    listening: socket.socket
    over: bool = False
    calls: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    threads: list[threading.Thread] = field(default_factory=list)

    def accept(self) -> None:
        while True:
            try:
                peer, _ = self.listening.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(peer,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _serve(self, plain: socket.socket) -> None:
        plain.settimeout(DEADLINE)
        with suppress(OSError), self.context.wrap_socket(plain, server_side=True) as peer:
            while request := read_request(peer):
                if not self._answer(peer, request):
                    return

    def _answer(self, peer: ssl.SSLSocket, request: bytes) -> bool:
        """Answers a request; returns whether the connection goes on."""
        with self.lock:
            turn, left = divmod(self.calls, RARITY)
            self.calls += 1
        fault = Fault(True, answered) if self.over or left else FAULTS[turn % len(FAULTS)]
        status, body = self._of_moto(request) if fault.effective else (0, b"")
        peer.sendall(fault.reply(status, body))
        if fault.end is not None:
            fault.end(peer)
        return fault.end is None

    def _of_moto(self, request: bytes) -> tuple[int, bytes]:
        head, _, body = request.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        method, path, _ = first.split(" ")
        given = dict(line.split(": ", 1) for line in lines)
        service = HOSTS.get(given.get("x-amz-target", "").partition(".")[0], "s3")
        host = f"{service}.us-east-1.amazonaws.com"
        sent = HTTPHeaders()
        for name, value in {**given, "host": host}.items():
            sent[name] = value
        prepared = AWSPreparedRequest(method, f"https://{host}{path}", sent, body, False)
        # Moto tests a condition and writes in two steps.
        with self.lock:
            answer = botocore_stubber.process_request(prepared)
        assert answer is not None, path
        status, _, content = answer
        return status, content.encode() if isinstance(content, str) else bytes(content)


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Aws]:
    authority = made_authority(tmp_path)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        made = Aws(authority.context("localhost"), listening)
        thread = threading.Thread(target=made.accept, daemon=True)
        thread.start()
        yield made
        listening.shutdown(socket.SHUT_RDWR)
        for each in (thread, *made.threads):
            each.join(40)
            assert not each.is_alive()


@dataclass(frozen=True)
class Post:
    """A delivery of an event; `request` is the event of the HTTP API, as JSON."""

    source: str
    event_id: str
    body: bytes
    request: str

    @property
    def place(self) -> tuple[str, str]:
        return self.source, self.event_id


def posted(manifest: Manifest, source: str, event_id: str, body: bytes) -> Post:
    provider = providers.load(manifest.sources[source])
    kind = "issues.opened" if source == "github" else "lab.fine"
    headers = provider.sign(Sample(event_id, kind, body), SECRET, datetime.now(UTC))
    event = http_event(f"/webhooks/{source}", headers=headers, body=body)
    return Post(source, event_id, body, json.dumps(event))


def deliveries(manifest: Manifest) -> list[Post]:
    """Small and large events of two sources, three times each; some with other content once."""
    made: list[Post] = []
    for number in range(EVENTS):
        size = 12_000 if number % 6 > 3 else 20
        source = "github" if number % 3 == 2 else "acme"
        for content in [number] * 3 + [number + 1000] * (number % 4 == 1):
            filling = random.Random(content).randbytes(size).hex()
            told = {"type": "lab.fine", "action": "opened", "issue": {}, "x": filling}
            body = json.dumps(told).encode()
            made.append(posted(manifest, source, f"evt-{number}", body))
    random.Random(1).shuffle(made)
    return made


class Storm:
    """Hands deliveries to processes until each is answered well, as a patient provider does."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.answers: list[tuple[Post, int]] = []
        self.logs: list[dict[str, Any]] = []
        self._command = command
        self._environment = environment
        self._lock = threading.Lock()

    def run(self, posts: list[Post]) -> None:
        waiting: SimpleQueue[Post] = SimpleQueue()
        for post in posts:
            waiting.put(post)
        threads = [threading.Thread(target=self._work, args=(waiting,)) for _ in range(PROCESSES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, waiting: SimpleQueue[Post]) -> None:
        pipe = subprocess.PIPE
        with subprocess.Popen(
            self._command, env=self._environment, text=True, stdin=pipe, stdout=pipe, stderr=pipe
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            with suppress(Empty):
                while True:
                    post = waiting.get(block=False)
                    process.stdin.write(f"{post.request}\n")
                    process.stdin.flush()
                    self._note(post, json.loads(process.stderr.readline()), process.stdout, waiting)
            process.stdin.close()

    def _note(self, post: Post, answer: Any, logs: IO[str], waiting: SimpleQueue[Post]) -> None:
        line = json.loads(logs.readline())
        with self._lock:
            self.answers.append((post, answer["statusCode"]))
            self.logs.append(line)
        if answer["statusCode"] == 503:
            waiting.put(post)


def test_every_event_is_stored_once_and_sent_whatever_the_sockets_do(
    aws: Aws, account: Account, built: tuple[Path, Manifest], manifest: Manifest, tmp_path: Path
) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join((str(built[0]), str(FUNCTIONS))),
        "SSL_CERT_FILE": str(tmp_path / "authority.pem"),
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": f"https://localhost:{aws.listening.getsockname()[1]}",
        "POWERTOOLS_SERVICE_NAME": "ingest",
        **account.environment,
    }
    storm = Storm([sys.executable, "-c", RUN], environment)
    posts = deliveries(manifest)

    storm.run(posts)
    assert aws.calls > RARITY * len(FAULTS)
    aws.over = True
    storm.run(posts)

    assert {line["outcome"] for line in storm.logs}.isdisjoint({"broken", "rejected"})
    rows = {identify(row["pk"]): row for row in account.rows("event#") if row["sk"] == "event"}
    assert rows.keys() == {post.place for post in posts}
    sent = Counter(
        (m["source"], m["event_id"], m["handler"])
        for m in (json.loads(message["Body"]) for message in account.receive())
    )
    assert 409 in {status for _, status in storm.answers}
    for place, row in rows.items():
        own = [(post, status) for post, status in storm.answers if post.place == place]
        stored = row["fingerprint"].hex()
        assert {digest_of(post.body) == stored for post, status in own if status < 300} == {True}
        others = {status for post, status in own if digest_of(post.body) != stored}
        assert others <= {409, 503}
        statuses = [status for _, status in own]
        # After a 503 the event may be stored, and the next delivery is its duplicate.
        assert statuses.count(202) == 1 or (503 in statuses and 202 not in statuses)
        assert row["runs"]
        assert all(sent[*place, handler] for handler in row["runs"])
