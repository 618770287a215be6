"""The whole inbox over the in-memory doubles: one process, one thread, a clock that is told.

A test tells handlers what to do, delivers, lets workers work and time pass, and looks at the
ledger. Nothing here knows the protocol; it only moves messages as SQS and Lambda would.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from tests.unit.support.faults import Plan
from webhook_inbox import providers
from webhook_inbox.adapters.memory import (
    ManualClock,
    MemoryQueue,
    MemorySecrets,
    MemoryTable,
    add_lanes,
    memory_ports,
)
from webhook_inbox.adapters.memory.ports import RECEIVES
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.manifest import (
    Backoff,
    DestinationSpec,
    HandlerSpec,
    Manifest,
    SourceSpec,
)
from webhook_inbox.domain.model import Delivery, EventStatus, Overview, Run, Status
from webhook_inbox.domain.ports import Item, Message
from webhook_inbox.domain.provider import Provider, Sample
from webhook_inbox.domain.replay_report import ReplayReport
from webhook_inbox.domain.secrets import APPROVAL_KEY, COMPLETION_KEY, SecretCache
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.completions.receiver import Completions
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.router import Registered
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import Receipt
from webhook_inbox.ledger import due_handlers
from webhook_inbox.ledger.deadlines import VISIBILITY_TIMEOUT
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import event_key, identify, run_key
from webhook_inbox.processor.processor import Processor
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import RunOutcome, RunResult, Worker
from webhook_inbox.queue.visibility import ceil_seconds
from webhook_inbox.reconciler.received import FIRST_LOOK, SECOND_LOOK, SECOND_STEP
from webhook_inbox.reconciler.reconciler import Reconciler
from webhook_inbox.reconciler.report import ReconcilerReport
from webhook_inbox.replay.replay import Replay
from webhook_inbox.replay.request import FILTERS, ReplayRequest

SECRET: Final = "a-secret-of-the-provider"
VISIBILITY: Final = ceil_seconds(VISIBILITY_TIMEOUT)
MAX_RECEIVES: Final = RECEIVES[False]
# The ages at which the reconciler reads an event; the second look goes in steps.
LOOKS: Final = (FIRST_LOOK, SECOND_LOOK, SECOND_LOOK + SECOND_STEP)
SECRETS: Final = {
    "acme": (SECRET,),
    "github": (SECRET,),
    APPROVAL_KEY: ("a-key-for-links",),
    COMPLETION_KEY: ("a-key-of-the-stack",),
}
BODY: Final = b'{"id": "evt-1", "type": "paid", "amount": 42}'

# "acme" signs its id and a time; "github" signs the body alone.
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
)
GITHUB: Final = SourceSpec("github", "github", "github", types=("issues*", "push"))


def handler(name: str, *types: str, source: str = "acme", **settings: Any) -> HandlerSpec:
    """Returns a handler's declaration."""
    return HandlerSpec(name, "module", "function", source, types or ("*",), **settings)


FULFIL: Final = handler("acme.fulfil", "paid", max_attempts=3, backoff=Backoff(base=10, factor=4))
MANIFEST: Final = Manifest(
    stage="test",
    version="1",
    sources={"acme": ACME, "github": GITHUB},
    handlers={
        "acme.fulfil": FULFIL,
        "github.announce": handler("github.announce", "issues*", source="github"),
    },
    destinations={"crm": DestinationSpec("crm", "https://crm.example")},
)
Behaviour = Callable[[Event, Context], None]


class LedgerTable(MemoryTable):
    """A table that lists every row but those of registered handlers, which each inbox has."""

    def __iter__(self) -> Iterator[Item]:
        return (row for row in self.everything() if row["pk"] != due_handlers.PK)

    def everything(self) -> Iterator[Item]:
        return super().__iter__()


