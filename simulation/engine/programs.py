"""The real use cases as programs: every port is a `Remote`, which asks the scheduler."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, cast

from simulation.engine.acting import PLAIN, Handlers, act, ask_a_person
from simulation.engine.stepping import Ask, Call, Program
from webhook_inbox import providers
from webhook_inbox.domain.errors import HandlerTimedOut, Unavailable
from webhook_inbox.domain.manifest import HandlerSpec, Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import (
    Blobs,
    Clock,
    Item,
    Message,
    Queue,
    Randomness,
    SecretStore,
    Table,
)
from webhook_inbox.domain.provider import Provider
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.handlers.approvals import ApprovalRequest, Approvals
from webhook_inbox.handlers.effects.manual_commit import NoDoubt
from webhook_inbox.handlers.router import Registered
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import Receipt
from webhook_inbox.ledger.pauses import PauseRequest, pause, resume
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import run_from
from webhook_inbox.processor.processor import Processor
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.outcomes import Worker
from webhook_inbox.reconciler.reconciler import Reconciler
from webhook_inbox.replay.replay import Replay
from webhook_inbox.replay.request import ReplayRequest

# As deployed: each function's timeout. Ingest answers within 2.5 s by itself.
TIMEOUTS: Final[Mapping[str, timedelta]] = {
    "ingest": timedelta(seconds=10),
    "processor": timedelta(seconds=60),
    "replay": timedelta(seconds=300),
    "reconciler": timedelta(seconds=300),
    "person": timedelta(seconds=300),
}


class Remote:
    """Any port: each method asks for the answer instead of having one.

    `fifo` is for queues: the only thing of a port that is no call.
    """

    def __init__(self, ask: Ask, port: str, *, fifo: bool = False) -> None:
        self.fifo = fifo
        self._ask = ask
        self._port = port

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            return self._ask(Call(self._port, method, args, tuple(options.items())))

        return call


class Ports:
    """What a use case is given."""

    def __init__(self, ask: Ask, manifest: Manifest) -> None:
        lanes, serial = manifest.lanes, manifest.serial_lanes
        self.table = cast(Table, Remote(ask, "table"))
        self.blobs = cast(Blobs, Remote(ask, "blobs"))
        self.clock = cast(Clock, Remote(ask, "clock"))
        self.randomness = cast(Randomness, Remote(ask, "randomness"))
        self.secrets = SecretCache(
            store=cast(SecretStore, Remote(ask, "secrets")), clock=self.clock
        )
        remotes = {name: Remote(ask, f"queue {name}", fifo=name in serial) for name in lanes}
        self.lanes = Lanes({name: cast(Queue, remote) for name, remote in remotes.items()})
        self.dlqs = {name: cast(Queue, Remote(ask, f"dlq {name}")) for name in lanes}
        self.ledger = Ledger(table=self.table, blobs=self.blobs)


class TimedExecutor:
    """Runs a handler where it is called; one that moved the clock past its limit timed out.

    What it did by then is done, what it raised is not heard of.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, work: Callable[[], None], *, seconds: float) -> None:
        """See the port."""
        end = self._clock.now() + timedelta(seconds=seconds)
        try:
            work()
        finally:
            if self._clock.now() > end:
                raise HandlerTimedOut(f"still running after {seconds:g} s")


@cache
def provider_of(name: str, provider_name: str, settings: str) -> Provider:
    """Returns a source's provider; made once, since it keeps no state."""
    return providers.load(SourceSpec(name, provider_name, name, settings=dict(_SETTINGS[settings])))


_SETTINGS: dict[str, Mapping[str, Any]] = {}


def load_provider(source: SourceSpec) -> Provider:
    """Returns a source's provider."""
    marked = repr(sorted(source.settings.items()))
    _SETTINGS.setdefault(marked, source.settings)
    return provider_of(source.name, source.provider, marked)


