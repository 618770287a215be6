"""The four functions together, driven as AWS and the providers drive them."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from typing import Any

import pytest

from tests.functions.account import Account
from tests.functions.embedded_metrics import Point, points
from tests.functions.invocations import LambdaContext, http_event, sqs_event, sqs_record
from tests.stopwatch import Stopwatch
from webhook_inbox import providers
from webhook_inbox.adapters.system import SystemClock
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.provider import Sample

# Base64 of "not a secret, only a test": a key for every scheme, whatever form its secrets have.
SECRET = base64.b64encode(b"not a secret, only a test").decode()


@dataclass
class Answer:
    """The answer to a provider, and the seconds until it."""

    status: int
    headers: dict[str, str]
    body: str
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Output:
    """The output of a function: logs and metrics, one JSON object a line."""

    capture: pytest.CaptureFixture[str]
    text: str = ""

    def read(self) -> list[dict[str, Any]]:
        """Returns what was written so far and not read yet."""
        captured = self.capture.readouterr()
        self.text += captured.out + captured.err
        entries = [json.loads(line) for line in captured.out.splitlines() if line.startswith("{")]
        for entry in entries:
            points(entry)
        return entries

    def logs(self) -> list[dict[str, Any]]:
        return [entry for entry in self.read() if "level" in entry]

    def metrics(self) -> list[dict[str, Any]]:
        return [entry for entry in self.read() if "_aws" in entry]

    def points(self) -> list[Point]:
        """Returns the values of metrics that were written and not read yet."""
        return [point for entry in self.read() for point in points(entry)]


@dataclass
class Inbox:
    """An account, and the functions in it; each is started when it is first called."""

    account: Account
    manifest: Manifest
    cold: Callable[[str], Any]
    output: Output
    started: dict[str, Any] = field(default_factory=dict)

    def module(self, function: str) -> Any:
        """Returns a function's entry point."""
        if function not in self.started:
            self.started[function] = self.cold(function)
        return self.started[function]

    def invoke(self, function: str, event: Any, *, remaining: float = 60.0) -> Any:
        """Invokes a function; what it returns goes through JSON, as Lambda's answer does."""
        context = LambdaContext(function, remaining)
        return json.loads(json.dumps(self.module(function).lambda_handler(event, context)))

    # -- as a provider

    def sign(
        self,
        source: str,
        body: bytes,
        *,
        event_id: str = "evt-1",
        event_type: str = "",
        secret: str = SECRET,
        at: datetime | None = None,
    ) -> dict[str, str]:
        """Returns the headers of a valid delivery."""
        provider = providers.load(self.manifest.sources[source])
        return provider.sign(Sample(event_id, event_type, body), secret, at or SystemClock().now())

    def request(self, event: Mapping[str, Any]) -> Answer:
        """Hands an HTTP API event to ingest."""
        self.module("ingest")
        watch = Stopwatch()
        answer = self.invoke("ingest", event, remaining=10)
        return Answer(answer["statusCode"], answer["headers"], answer["body"], watch.seconds)

    def post(
        self, source: str, body: bytes, headers: Mapping[str, str], *, binary: bool | None = None
    ) -> Answer:
        path = f"/webhooks/{source}"
        return self.request(http_event(path, headers=headers, body=body, binary=binary))

    def deliver(
        self, event_type: str, *, source: str = "acme", event_id: str = "evt-1", **content: Any
    ) -> Answer:
        """Delivers a small JSON event of a type, signed."""
        body = json.dumps({"type": event_type, **content}).encode()
        headers = self.sign(source, body, event_id=event_id, event_type=event_type)
        return self.post(source, body, headers)

    # -- as the event source mapping

    def process(self, *messages: Mapping[str, Any], remaining: float = 60.0) -> list[str]:
        """Hands messages to the processor as one batch; returns the ids to be kept."""
        event = sqs_event(map(sqs_record, messages))
        answer = self.invoke("processor", event, remaining=remaining)
        assert list(answer) == ["batchItemFailures"]
        kept = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        for message in messages:
            if message["MessageId"] not in kept:
                self.account.delete(dict(message))
        return kept

    def work(self) -> None:
        """Processes all that can be received, one message a batch."""
        while messages := self.account.receive():
            for message in messages:
                self.process(message)

    @property
    def lab(self) -> Any:
        """The laboratory's module, as the processor has it."""
        self.module("processor")
        return import_module("handlers.lab")