class World:
    """An inbox and what is around it.

    Attributes:
        handled: (handler, event id, attempt) of each attempt that reached its handler.
        behaviours: what each handler does, by name; nothing unless told.
        broken: what importing each handler's module raises, by name.
        plan: which calls fail.
    """

    def __init__(
        self,
        manifest: Manifest = MANIFEST,
        *,
        seed: int = 0,
        secrets: Mapping[str, tuple[str, ...]] = SECRETS,
    ) -> None:
        self.clock = ManualClock()
        self.plan = Plan()
        self.ports = memory_ports(
            manifest,
            clock=self.clock,
            seed=seed,
            table=LedgerTable(faults=self.plan),
            secrets=MemorySecrets(secrets, faults=self.plan),
            faults=self.plan,
        )
        self.table = self.ports.table
        self.blobs = self.ports.blobs
        self.vault = self.ports.secret_store
        self.queues, self.dlqs = self.ports.queues, self.ports.dlqs
        self.randomness = self.ports.randomness
        self.handled: list[tuple[str, str, int]] = []
        self.behaviours: dict[str, Behaviour] = {}
        self.broken: dict[str, BaseException] = {}
        self.ledger = Ledger(table=self.table, blobs=self.blobs)
        self.deploy(manifest)

    def deploy(self, manifest: Manifest) -> None:
        """Replaces the code: new functions over the same table, queues and bucket."""
        self.manifest = manifest
        # As the reconciler does within a minute.
        due_handlers.deploy(self.table, manifest.handlers, now=self.now)
        self.plan.calls.clear()
        add_lanes(self.ports, manifest, faults=self.plan)
        self.ports = replace(
            self.ports, table=self.table, blobs=self.blobs, secret_store=self.vault
        )
        self.ingest = self.new_ingest()
        self.processor = self.new_processor()
        self.replayer = Replay(manifest, self.ports)
        self.completions = Completions(manifest, self.ports)
        self.reconciler = Reconciler(manifest, self.ports)

    @property
    def secrets(self) -> SecretCache:
        """The cache of its functions but ingest."""
        return self.ports.secrets

    @property
    def lanes(self) -> Lanes:
        """The work queues."""
        return Lanes(self.queues)

    def new_ingest(self, provider: Callable[[SourceSpec], Provider] = providers.load) -> Ingest:
        """Returns another ingest container; its secrets are not cached yet."""
        return Ingest(self.manifest, replace(self.ports), providers=provider)

    def new_processor(self, *, api_url: str = "", **adapters: Any) -> Processor:
        """Returns another processor container, which knows that its handlers are registered."""
        ports = replace(self.ports, **adapters) if adapters else self.ports
        processor = Processor(self.manifest, ports, handlers=self._load, api_url=api_url)
        processor._listed._known.update(self.manifest.handlers)
        return processor

    # -- handlers

    def script(self, name: str, *steps: BaseException | None) -> None:
        """Lets a handler's attempts end like this, one step each, and well after the last."""
        remaining = list(steps)

        def act(event: Event, context: Context) -> None:
            step = remaining.pop(0) if remaining else None
            if step is not None:
                raise step

        self.behaviours[name] = act

    def fails(self, name: str, error: BaseException) -> None:
        """Lets every attempt of a handler fail."""

        def act(event: Event, context: Context) -> None:
            raise error

        self.behaviours[name] = act

    def _load(self, spec: HandlerSpec) -> Registered:
        if spec.name in self.broken:
            raise self.broken[spec.name]

        def work(event: Event, context: Context) -> None:
            self.handled.append((spec.name, event.id, context.attempt))
            self.behaviours.get(spec.name, lambda *_: None)(event, context)

        return Registered(work)

    # -- deliveries

    def delivery(
        self,
        event_id: str = "evt-1",
        *,
        body: bytes = BODY,
        source: str = "acme",
        type_: str = "",
        secret: str = SECRET,
        headers: dict[str, str] | None = None,
    ) -> Delivery:
        """Returns a delivery as its provider would send it now."""
        type_ = type_ or {"github": "issues"}.get(source, "paid")
        provider = providers.load(self.manifest.sources[source])
        signed = provider.sign(Sample(event_id, type_, body), secret, self.now)
        sent = {**{k.lower(): v for k, v in signed.items()}, **(headers or {})}
        path = f"/webhooks/{source}"
        return Delivery(source, "POST", path, "", sent, body, self.now)

    def deliver(self, event_id: str = "evt-1", **parts: Any) -> Receipt:
        """Delivers an event; no two deliveries come in one millisecond."""
        receipt = self.ingest.receive(self.delivery(event_id, **parts))
        self.clock.advance(seconds=0.001)
        return receipt

    # -- workers

    def receive(self, lane: str = "default") -> Message | None:
        """Receives one message as Lambda's poller does, None if none is visible."""
        return next(iter(self.queues[lane].receive(1, hidden_for=VISIBILITY)), None)

    def taken(self, lane: str = "default") -> Message:
        """Receives one message; there has to be one."""
        message = self.receive(lane)
        assert message is not None, "no message is visible"
        return message

    def process(
        self, message: Message, *, by: str = "worker-1", lane: str = "default", seconds: float = 60
    ) -> RunResult:
        """Processes a message and leaves it in the queue, as a worker does that is killed then."""
        worker = Worker(by, "v1", lane, RECEIVES[self.queues[lane].fifo])
        deadline = self.now + timedelta(seconds=seconds)
        return self.processor.process(message, worker=worker, deadline=deadline)

    def work_once(self, lane: str = "default", *, by: str = "worker-1") -> RunResult | None:
        """Receives, processes, and deletes the message unless it must be kept."""
        message = self.receive(lane)
        if message is None:
            return None
        result = self.process(message, by=by, lane=lane)
        if not result.keeps_message:
            self.queues[lane].delete(message.receipt)
        return result

    def work(self) -> list[RunOutcome]:
        """Works on everything that is visible now, in every lane."""
        return [result.outcome for lane in self.queues for result in self._drain(lane)]

    def _drain(self, lane: str) -> Iterator[RunResult]:
        while (result := self.work_once(lane)) is not None:
            yield result

    def claim_and_die(
        self, message: Message, *, lane: str = "default", seconds: float = 60
    ) -> None:
        """Lets a worker claim a run and be killed in its handler."""

        class Killed(BaseException):
            pass

        def kill(event: Event, context: Context) -> None:
            raise Killed

        name = RunMessage.decode(message.body).handler
        before = self.behaviours.get(name)
        self.behaviours[name] = kill
        self.plan.fail("UpdateItem", skip=1)  # the claim is made, its settlement never is
        self.plan.fail("ChangeMessageVisibility")
        self.process(message, lane=lane, seconds=seconds)
        self.plan.heal()
        self.behaviours.pop(name)
        if before is not None:
            self.behaviours[name] = before

    def drop_messages(self) -> None:
        """Loses every message, as a queue does whose retention is over."""
        for queue in self.queues.values():
            while queue.next_visible_at() is not None:
                self.clock.advance(seconds=max(0.0, self._until(queue)))
                for message in queue.receive(10, hidden_for=VISIBILITY):
                    queue.delete(message.receipt)

    def _until(self, queue: MemoryQueue) -> float:
        visible_at = queue.next_visible_at()
        return 0.0 if visible_at is None else (from_ms(visible_at) - self.now).total_seconds()

    # -- time

    @property
    def now(self) -> datetime:
        """The time."""
        return self.clock.now()

    def reconcile(self, *, seconds: float = 300) -> ReconcilerReport:
        """Runs one pass of the reconciler, now."""
        return self.reconciler.run(deadline=self.now + timedelta(seconds=seconds))

    def reconcile_at(self, minute: int) -> ReconcilerReport:
        """Waits for the next full hour's `minute` and runs the reconciler."""
        target = self.now.replace(minute=minute, second=0, microsecond=0)
        target += timedelta(hours=1) if target <= self.now else timedelta(0)
        self.clock.advance(seconds=(target - self.now).total_seconds())
        return self.reconcile()

    def pass_minutes(self, minutes: int) -> None:
        """Lets time pass, workers work and the reconciler run every minute."""
        for _ in range(minutes):
            self.work()
            self.clock.advance(seconds=60 - self.now.second)
            self.reconcile()
        self.work()

    def run_until_quiet(self, *, steps: int = 2000) -> None:
        """Jumps from due time to due time until every run has ended and no message waits."""
        for _ in range(steps):
            self.work()
            if self.quiet():
                return
            self._jump()
            if self.now.second == 0:
                self.reconcile()
        raise AssertionError(f"not quiet after {steps} steps: {self.statuses()}")

    def quiet(self) -> bool:
        """True if nothing more will happen without a person."""
        ended = {EventStatus.DONE, EventStatus.SKIPPED, EventStatus.DEAD_LETTER, EventStatus.HELD}
        return not any(map(len, self.queues.values())) and set(self.statuses().values()) <= ended

    def _jump(self) -> None:
        minute = self.now.replace(second=0, microsecond=0) + timedelta(minutes=1)
        visible = [q.next_visible_at() for q in self.queues.values()]
        times = [from_ms(at) for at in visible if at is not None]
        looks = [row["due_at"] for row in self.table if "due_bucket" in row]
        times += [_full_minute(from_ms(at)) for at in looks]
        # The reconciler's looks at the events, the second one in steps, and its sweeps.
        received = [from_ms(row["received_at"]) for row in self.table if row["sk"] == "event"]
        times += [_full_minute(at + look) for at in received for look in LOOKS]
        times += [minute + timedelta(minutes=59 - minute.minute)]
        future = [at for at in times if at > self.now]
        self.clock.advance(seconds=(min(future) - self.now).total_seconds())

    # -- looking

    def overview(self, event_id: str = "evt-1", source: str = "acme") -> Overview:
        """Returns what the ledger knows of an event; there has to be one."""
        found = self.ledger.overview(source, event_id, now=self.now)
        assert found is not None, f"no event {event_id!r} of {source!r}"
        return found

    def body(self, event_id: str = "evt-1", source: str = "acme") -> bytes:
        """Returns an event's body as it is stored."""
        found = self.ledger.overview(source, event_id, now=self.now, with_body=True)
        assert found is not None
        return found.event.body

    def run(
        self, event_id: str = "evt-1", handler: str = "acme.fulfil", source: str = "acme"
    ) -> Run:
        """Returns a run; it has to have a row."""
        runs = {run.handler: run for run in self.overview(event_id, source).runs}
        return runs[handler]

    def row(
        self, event_id: str = "evt-1", handler: str = "acme.fulfil", source: str = "acme"
    ) -> Item | None:
        """Returns a run's row."""
        return self.peek(run_key(source, event_id, handler))

    def event_row(self, event_id: str = "evt-1", source: str = "acme") -> Item | None:
        """Returns an event's row."""
        return self.peek(event_key(source, event_id))

    def peek(self, key: tuple[str, str]) -> Item | None:
        """Returns a row without a call."""
        return next((row for row in self.table if (row["pk"], row["sk"]) == tuple(key)), None)

    def rows(self, prefix: str) -> list[Item]:
        """Returns the rows whose partition begins so."""
        return [row for row in self.table if row["pk"].startswith(prefix)]

    def alter(self, event_id: str = "evt-1", **values: Any) -> None:
        """Overwrites attributes of the run `acme.fulfil`; None removes one."""
        row = self.row(event_id)
        assert row is not None
        merged = {**row, **values}
        self.table.put({k: v for k, v in merged.items() if v is not None})

    def statuses(self) -> dict[str, EventStatus]:
        """Returns every event's status, by id."""
        events = [identify(row["pk"]) for row in self.table if row["sk"] == "event"]
        return {
            event_id: self.overview(event_id, source).status
            for source, event_id in events
            if self.ledger.overview(source, event_id, now=self.now)
        }

    def messages(self, lane: str = "default") -> list[dict[str, Any]]:
        """Returns what waits in a lane, decoded."""
        return [json.loads(body) for body in self.queues[lane].bodies]

    def generations(self) -> list[int]:
        """Returns the generations of what waits in the default lane."""
        return [message["generation"] for message in self.messages()]

    # -- operators

    def replay(self, *, seconds: float = 300, **payload: Any) -> ReplayReport:
        """Invokes replay: of every dead run without a filter, and with a reason if forced."""
        if not {*FILTERS, "selection"} & payload.keys():
            payload["status"] = ["dead_letter"]
        if payload.get("force") is True:
            payload.setdefault("reason", "agreed")
        request = ReplayRequest.read(payload)
        return self.replayer.run(request, deadline=self.now + timedelta(seconds=seconds))

    def redrive(self) -> int:
        """Starts SQS's own redrive of the default lane's DLQ."""
        return self.dlqs["default"].redrive(self.queues["default"])

    # -- situations

    def dead(self, event_id: str = "evt-1", *, error: BaseException | None = None) -> Run:
        """Brings an event's run `acme.fulfil` to its death and its message to the DLQ."""
        before = self.behaviours.get("acme.fulfil")
        self.fails("acme.fulfil", error or Permanent("no such order"))
        self.deliver(event_id)
        self.work()
        del self.behaviours["acme.fulfil"]
        if before is not None:
            self.behaviours["acme.fulfil"] = before
        run = self.run(event_id)
        assert run.status is Status.DEAD_LETTER
        return run


def with_handlers(*specs: HandlerSpec) -> Manifest:
    """Returns the manifest with these handlers instead of its own."""
    return replace(MANIFEST, handlers={spec.name: spec for spec in specs})


def with_source(spec: SourceSpec) -> Manifest:
    """Returns the manifest with one source replaced."""
    return replace(MANIFEST, sources={**MANIFEST.sources, spec.name: spec})


def _full_minute(moment: datetime) -> datetime:
    whole = moment.replace(second=0, microsecond=0)
    return whole if whole == moment else whole + timedelta(minutes=1)
