"""The real use cases as programs whose ports forward every call to the scheduler."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, cast

from simulation.engine.acting import PLAIN, Handlers, act, ask_a_person
from simulation.engine.stepping import Ask, Call, Program
from webhook_inbox import providers
from webhook_inbox.adapters.memory import InlineExecutor
from webhook_inbox.destinations.manual_circuit import (
    CircuitRequest,
    close_circuit,
    open_circuit,
)
from webhook_inbox.domain.audit import Actor, Proof
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import HandlerSpec, Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Clock, Item, Message, Ports
from webhook_inbox.domain.provider import Provider
from webhook_inbox.handlers.approvals.decisions import Approvals
from webhook_inbox.handlers.approvals.hold import ApprovalRequest
from webhook_inbox.handlers.approvals.links import read_link
from webhook_inbox.handlers.approvals.request_row import RequestRow, Word
from webhook_inbox.handlers.approvals.requests import ApprovalRequests
from webhook_inbox.handlers.effects.manual_commit import NoDoubt
from webhook_inbox.handlers.router import Registered
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import Receipt
from webhook_inbox.ledger.deadlines import FUNCTION_TIMEOUT
from webhook_inbox.ledger.erasure import ErasureRequest, erase
from webhook_inbox.ledger.pauses import TENANT_PREFIX, PauseRequest, Subject, pause, resume
from webhook_inbox.ledger.schema import run_from
from webhook_inbox.processor.processor import Processor
from webhook_inbox.queue.outcomes import Worker
from webhook_inbox.reconciler.reconciler import Reconciler
from webhook_inbox.replay.replay import Replay
from webhook_inbox.replay.request import ReplayRequest
from webhook_inbox.replay.skip import skip

ANN: Final = Actor("ann", Proof.STS)
LINK_KEY: Final = "the-key-of-the-links"
# As deployed. Ingest itself answers within 2.5 s.
TIMEOUTS: Final[Mapping[str, timedelta]] = {
    "ingest": timedelta(seconds=10),
    "processor": FUNCTION_TIMEOUT,
    "replay": timedelta(seconds=300),
    "reconciler": timedelta(seconds=300),
    "person": timedelta(seconds=300),
}


class Remote:
    """Any port; each method forwards its call to the scheduler.

    `fifo` is the only attribute of a port that is not a call; it is set for queues.
    """

    def __init__(self, ask: Ask, port: str, *, fifo: bool = False) -> None:
        self.fifo = fifo
        self._ask = ask
        self._port = port

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            return self._ask(Call(self._port, method, args, tuple(options.items())))

        return call


def ports_of(ask: Ask, manifest: Manifest) -> Ports:
    """Returns the ports of one process, whose calls the scheduler makes."""

    def remote(port: str, *, fifo: bool = False) -> Any:
        return Remote(ask, port, fifo=fifo)

    lanes, serial = manifest.lanes, manifest.serial_lanes
    clock = cast(Clock, remote("clock"))
    return Ports(
        table=remote("table"),
        blobs=remote("blobs"),
        clock=clock,
        randomness=remote("randomness"),
        queues={name: remote(f"queue {name}", fifo=name in serial) for name in lanes},
        dlqs={name: remote(f"dlq {name}") for name in lanes},
        secret_store=remote("secrets"),
        executor=InlineExecutor(clock),
    )


@cache
def provider_of(name: str, provider_name: str, settings: str) -> Provider:
    """Returns the provider of a source; providers are stateless and cached."""
    return providers.load(SourceSpec(name, provider_name, name, settings=dict(_SETTINGS[settings])))


_SETTINGS: dict[str, Mapping[str, Any]] = {}


def load_provider(source: SourceSpec) -> Provider:
    """Returns the provider of a source."""
    key = repr(sorted(source.settings.items()))
    _SETTINGS.setdefault(key, source.settings)
    return provider_of(source.name, source.provider, key)


def ingest(manifest: Manifest, delivery: Delivery) -> Program:
    """Returns a program that ingests one delivery and returns its receipt."""

    def run(ask: Ask) -> Receipt:
        ports = ports_of(ask, manifest)
        use_case = Ingest(manifest, ports, providers=load_provider)
        return use_case.receive(delivery)

    return run


def processor(
    manifest: Manifest,
    handlers: Handlers,
    message: Message,
    worker: Worker,
    until: datetime,
) -> Program:
    """Returns a program that processes one message and returns its result.

    Args:
        manifest: the deployed manifest.
        handlers: the behavior of the handlers, and the modules that cannot be imported.
        message: the received message.
        worker: the worker.
        until: the end of the invocation.
    """

    def run(ask: Ask) -> Any:
        ports = ports_of(ask, manifest)
        chat = Chat(ask)

        def load(spec: HandlerSpec) -> Registered:
            if spec.name in handlers.broken:
                raise ImportError(f"no module named {spec.module!r}")
            behavior = handlers.behaviors.get(spec.name, PLAIN)
            return Registered(
                lambda event, context: act(ask, behavior, event, context),
                policy=ask_a_person if behavior.asks else None,
            )

        use_case = Processor(
            manifest,
            replace(ports, clients=lambda *_: chat),
            handlers=load,
            api_url="https://inbox.example",
        )
        return use_case.process(message, worker=worker, deadline=until)

    return run


class Chat:
    """The destination of messages to people; the path names the person."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def post(
        self, path: str, *, json: Mapping[str, Any], effect: None, headers: Mapping[str, str]
    ) -> None:
        """See `DestinationClient.post`."""
        link = read_link((LINK_KEY,), json["link"].rpartition("/")[2])
        if link is None or effect is not None or link.person not in headers["Idempotency-Key"]:
            raise ValueError(f"{path}: no link of this inbox")
        self._ask(Call("chat", "post", (*link.address.key, link.person)))


