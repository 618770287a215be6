"""How a user's function becomes a handler."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import DEFAULT_LANE, SERIAL, SPLIT, Backoff, HandlerSpec
from webhook_inbox.handlers.ordering.declaration import SEQUENCE, Ordering
from webhook_inbox.handlers.schema_versions import Versions
from webhook_inbox.handlers.validation import check_handler, check_options

NAME: Final = re.compile(r"[a-z0-9_.-]{1,64}")

# Backoff presets. `steady` reaches 9.8 h over eight attempts, which outlasts most outages;
# `fast` is for tests and for downstreams that recover in seconds.
BACKOFFS: Final = {
    "steady": Backoff(),
    "fast": Backoff(base=0.2, factor=2.0, cap=2.0),
}

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Registered:
    """A handler's function, and the functions and models that were declared with it.

    Attributes:
        function: the handler, `function(event, ctx)`.
        policy: decides before it, see policies.py.
        backfill: fetches what is missing of a sequence.
        versions: the payload's versions that it understands.
    """

    function: Function
    policy: Function | None = None
    backfill: Function | None = None
    versions: Versions | None = None


@dataclass(frozen=True, slots=True)
class ReadyMade:
    """A handler that a function made: it has neither a name nor a module of its own.

    Attributes:
        made_by: the call that made it, for errors.
        function: the handler.
        destinations: what it calls.
    """

    made_by: str
    function: Function
    destinations: tuple[str, ...] = ()

    def __call__(self, event: Any, ctx: Any) -> Any:
        """Handles an event."""
        return self.function(event, ctx)


class Router:
    """Collects the handlers of one source.

    Args:
        name: the first half of each handler's name, `name.function`.
        source: the source in inbox.toml whose events it handles; the name, unless given.
    """

    def __init__(self, name: str, *, source: str | None = None) -> None:
        self.name = name
        self.source = source if source is not None else name
        self._handlers: dict[str, tuple[HandlerSpec, Registered]] = {}

    def on(  # noqa: PLR0913 - each a keyword of its own
        self,
        *types: str,
        name: str | None = None,
        max_attempts: int = 8,
        timeout: float = 50.0,
        backoff: str | Backoff = "steady",
        lane: str | None = None,
        max_age: float = 14 * 86400.0,
        destinations: Sequence[str] = (),
        order: Ordering | None = None,
        policy: Function | None = None,
        versions: Versions | None = None,
    ) -> Callable[[Function], Function]:
        """Registers the decorated function, sync or async, for events of these types.

        Args:
            types: glob patterns of event types, e.g. `"invoice.*"`.
            name: the handler's name; part of ledger and effect keys, so a rename is a new
                handler. `router.function` unless given; a ready-made handler needs one.
            max_attempts: attempts in a round before the run is a dead letter, 1-100.
            timeout: seconds an attempt may take, 1-55.
            backoff: a preset, "steady" or "fast", or a Backoff.
            lane: the queue the runs go through; unless given the default one, or one named as
                the handler where its order is serial.
            max_age: seconds that a run may wait by deferring itself, 60-2419200 (28 days).
            destinations: what it calls; while one of them is down or at its limit, runs wait
                without being begun.
            order: `latest(…)`, `sequence(…)` or `serial(…)`; none unless given.
            policy: a function of event and context that decides first: None, Deny or Hold.
            versions: the versions of the payload that it understands.

        Raises:
            ConfigurationError: a value is of another kind or out of bounds, or the name is taken.
        """
        # At once: a decorator without its parentheses would register nothing, and say nothing.
        check_options(
            f"router {self.name!r}, on(…)",
            types=types,
            max_attempts=max_attempts,
            seconds=(timeout, max_age),
            destinations=destinations,
            order=order,
            policy=policy,
            versions=versions,
        )

        def register(function: Function) -> Function:
            ready = function if isinstance(function, ReadyMade) else None
            own = name if name is not None else self._name_of(function)
            check_handler(f"handler {own!r}", function)
            serial = order is not None and order.order.kind == SERIAL
            spec = HandlerSpec(
                name=own,
                # A ready-made one is of whatever module registers it.
                module="" if ready else function.__module__.rpartition(".")[2],
                function=ready.made_by if ready else function.__qualname__,
                source=self.source,
                types=types,
                max_attempts=max_attempts,
                timeout=float(timeout),
                lane=lane if lane is not None else own if serial else DEFAULT_LANE,
                backoff=_backoff(backoff),
                max_age=float(max_age),
                destinations=tuple(
                    dict.fromkeys((*destinations, *(ready.destinations if ready else ())))
                ),
                order=order.order if order else None,
            )
            _check(spec)
            if spec.name in self._handlers:
                raise ConfigurationError(f"handler {spec.name!r} is registered twice; rename one")
            backfill = order.backfill if order else None
            self._handlers[spec.name] = spec, Registered(function, policy, backfill, versions)
            return function

        return register

    def _name_of(self, function: Function) -> str:
        if isinstance(function, ReadyMade):
            raise ConfigurationError(
                f"{function.made_by} has no name of its own, and a second one would have the same:"
                f' give one where it registers, like on(…, name="{self.name}.forward")'
            )
        return f"{self.name}.{function.__name__}"

    @property
    def handlers(self) -> tuple[HandlerSpec, ...]:
        """The declarations, in order."""
        return tuple(spec for spec, _ in self._handlers.values())

    def registered(self, name: str) -> Registered | None:
        """Returns what is registered under a handler's name."""
        found = self._handlers.get(name)
        return found[1] if found else None


def _backoff(given: str | Backoff) -> Backoff:
    if isinstance(given, Backoff):
        return given
    if given not in BACKOFFS:
        raise ConfigurationError(f"backoff {given!r} is unknown; use one of {', '.join(BACKOFFS)}")
    return BACKOFFS[given]


def _check(spec: HandlerSpec) -> None:
    faults = {
        "a name is 1-64 of a-z 0-9 _ . -": not NAME.fullmatch(spec.name),
        "this name is the inbox's own, choose another": spec.name == SPLIT,
        "a lane is 1-64 of a-z 0-9 _ . -": not NAME.fullmatch(spec.lane),
        "it is serial, and the default lane is no FIFO one: leave `lane` out, or name another": (
            spec.serial and spec.lane == DEFAULT_LANE
        ),
        "name at least one event type, '*' for all": not spec.types,
        "max_attempts is 1-100": not 1 <= spec.max_attempts <= 100,
        "max_age is 60-2419200 seconds": not 60 <= spec.max_age <= 2_419_200,
        "its order's timeout is longer than max_age, which would end the wait first": (
            spec.order is not None
            and spec.order.kind == SEQUENCE
            and spec.order.timeout > spec.max_age
        ),
        "timeout is 1-55 seconds": not 1 <= spec.timeout <= 55,
        "a backoff has 0 < base <= cap <= 604800 seconds and a factor of 1-100": not (
            0 < spec.backoff.base <= spec.backoff.cap <= 604_800 and 1 <= spec.backoff.factor <= 100
        ),
    }
    for remedy, wrong in faults.items():
        if wrong:
            raise ConfigurationError(f"handler {spec.name!r}: {remedy}")
