"""An inbox for the command line to operate: the real core over the doubles, or over moto."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

import boto3
import pytest

from tests.contract.resources import create_bucket, create_table
from tests.unit.support.world import ACME, FULFIL, GITHUB, SECRET, World, handler
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.secret_documents import SecretDocuments
from webhook_inbox.client.suggestions import PLAIN
from webhook_inbox.client.target import NoStack, Target
from webhook_inbox.domain.errors import AccessDenied, InboxError
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery, Run
from webhook_inbox.domain.ports import Blobs, Clock, Queue, Table
from webhook_inbox.domain.secrets import TOKEN_KEY
from webhook_inbox.ledger.lease import Lease, claim
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.queue.message import RunMessage
from webhookctl.__main__ import main
from webhookctl.invocation import World as Outside

STACK = "WebhookInbox-test"
STACK_ID = f"arn:aws:cloudformation:eu-central-1:123456789012:stack/{STACK}/1"
DEAD_URL = "https://sqs.us-east-1.amazonaws.com/123456789012/absent"
# moto's caller, alone and with `--by kim`.
CALLER = "arn:aws:sts::123456789012:user/moto"
KIM = f"{CALLER} for kim"
PREFIX = "webhook-inbox/WebhookInbox-test/"
MANIFEST = Manifest(
    stage="test",
    sources={
        "acme": ACME,
        "github": GITHUB,
        "stripe": SourceSpec("stripe", "stripe", "stripe"),
    },
    handlers={
        "acme.fulfil": FULFIL,
        "acme.notify": handler("acme.notify", "paid", "refunded"),
        "github.announce": handler("github.announce", "issues*", source="github"),
        "stripe.book": handler("stripe.book", "invoice.*", source="stripe"),
    },
)


@cache
def client(service: str) -> Any:
    """Returns moto's client; making one takes longer than most tests."""
    return boto3.client(service)


def documents() -> SecretDocuments:
    """Returns the documents of the inbox's secrets, in moto."""
    return SecretDocuments(client("secretsmanager"), PREFIX)


class Inbox(World):
    """The core's own stage, with more sources."""

    def __init__(self) -> None:
        super().__init__(MANIFEST)
        self.vault.rotate("stripe", SECRET)

    def move_to_aws(self) -> None:
        """Keeps its rows and bodies in moto's DynamoDB and S3 from now on."""
        create_bucket(client("s3"), "bodies")
        tables = client("dynamodb")
        self.table = DynamoTable(tables, create_table(tables, "ledger"))  # type: ignore[assignment]
        self.blobs = S3Blobs(client("s3"), "bodies")  # type: ignore[assignment]
        self.ledger = Ledger(table=self.table, blobs=self.blobs)
        self.deploy(MANIFEST)

    def begin(self, *, by: str = "worker-1", seconds: float = 60) -> Run:
        """Claims the next run and goes no further, as a worker does that is at work, or lost."""
        message = self.taken()
        reference = RunMessage.decode(message.body)
        return claim(
            self.table,
            event=self.overview(reference.event_id, reference.source).event,
            spec=MANIFEST.handlers[reference.handler],
            generation=reference.generation,
            message=message,
            lease=Lease("lease-1", by, self.now + timedelta(seconds=seconds), "v1"),
            now=self.now,
        )


class StagedTarget(Target):
    """A target whose queues are the inbox's own; its table and bucket are moto's."""

    @property
    def queues(self) -> Mapping[str, Queue]:
        queues: Mapping[str, Queue] = self.client("queues")
        return queues

    @property
    def dlqs(self) -> Mapping[str, Queue]:
        dlqs: Mapping[str, Queue] = self.client("dlqs")
        return dlqs


class MemoryTarget(StagedTarget):
    """A target whose table and bucket are the inbox's doubles, fifty times as fast as moto's."""

    @property
    def table(self) -> Table:
        table: Table = self.client("table")
        return table

    @property
    def blobs(self) -> Blobs:
        blobs: Blobs = self.client("blobs")
        return blobs


class Lambda:
    """The client of a Lambda whose function is the inbox's replay, run here."""

    def __init__(self, inbox: World) -> None:
        self.inbox = inbox
        self.payloads: list[dict[str, Any]] = []
        self.answer: dict[str, Any] | None = None

    def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803
        assert (FunctionName, InvocationType) == ("replay-function", "RequestResponse")
        payload = json.loads(Payload)
        self.payloads.append(payload)
        if self.answer is not None:
            return self.answer
        try:
            return answered(self.inbox.replay(**payload).to_data())
        except InboxError as error:
            return failed(str(error), type(error).__name__)


