"""An attempt that calls destinations: what `ctx.http` is made for, and what it is told."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.client.client import DestinationClient
from webhook_inbox.destinations.client.factory import HttpClients
from webhook_inbox.destinations.gate import Gate
from webhook_inbox.destinations.propagation import CallChain
from webhook_inbox.domain.idempotency import IdempotencyKey
from webhook_inbox.domain.manifest import DestinationSpec

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CRM = "https://crm.example/v1"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@dataclass
class RecordingGate(Gate):
    """Lets all calls begin, or raises `refusal`."""

    refusal: Exception | None = None
    entered: list[tuple[str, datetime]] = field(default_factory=list)
    answers: list[CallOutcome] = field(default_factory=list)

    def enter(
        self, spec: DestinationSpec, reservations: dict[str, int], *, until: datetime
    ) -> None:
        self.entered.append((spec.name, until))
        if self.refusal:
            raise self.refusal

    def report(self, spec: DestinationSpec, answer: CallOutcome) -> None:
        self.answers.append(answer)


@dataclass
class Effects:
    """A journal in memory, and the effect that is running under `key`, if any."""

    key: str = ""
    committed: dict[str, str] = field(default_factory=dict)
    begun: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    failed: list[tuple[Exception, bool]] = field(default_factory=list)

    @property
    def running(self) -> "Effects | None":
        return self if self.key else None

    def begin_call(self, call: str) -> None:
        self.calls.append(call)

    def end_call(self) -> None:
        self.calls.append("succeeded")

    def fail_call(self, error: Exception, *, acts: bool) -> None:
        self.failed.append((error, acts))

    def redact(self, text: str) -> str:
        return text


@dataclass
class Attempt:
    """One attempt of a run."""

    source: str = "stripe"
    event_id: str = "evt_1"
    handler: str = "stripe.fulfil"
    deadline: datetime = NOW + timedelta(seconds=50)
    traceparent: str = f"00-{TRACE}-00f067aa0ba902b7-01"
    call_chain: CallChain = field(default_factory=CallChain)
    values: dict[str, Any] = field(default_factory=dict)
    reservations: dict[str, int] = field(default_factory=dict)
    gate: RecordingGate = field(default_factory=RecordingGate)
    effects: Effects = field(default_factory=Effects)

    def secrets(self, name: str) -> tuple[str, ...]:
        value = self.values.get(name, ())
        if isinstance(value, Exception):
            raise value
        return (value,) if isinstance(value, str) else tuple(value)

    def effect(self, name: str, fn: Callable[[IdempotencyKey], Any], **plan: Any) -> Any:
        self.effects.begun.append((name, plan))
        if name not in self.effects.committed:
            key = IdempotencyKey(f"{name}:{self.handler}:{self.source}:{self.event_id}")
            self.effects.key = key
            try:
                self.effects.committed[name] = json.dumps(fn(key))
            finally:
                self.effects.key = ""
        return json.loads(self.effects.committed[name])


class Sink:
    """A destination that keeps what it was sent and gives the answers that it was told."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else httpx.Response(200, json={"id": "n-1"})
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def last(self) -> httpx.Request:
        return self.requests[-1]


def crm(**more: Any) -> DestinationSpec:
    return DestinationSpec("crm", CRM, **more)


def client(
    sink: Callable[[httpx.Request], httpx.Response],
    attempt: Attempt | None = None,
    *,
    clock: ManualClock | None = None,
    spec: DestinationSpec | None = None,
    **more: Any,
) -> DestinationClient:
    clients = HttpClients(clock=clock or ManualClock(NOW), transport=httpx.MockTransport(sink))
    return clients(spec or crm(**more), attempt or Attempt())


def shown(request: httpx.Request, *names: str) -> Mapping[str, str | None]:
    return {name: request.headers.get(name) for name in names}
