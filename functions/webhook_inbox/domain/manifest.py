"""The manifest: configuration and handler declarations, compiled into every bundle as data.

Ingest reads from it which runs an event has, without importing a handler, pydantic or a TOML
parser; the stacks, the reconciler, replay and the CLI read the same manifest.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

# The module that a build writes into each bundle; its `MANIFEST` is `Manifest.to_data()`.
MODULE: Final = "compiled_manifest"
# The entry of the stack's template that has the manifest as JSON, for the command line.
METADATA: Final = "webhook-inbox/manifest"
DEFAULT_LANE: Final = "default"
# The base URL of a destination for which the sink of `webhookctl dev` stands, in this stage only.
SINK: Final = "sink"
LOCAL: Final = "local"
# The values of `identical_body`.
HOLD: Final = "hold"
DROP: Final = "drop"
# The built-in handler that splits batches; the name is reserved.
SPLIT: Final = "split"
# The `tenant` of a source whose tenants are the last segment of the path.
TENANT_PATH: Final = ("path", "")
# The built-in source and handler of `webhookctl smoke`, and the types of its events; the name is
# reserved.
SMOKE: Final = "smoke"
SMOKE_WORKS: Final = "smoke.works"
SMOKE_FAILS: Final = "smoke.fails"  # until its run is replayed
# The kind of order that needs a FIFO lane, and the value of `on_dead` that blocks.
SERIAL: Final = "serial"
BLOCK: Final = "block"


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with full jitter; times in seconds."""

    base: float = 10.0
    factor: float = 4.0
    cap: float = 21600.0


@dataclass(frozen=True, slots=True)
class Order:
    """The order in which a handler processes the events of one ordering key.

    Attributes:
        kind: "latest" (skips events older than the last applied one), "sequence" (by number,
            without gaps) or "serial" (one at a time, in the order of acceptance).
        ordering_key: the path of the ordering key in the body's JSON, like "data.object.id".
        version: the path of the version, or of a sequence's number.
        first: the first number of a sequence.
        timeout: seconds to wait for a gap to close.
        on_gap: the action after that: "skip" (continues behind the gap), "hold" or "dead".
        backfill: whether the handler has a function that fetches missing events.
        on_dead: whether a dead serial run blocks its ordering key: "continue" or "block".
    """

    kind: str
    ordering_key: str
    version: str = ""
    first: int = 1
    timeout: float = 3600.0
    on_gap: str = "hold"
    backfill: bool = False
    on_dead: str = "continue"


@dataclass(frozen=True, slots=True)
class HandlerSpec:
    """One handler as declared: `types` are glob patterns, `timeout` and `max_age` seconds.

    The circuits of `destinations` are checked before a run is leased.
    """

    name: str
    module: str
    function: str
    source: str
    types: tuple[str, ...]
    max_attempts: int = 8
    timeout: float = 50.0
    lane: str = DEFAULT_LANE
    backoff: Backoff = field(default_factory=Backoff)
    max_age: float = 14 * 86400.0
    destinations: tuple[str, ...] = ()
    order: Order | None = None

    @property
    def serial(self) -> bool:
        """True if it processes an ordering key's events one at a time, through a FIFO lane."""
        return self.order is not None and self.order.kind == SERIAL

    @property
    def blocks(self) -> bool:
        """True if a dead run blocks its ordering key."""
        return self.serial and self.order is not None and self.order.on_dead == BLOCK


@dataclass(frozen=True, slots=True)
class LaneSpec:
    """The processor of one lane.

    Attributes:
        workers: its concurrent invocations at the most. The default is the least that SQS takes: in
            a new account all functions share 10 executions, of which two stages with one lane each,
            their reconcilers and replays then leave 2 to ingest.
        runs_per_invocation: the runs that one invocation makes at the same time.
    """

    workers: int = 2
    runs_per_invocation: int = 1


# Declared if a source's provider sends batches. It belongs to no source, so that only a batch,
# whose row names it, has a run of it.
SPLITTER: Final = HandlerSpec(SPLIT, module="", function="", source="", types=())


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """One configured endpoint.

    `settings` is the rest of its TOML table, for the provider's module; `types` are the glob
    patterns of the types to store, others are acknowledged and counted; `secret` is the secret's
    name within the stage. `identical_body` is the action on an event whose signed content was
    accepted under another id: "hold" (stored, its runs held), "run" or "drop". `tenant` is the
    location of the tenant's name as (kind, name): "header" (its name in lower case), "json" (a
    path), "form", "query" or "path"; () if the source has no tenants. `callers` is True for your
    own callers, who get a status URL. `retention` is the seconds after which a payload is erased, 0
    if it is kept as long as its event. `personal` has the paths of the body's personal fields.
    """

    name: str
    provider: str
    secret: str
    types: tuple[str, ...] = ("*",)
    volatile: tuple[str, ...] = ()
    identical_body: str = HOLD
    callers: bool = False
    tenant: tuple[str, ...] = ()
    retention: float = 0.0
    personal: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