def answered(data: object) -> dict[str, Any]:
    return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(data).encode())}


def failed(message: str, kind: str = "Exception") -> dict[str, Any]:
    fault = {"errorMessage": message, "errorType": kind}
    return {**answered(fault), "FunctionError": "Unhandled"}


@dataclass(frozen=True)
class Result:
    """The result of a command; `err` is without the line that names the target."""

    code: int
    out: str
    err: str
    target: str = ""

    @property
    def data(self) -> Any:
        """The one JSON object that was printed."""
        return json.loads(self.out)

    @property
    def objects(self) -> list[Any]:
        """The JSON objects that were printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Cli:
    """Calls the command line in this process, through its error boundary."""

    def __init__(
        self,
        inbox: World,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.inbox = inbox
        self.replay = Lambda(inbox)
        self.api_url = "https://inbox.example"
        self.urls = {name: f"{self.api_url}/webhooks/{name}" for name in MANIFEST.sources}
        self.local = False
        self.deployed = True
        self.manifest: Manifest | None = MANIFEST
        self.program = PLAIN
        self.clock: Clock = inbox.clock
        self.selected: list[Selection] = []
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: str | io.TextIOBase = "") -> Result:
        stream = io.StringIO(stdin) if isinstance(stdin, str) else stdin
        self._monkeypatch.setattr("sys.stdin", stream)
        self._capsys.readouterr()
        outside = Outside(self._connect, self.clock, program=self.program)
        with pytest.raises(SystemExit) as ended:
            main(arguments, world=outside)
        captured = self._capsys.readouterr()
        target, err = _without_target(captured.err)
        return Result(int(ended.value.code or 0), captured.out, err, target)

    def _connect(self, selection: Selection) -> Target:
        self.selected.append(selection)
        if not self.deployed:
            raise NoStack(STACK, self._client)
        kind = StagedTarget if isinstance(self.inbox.table, DynamoTable) else MemoryTarget
        return kind(
            name=STACK,
            local=self.local,
            stage="test",
            table_name="ledger",
            bucket_name="bodies",
            secret_prefix=PREFIX,
            generated_keys={TOKEN_KEY: PREFIX + TOKEN_KEY},
            replay_function="replay-function",
            urls=self.urls,
            client=self._client,
            api_url=self.api_url,
            queue_urls={lane: f"https://sqs.example/{lane}" for lane in self.inbox.queues},
            dlq_urls=dict.fromkeys(self.inbox.queues, DEAD_URL),
            processors={"default": "processor"},
            reconciler="reconciler",
            log_groups={"reconciler": "the-reconciler-logs", "ingest": "the-ingest-logs"},
            read_manifest=self._read_manifest,
            stack_id=STACK_ID,
        )

    def _read_manifest(self) -> Manifest:
        if self.manifest is None:
            raise AccessDenied("cloudformation", "GetTemplateSummary", "AccessDenied: not for you")
        return self.manifest

    def _client(self, service: str) -> Any:
        doubles = {
            "lambda": self.replay,
            "table": self.inbox.table,
            "blobs": self.inbox.blobs,
            "queues": self.inbox.queues,
            "dlqs": self.inbox.dlqs,
        }
        return doubles[service] if service in doubles else client(service)


def _without_target(err: str) -> tuple[str, str]:
    """Returns the line that names the target, and all others."""
    lines = err.splitlines(keepends=True)
    named = [line for line in lines if line.startswith((f"{STACK} · ", "local · "))]
    return "".join(named).rstrip("\n"), "".join(line for line in lines if line not in named)


class Server(ThreadingHTTPServer):
    request_queue_size = 64


# Path, headers and body of a request to status and text of its answer.
Answering = Callable[[str, dict[str, str], bytes], tuple[int, str]]


def ingesting(inbox: World) -> Answering:
    """Answers as the inbox's ingest does."""

    def answer(path: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        source = path.rpartition("/")[2]
        inbox.clock.advance(seconds=0.001)  # as in `World.deliver`
        receipt = inbox.ingest.receive(Delivery(source, "POST", path, "", headers, body, inbox.now))
        said = {"status": str(receipt.outcome), "event_id": receipt.event_id}
        return receipt.status, json.dumps(said)

    return answer


@contextmanager
def serving(answer: Answering) -> Iterator[str]:
    """Serves over HTTP, one request at a time, and yields the address."""
    lock = Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                status, text = answer(self.path, headers, body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None: ...

    server = Server(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
