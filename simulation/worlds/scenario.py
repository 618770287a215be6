"""The parts of a simulated world and the budget of its faults."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, cached_property
from typing import Any, Final
from urllib.parse import urlencode

from simulation.engine.acting import CUSTOMER, AttemptOutcome, Behavior, Handlers
from simulation.engine.programs import load_provider
from webhook_inbox.adapters.memory.system import START
from webhook_inbox.domain.manifest import (
    ApproversSpec,
    Backoff,
    DestinationSpec,
    HandlerSpec,
    Manifest,
    SourceSpec,
)
from webhook_inbox.domain.model import BATCH, Delivery
from webhook_inbox.domain.provider import Sample
from webhook_inbox.ingest.fingerprint import fingerprint
from webhook_inbox.reconciler.due_index import DRAIN
from webhook_inbox.replay.request import ReplayRequest

SECRET: Final = "a-secret-of-the-provider"  # noqa: S105 - obviously fake
# "acme" signs id, timestamp and body, "github" only the body.
ACME: Final = SourceSpec(
    "acme",
    "hmac",
    "acme",
    settings={
        "signature": {"header": "X-Acme-Signature", "signs": "{id}.{timestamp}.{body}"},
        "timestamp": {"header": "X-Acme-Timestamp", "tolerance": "5m"},
        "event_id": {"header": "X-Acme-Id"},
        "event_type": {"header": "X-Acme-Type"},
    },
    tenant=("json", "tenant"),
    personal=("customer",),
)
GITHUB: Final = SourceSpec("github", "github", "github")
# "forms" signs the fields of a form in any order, and not the id.
FORMS: Final = SourceSpec(
    "forms",
    "hmac",
    "forms",
    settings={
        "signature": {"header": "X-Form-Signature", "signs": "{form}"},
        "event_id": {"header": "X-Form-Id"},
        "event_type": {"header": "X-Form-Type"},
    },
)
# "line" sends batches.
LINE: Final = SourceSpec("line", "line", "line")
# "vary" signs as "acme", and counts its attempts in the body.
VARY: Final = replace(ACME, name="vary", volatile=("attempt",), tenant=())
# "lax" signs its time only, and stores one type.
LAX: Final = SourceSpec(
    "lax",
    "hmac",
    "lax",
    types=("paid",),
    settings={
        "signature": {"header": "X-Lax-Signature", "signs": "{timestamp}", "partial": True},
        "timestamp": {"header": "X-Lax-Timestamp", "tolerance": "24h"},
        "event_id": {"json": "version"},
        "event_type": {"json": "content"},
    },
)
# "typed" signs its id in a header, has its type in the body, and stores one type.
TYPED: Final = SourceSpec(
    "typed",
    "hmac",
    "typed",
    types=("paid",),
    settings={
        "signature": {"header": "X-Typed-Signature", "signs": "{id}.{timestamp}.{body}"},
        "timestamp": {"header": "X-Typed-Timestamp", "tolerance": "5m"},
        "event_id": {"header": "X-Typed-Id"},
        "event_type": {"json": "content"},
    },
)
SOURCES: Final = {source.name: source for source in (ACME, GITHUB, FORMS, LINE, LAX, TYPED, VARY)}
TYPES: Final = {
    "typed": "paid",
    "acme": "paid",
    "github": "issues",
    "forms": "posted",
    "line": "message",
    "lax": "paid",
    "vary": "paid",
}

SUCCEEDS: Final = AttemptOutcome()
FAILS: Final = AttemptOutcome(posts=False, error="transient")
FAILS_AFTER: Final = AttemptOutcome(error="transient")
REFUSES: Final = AttemptOutcome(posts=False, error="permanent")
DEFERS: Final = AttemptOutcome(posts=False, error="deferred", seconds=20)
DEFERS_LONG: Final = AttemptOutcome(posts=False, error="deferred", seconds=3600)
STALLS: Final = AttemptOutcome(seconds=59)
REDIRECTED: Final = AttemptOutcome(error="redirected")
LIMITED: Final = AttemptOutcome(posts=False, error="limited", seconds=20)


def handler(name: str, source: str = "acme", **settings: Any) -> HandlerSpec:
    """Returns the declaration of a handler."""
    settings = {"max_attempts": 2, "backoff": Backoff(base=10, factor=4), **settings}
    return HandlerSpec(name, name, "handle", source, ("*",), **settings)


def manifest(
    *handlers: HandlerSpec,
    sink: DestinationSpec | None = None,
    approvers: tuple[ApproversSpec, ...] = (),
) -> Manifest:
    """Returns a manifest with all sources, these handlers, this destination and these groups."""
    called = {sink.name: sink} if sink else {}
    groups = {group.name: group for group in approvers}
    specs = {spec.name: spec for spec in handlers}
    return Manifest("sim", "1", SOURCES, specs, called, approvers=groups)


@dataclass(frozen=True)
class Deployment:
    """A manifest, the handlers whose modules cannot be imported, and the handlers' behavior."""

    name: str
    manifest: Manifest
    broken: frozenset[str] = frozenset()
    behaviors: Mapping[str, Behavior] = field(default_factory=dict)

    @property
    def handlers(self) -> Handlers:
        """The handlers that a processor receives."""
        return Handlers(self.broken, self.behaviors)

    @cached_property
    def identity(self) -> str:
        """A value that identifies the deployment among all scenarios."""
        return f"{self.manifest!r} {sorted(self.broken)} {self.behaviors!r}"