# In no manifest, so that a stack has no alarm, output or secret of it. Without its secret, which a
# smoke test creates and deletes, it is an unknown source; a name in inbox.toml has no slash.
SMOKE_SOURCE: Final = SourceSpec(SMOKE, provider="standard-webhooks", secret="inbox/smoke")  # noqa: S106 - a name
SMOKE_HANDLER: Final = HandlerSpec(
    SMOKE,
    module="",
    function="",
    source=SMOKE,
    types=(SMOKE_WORKS, SMOKE_FAILS),
    max_attempts=2,
    timeout=10.0,
    backoff=Backoff(base=1.0, factor=1.0, cap=1.0),
)


@dataclass(frozen=True, slots=True)
class BreakerSpec:
    """The circuit breaker of a destination."""

    failures: int = 5  # consecutive ones, of all workers, open it
    recovery: float = 60.0  # seconds that it stays open before one run probes
    drain: float = 5.0  # runs per second that resume after it has closed


@dataclass(frozen=True, slots=True)
class DestinationSpec:
    """A named downstream system that handlers call.

    Attributes:
        base_url: its URL; "sink" or "sink/PATH" for the sink of `webhookctl dev`.
        auth: a kind ("bearer", "basic", "header" …) to the name of a secret, and the settings of
            the kind.
        key_header: the header for an effect's key, "" for none.
        key_field: the field of a JSON body for it instead, "" for none.
        key_format: the format of the key: "text" or "uuid".
        key_lifetime: seconds for which the destination remembers a key; 0 if it ignores keys.
        timeout: the time limit of a call, in seconds.
        rate: calls per second, None without a limit.
        on_limit: the action of a run that would exceed it: "queue", "drop" or "error".
        breaker: its circuit breaker, None for none.
        sign: the name of the secret for signatures as in Standard Webhooks.
        responses: the meaning of statuses that differ from the default: "429" or "5xx" to "ok",
            "transient" or "permanent".
        retry_after: the unit of a number in its `Retry-After`: "seconds" or "milliseconds".
    """

    name: str
    base_url: str
    auth: Mapping[str, str] = field(default_factory=dict)
    key_header: str = "Idempotency-Key"
    key_field: str = ""
    key_format: str = "text"
    key_lifetime: float = 86400.0
    timeout: float = 10.0
    rate: float | None = None
    on_limit: str = "queue"
    breaker: BreakerSpec | None = field(default_factory=BreakerSpec)
    sign: str = ""
    responses: Mapping[str, str] = field(default_factory=dict)
    retry_after: str = "seconds"

    @property
    def secrets(self) -> frozenset[str]:
        """The names of the secrets of its calls."""
        named = (self.auth.get(kind, "") for kind in ("bearer", "basic", "secret"))
        return frozenset(filter(None, (*named, self.sign)))

    @property
    def in_sink(self) -> bool:
        """True if the sink of `webhookctl dev` stands for it."""
        return self.base_url.partition("/")[0] == SINK