def ingest(manifest: Manifest, delivery: Delivery) -> Program:
    """Returns ingest with one delivery; ends with its receipt."""

    def run(ask: Ask) -> Receipt:
        ports = Ports(ask, manifest)
        use_case = Ingest(
            manifest=manifest,
            providers=load_provider,
            table=ports.table,
            lanes=ports.lanes,
            blobs=ports.blobs,
            secrets=ports.secrets,
        )
        return use_case.receive(delivery)

    return run


def processor(
    manifest: Manifest,
    handlers: Handlers,
    message: Message,
    worker: Worker,
    until: datetime,
) -> Program:
    """Returns the processor with one message, ends with its result.

    Args:
        manifest: what is deployed.
        handlers: how they act, and which modules cannot be imported.
        message: as it was received.
        worker: who processes it.
        until: when the invocation ends.
    """

    def run(ask: Ask) -> Any:
        ports = Ports(ask, manifest)

        def load(spec: HandlerSpec) -> Registered:
            if spec.name in handlers.broken:
                raise ImportError(f"no module named {spec.module!r}")
            way = handlers.ways.get(spec.name, PLAIN)
            return Registered(
                lambda event, context: act(ask, way, event, context),
                policy=ask_a_person if way.asks else None,
            )

        use_case = Processor(
            manifest=manifest,
            handlers=load,
            table=ports.table,
            lanes=ports.lanes,
            blobs=ports.blobs,
            secrets=ports.secrets,
            executor=TimedExecutor(ports.clock),
            clock=ports.clock,
            randomness=ports.randomness,
        )
        return use_case.process(message, worker=worker, deadline=until)

    return run


def decision(manifest: Manifest, row: Item, kind: str) -> Program:
    """Returns a person's decision about a held run, whose row that person saw."""

    def run(ask: Ask) -> Any:
        ports = Ports(ask, manifest)
        use_case = Approvals(
            manifest=manifest,
            table=ports.table,
            lanes=ports.lanes,
            clock=ports.clock,
            randomness=ports.randomness,
        )
        hold = ApprovalRequest(run_from(row))
        try:
            if kind == "happened":
                return use_case.happened(hold, {"told": "by hand"}, by="ann", reason="seen")
            decide = use_case.approve if kind == "approve" else use_case.deny
            return decide(hold, by="ann", reason="seen")
        except (Unavailable, NoDoubt) as error:
            return error

    return run


def control(handler: str, *, paused: bool) -> Program:
    """Returns a person who pauses a handler, or resumes it."""

    def run(ask: Ask) -> Any:
        ports = Ports(ask, Manifest())
        wish = PauseRequest(handler, by="ann", reason="looked at", now=ports.clock.now())
        say = pause if paused else resume
        try:
            return say(ports.table, ports.randomness, wish)
        except Unavailable as error:
            return error

    return run


def reconciler(manifest: Manifest, until: datetime) -> Program:
    """Returns one pass of the reconciler; ends with its report, or the error that ended it."""

    def run(ask: Ask) -> Any:
        ports = Ports(ask, manifest)
        use_case = Reconciler(
            manifest=manifest,
            ledger=ports.ledger,
            table=ports.table,
            lanes=ports.lanes,
            dlqs=ports.dlqs,
            clock=ports.clock,
        )
        try:
            return use_case.run(deadline=until)
        except Unavailable as error:
            return error

    return run


def replay(manifest: Manifest, request: ReplayRequest, until: datetime) -> Program:
    """Returns one replay; ends with its report, or the error that ended it."""

    def run(ask: Ask) -> Any:
        ports = Ports(ask, manifest)
        use_case = Replay(
            manifest=manifest,
            ledger=ports.ledger,
            table=ports.table,
            lanes=ports.lanes,
            dlqs=ports.dlqs,
            clock=ports.clock,
            randomness=ports.randomness,
        )
        try:
            return use_case.run(request, deadline=until)
        except Unavailable as error:
            return error

    return run