@dataclass(frozen=True, slots=True)
class Webhook:
    """A delivery that a provider or an attacker will send.

    Attributes:
        name: the unique name in a trace.
        source: the source that receives it.
        event_id: the event id.
        content: the content; the same for every honest delivery of one event.
        forged: whether it is signed with a wrong secret.
        captured: whether it is a copy of an honest delivery under another id.
        grafted: whether it is other content under the signature of a preloaded delivery.
        retries: whether the sender retries until acknowledged.
        padding: bytes added to make the body large.
        items: the ids of the events of a batch.
        version: the version or sequence number, 0 for none.
        preloaded: whether it was accepted before the schedule starts.
        tenant: the tenant that its body names, "" for none; only "acme" has tenants.
        cut: whether its body lacks its end, as the provider signed it.
        attempt: the volatile part of its body, 0 for none; only "vary" has one.
    """

    name: str
    source: str = "acme"
    event_id: str = "e1"
    content: str = "42"
    forged: bool = False
    captured: bool = False
    grafted: bool = False
    retries: bool = True
    padding: int = 0
    items: tuple[str, ...] = ()
    version: int = 0
    preloaded: bool = False
    tenant: str = ""
    cut: bool = False
    attempt: int = 0

    @property
    def body(self) -> bytes:
        """The raw body."""
        if self.items:
            return _batch(self.items)
        if self.source == FORMS.name:
            # An attacker can order the fields of a captured form anew.
            fields = [("content", self.content), ("name", "it")]
            return urlencode(fields[::-1] if self.captured else fields).encode()
        body = _body(self.content, self.padding, self.version, self.tenant, self.attempt)
        return body[:-1] if self.cut else body

    def has_content_of(self, body: bytes) -> bool:
        """Returns whether a body is that of this webhook, in any attempt."""
        volatile = load_provider(SOURCES[self.source]).volatile if self.attempt else ()
        return self.body == body or (
            bool(volatile) and fingerprint(self.body, volatile) == fingerprint(body, volatile)
        )

    @property
    def event(self) -> tuple[str, str]:
        """The source and the id of the stored event."""
        if not self.items:
            return self.source, self.event_id
        volatile = load_provider(SOURCES[self.source]).volatile
        return self.source, f"{BATCH}:{fingerprint(self.body, volatile)}"

    @property
    def honest(self) -> bool:
        """True if the provider sent it unchanged."""
        return not (self.forged or self.captured or self.grafted)

    def delivered(self, now: datetime, request_id: str) -> Delivery:
        """Returns the HTTP request, sent and signed now."""
        secret = "another-secret" if self.forged else SECRET
        sample = Sample(self.event_id, TYPES[self.source], self.body)
        # The preloaded delivery was signed when the world began; its signature covers the time.
        signed_at = START if self.grafted else now
        signed = load_provider(SOURCES[self.source]).sign(sample, secret, signed_at)
        headers = {name.lower(): value for name, value in signed.items()}
        path = f"/webhooks/{self.source}"
        return Delivery(self.source, "POST", path, "", headers, self.body, now, request_id)