@dataclass(frozen=True, slots=True)
class ApproversSpec:
    """A group of people who approve effects.

    Attributes:
        name: its name, as in `Approval(by=…)`.
        people: how each person is reached, by name: "DESTINATION:ADDRESS", or "sns:" and the ARN of
            a topic.
        escalate_after: seconds after which an open request is announced to `escalate_to` as well,
            0 for never.
        escalate_to: the group whose people are asked then, or "".
    """

    name: str
    people: Mapping[str, str]
    escalate_after: float = 0.0
    escalate_to: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The sources, handlers, destinations and groups of approvers of a stage, by name.

    `lane_specs` has the lanes that differ from the defaults of `LaneSpec`.
    """

    stage: str = "dev"
    version: str = ""
    sources: Mapping[str, SourceSpec] = field(default_factory=dict)
    handlers: Mapping[str, HandlerSpec] = field(default_factory=dict)
    destinations: Mapping[str, DestinationSpec] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    approvers: Mapping[str, ApproversSpec] = field(default_factory=dict)
    lane_specs: Mapping[str, LaneSpec] = field(default_factory=dict)

    def wants(self, source: SourceSpec, type_: str) -> bool:
        """Returns whether the source stores events of this type."""
        return matches(source.types, type_)

    def runs_for(self, source: str, type_: str) -> tuple[HandlerSpec, ...]:
        """Returns the handlers of an event, in order of declaration."""
        return tuple(
            spec
            for spec in (*self.handlers.values(), SMOKE_HANDLER)
            if spec.source == source and matches(spec.types, type_)
        )

    def handlers_of(self, source: str) -> tuple[HandlerSpec, ...]:
        """Returns the handlers of a source, in order of declaration."""
        return tuple(spec for spec in self.handlers.values() if spec.source == source)

    def handler(self, name: str) -> HandlerSpec | None:
        """Returns a handler of this deployment, also that of the smoke test; None if unknown."""
        return SMOKE_HANDLER if name == SMOKE else self.handlers.get(name)

    def patterns_for(self, source: SourceSpec, type_: str) -> tuple[str, ...]:
        """Returns the patterns of a source and its handlers that a type matches, sorted."""
        handled = (spec.types for spec in self.handlers.values() if spec.source == source.name)
        patterns = {pattern for types in (source.types, *handled) for pattern in types}
        return tuple(sorted(pattern for pattern in patterns if matches((pattern,), type_)))

    def lane_of(self, handler: str) -> str:
        """Returns the lane of a handler; the default lane if it is not in the manifest."""
        spec = self.handlers.get(handler)
        return spec.lane if spec else DEFAULT_LANE

    def lane(self, name: str) -> LaneSpec:
        """Returns the settings of a lane's processor."""
        return self.lane_specs.get(name, LaneSpec())

    @property
    def lanes(self) -> tuple[str, ...]:
        """The default lane and the lanes of all handlers."""
        return tuple(dict.fromkeys((DEFAULT_LANE, *(h.lane for h in self.handlers.values()))))

    @property
    def serial_lanes(self) -> frozenset[str]:
        """The FIFO lanes: those of serial handlers."""
        return frozenset(spec.lane for spec in self.handlers.values() if spec.serial)

    def splits(self, lane: str) -> bool:
        """Returns whether the lane's processor splits batches, whose items are in every lane."""
        spec = self.handlers.get(SPLIT)
        return spec is not None and spec.lane == lane

    @property
    def source_secrets(self) -> frozenset[str]:
        """The names of the secrets that verify deliveries, in the document that ingest reads."""
        return frozenset(source.secret for source in self.sources.values())

    @property
    def handler_secrets(self) -> frozenset[str]:
        """The names of the secrets in the document that processors read."""
        return frozenset(self.secrets) - self.source_secrets

    def with_sink(self, url: str) -> "Manifest":
        """Returns the manifest with the sink's URL in the destinations that it stands for."""
        placed = {
            name: replace(spec, base_url=url + spec.base_url.removeprefix(SINK))
            if spec.in_sink
            else spec
            for name, spec in self.destinations.items()
        }
        return replace(self, destinations=placed)

    def to_data(self) -> dict[str, Any]:
        """Returns plain dicts, lists and scalars, for `from_data`."""
        data = asdict(self)
        return {k: v for k, v in data.items() if v or k not in {"approvers", "lane_specs"}}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Manifest":
        """Reads the data of `to_data`."""
        return cls(
            stage=data["stage"],
            version=data["version"],
            sources={name: SourceSpec(**_tuples(spec)) for name, spec in data["sources"].items()},
            handlers={name: handler_from(spec) for name, spec in data["handlers"].items()},
            destinations={n: _destination(spec) for n, spec in data["destinations"].items()},
            secrets=tuple(data["secrets"]),
            approvers={n: ApproversSpec(**s) for n, s in data.get("approvers", {}).items()},
            lane_specs={n: LaneSpec(**s) for n, s in data.get("lane_specs", {}).items()},
        )


def matches(patterns: tuple[str, ...], type_: str) -> bool:
    """Returns whether any glob pattern matches the type; case matters."""
    return any(fnmatchcase(type_, pattern) for pattern in patterns)


def handler_from(spec: Mapping[str, Any]) -> HandlerSpec:
    """Returns a handler's declaration from plain data."""
    order = spec.get("order")
    parts = {"backoff": Backoff(**spec["backoff"]), "order": Order(**order) if order else None}
    return HandlerSpec(**{**_tuples(spec), **parts})


def _destination(spec: Mapping[str, Any]) -> DestinationSpec:
    breaker = spec["breaker"]
    return DestinationSpec(**{**spec, "breaker": BreakerSpec(**breaker) if breaker else None})


def _tuples(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in spec.items()}