def word(manifest: Manifest, row: Item, person: str, said: Word) -> Program:
    """Returns a program by which a person decides a request through the link."""
    address = RequestRow(row).address

    def run(ask: Ask) -> Any:
        ports = ports_of(ask, manifest)
        use_case = ApprovalRequests(manifest, ports)
        try:
            return use_case.decide(address, person, said, "seen")
        except Unavailable as error:
            return error

    return run


def decision(manifest: Manifest, row: Item, kind: str) -> Program:
    """Returns a program that decides about a held or dead run, based on the displayed row."""

    def run(ask: Ask) -> Any:
        ports = ports_of(ask, manifest)
        use_case = Approvals(manifest, ports)
        request = ApprovalRequest(run_from(row))
        try:
            if kind == "skip":
                ended, now = run_from(row), ports.clock.now()
                return skip(
                    ports.table, ports.randomness, ended, by=ANN, reason="obsolete", now=now
                )
            if kind == "happened":
                return use_case.happened(request, {"done": "by hand"}, by=ANN, reason="seen")
            decide = use_case.approve if kind == "approve" else use_case.deny
            return decide(request, by=ANN, reason="seen")
        except (Unavailable, NoDoubt) as error:
            return error

    return run


def control(name: str, *, paused: bool) -> Program:
    """Returns a program that pauses or resumes a handler, or a tenant by its prefixed name."""
    tenant = name.removeprefix(TENANT_PREFIX)
    subject = Subject.HANDLER if tenant == name else Subject.TENANT

    def run(ask: Ask) -> Any:
        ports = ports_of(ask, Manifest())
        now = ports.clock.now()
        request = PauseRequest(tenant, by=ANN, reason="looked at", now=now, subject=subject)
        operation = pause if paused else resume
        try:
            return operation(ports.table, ports.randomness, request)
        except Unavailable as error:
            return error

    return run


def circuit(destination: str, *, opened: bool) -> Program:
    """Returns a program that opens or closes a circuit by hand."""

    def run(ask: Ask) -> Any:
        ports = ports_of(ask, Manifest())
        request = CircuitRequest(destination, by=ANN, reason="seen", now=ports.clock.now())
        operation = open_circuit if opened else close_circuit
        try:
            return operation(ports.table, ports.randomness, request)
        except Unavailable as error:
            return error

    return run


def erasure(source: str, event_id: str) -> Program:
    """Returns a program that erases an event's payload."""

    def run(ask: Ask) -> Any:
        ports = ports_of(ask, Manifest())
        now = ports.clock.now()
        request = ErasureRequest(source, event_id, by=ANN, reason="asked to", now=now)
        try:
            return erase(ports.table, ports.blobs, ports.randomness, request)
        except Unavailable as error:
            return error

    return run


def reconciler(manifest: Manifest, until: datetime, *, drain: int) -> Program:
    """Returns a program for one reconciler pass; it ends with the report or the error."""

    def run(ask: Ask) -> Any:
        ports = ports_of(ask, manifest)
        use_case = Reconciler(manifest, ports, drain=drain)
        try:
            return use_case.run(deadline=until)
        except Unavailable as error:
            return error

    return run


def replay(manifest: Manifest, request: ReplayRequest, until: datetime) -> Program:
    """Returns a program for one replay; it ends with the report or the error."""

    def run(ask: Ask) -> Any:
        ports = ports_of(ask, manifest)
        use_case = Replay(manifest, ports)
        try:
            return use_case.run(request, deadline=until)
        except Unavailable as error:
            return error

    return run