def signed_part(body: bytes) -> bytes:
    """Returns what a signature covers: of a form its fields in any order, else the body."""
    return b"&".join(sorted(body.split(b"&")))


@cache
def is_typed(source: str, body: bytes) -> bool:
    """Tells whether the type of an event can be read; only "typed" has it in its body."""
    try:
        return source != TYPED.name or isinstance(json.loads(body)["content"], str)
    except ValueError:
        return False


@cache
def _body(content: str, padding: int, version: int, tenant: str, attempt: int) -> bytes:
    filler = "".join(f"{n * 2654435761 % 2**32:08x}" for n in range(padding // 8))
    numbered = f', "version": {version}' if version else ""
    named = f', "tenant": "{tenant}"' if tenant else ""
    tried = f', "attempt": {attempt}' if attempt else ""
    more = f'"customer": "{CUSTOMER}"{numbered}{named}{tried}'
    return f'{{"content": "{content}", "filler": "{filler}", {more}}}'.encode()


@cache
def _batch(items: tuple[str, ...]) -> bytes:
    events = [{"type": "message", "timestamp": 1, "webhookEventId": id_} for id_ in items]
    return json.dumps({"destination": "U1", "events": events}).encode()


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum number of each kind of choice before convergence."""

    faults: int = 0  # failing calls, killed workers, lost and repeated messages, throttled receives
    failures: int = 0  # attempts of a handler that do not succeed at once
    jumps: int = 0  # jumps of the clock to the next moment
    passes: int = 0  # passes of the reconciler
    replays: int = 0
    redrives: int = 0
    decisions: int = 0  # about held runs, and about requests by the people who are asked
    pauses: int = 0  # and resumptions of handlers and tenants
    openings: int = 0  # and closings of circuits, by hand
    erasures: int = 0  # of events' payloads, by hand
    deployments: int = 0
    ages: int = 0  # idle weeks, until events, and then runs, have expired


@dataclass(frozen=True, slots=True)
class Scenario:
    """The initial state and the limits of a world.

    Attributes:
        name: the name on the command line.
        webhooks: the webhooks, each sent once, or until acknowledged if the sender retries.
        deployments: the first one runs at the start; any other may replace it.
        workers: the number of concurrent processors.
        receivers: the number of concurrent ingests.
        budget: the limits of faults and other choices.
        outcomes: the unsuccessful outcomes that an attempt of each handler may have.
        always: the outcome of handlers that never succeed.
        requests: the replay requests of operators.
        skews: the clock errors of the workers, in milliseconds.
        faults: the possible kinds of faults.
        lag: whether eventually consistent reads may miss recent writes.
        jitter: the position of every random number in its range, 0-1.
        tries: the most times that a retrying sender sends a webhook before convergence.
        max_receive_count: the receives after which SQS moves a message to the DLQ.
        serial_receives: the same for FIFO lanes; fewer than deployed stand for more time.
        drain: the runs of a handler that one pass of the reconciler sends.
        begun: whether the runs of preloaded webhooks were attempted before the schedule starts.
        together: whether the workers are threads of one process, which make the runs of a batch: a
            kill ends all of them, and their messages are deleted once all have ended.
    """

    name: str
    webhooks: tuple[Webhook, ...]
    deployments: tuple[Deployment, ...]
    workers: int = 2
    receivers: int = 2
    budget: Budget = field(default_factory=Budget)
    outcomes: Mapping[str, tuple[AttemptOutcome, ...]] = field(default_factory=dict)
    always: Mapping[str, AttemptOutcome] = field(default_factory=dict)
    requests: tuple[ReplayRequest, ...] = ()
    skews: tuple[int, ...] = (0,)
    faults: tuple[str, ...] = ("before", "after", "killed")
    lag: bool = False
    jitter: float = 1.0
    tries: int = 1
    max_receive_count: int = 7
    serial_receives: int = 1000
    drain: int = DRAIN
    begun: bool = False
    together: bool = False
