"""Registers functions as handlers."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import DEFAULT_LANE, SERIAL, SMOKE, SPLIT, Backoff, HandlerSpec
from webhook_inbox.handlers.ordering.declaration import SEQUENCE, Ordering
from webhook_inbox.handlers.schema_versions import Versions
from webhook_inbox.handlers.validation import check_handler, check_options

NAME: Final = re.compile(r"[a-z0-9_.-]{1,64}")

# `steady` spans 9.8 h over eight attempts, longer than most outages; `fast` is for tests and for
# downstreams that recover in seconds.
BACKOFFS: Final = {"steady": Backoff(), "fast": Backoff(base=0.2, factor=2.0, cap=2.0)}

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Registered:
    """The functions and payload versions of a handler."""

    function: Function
    policy: Function | None = None
    backfill: Function | None = None
    versions: Versions | None = None


@dataclass(frozen=True, slots=True)
class ReadyMade:
    """A handler made by a call such as `forward("billing")`, without a name or module."""

    made_by: str
    function: Function
    destinations: tuple[str, ...] = ()

    def __call__(self, event: Any, ctx: Any) -> Any:
        """Handles an event."""
        return self.function(event, ctx)


class Router:
    """Registers the handlers of one source.

    Args:
        name: the prefix of the handlers' names, `name.function`.
        source: the source in inbox.toml; `name` unless given.
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
        """Registers the decorated function, plain or async, for events of these types.

        Args:
            types: glob patterns of event types, such as `"invoice.*"`.
            name: the handler's name, `router.function` by default. It is part of ledger and effect
                keys, so a renamed handler is a new one. Required for ready-made handlers.
            max_attempts: attempts before the run is moved to the DLQ, 1-100.
            timeout: seconds per attempt, 1-55.
            backoff: "steady" (9.8 h over eight attempts), "fast" (seconds), or a `Backoff`.
            lane: the queue of its runs; by default the shared one, or for `serial` a FIFO queue
                named like the handler.
            max_age: seconds that a run may be deferred in total, 60-2419200 (28 days).
            destinations: destinations that it calls. While one is down or at its limit, runs are
                deferred without counting an attempt.
            order: `latest(…)`, `sequence(…)` or `serial(…)`.
            policy: a function of event and context that returns None, `Deny` or `Hold`.
            versions: the payload versions that it supports.

        Raises:
            ConfigurationError: an option is invalid, or the name is in use.
        """
        # Checked before decoration: a decorator without parentheses would register nothing.
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
                # A ready-made handler belongs to the module that registers it.
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
                f"{function.made_by} has no name of its own: give one where it is registered,"
                f' like on(…, name="{self.name}.forward")'
            )
        return f"{self.name}.{function.__name__}"

    @property
    def handlers(self) -> tuple[HandlerSpec, ...]:
        """The declared handlers, in order of registration."""
        return tuple(spec for spec, _ in self._handlers.values())

    def registered(self, name: str) -> Registered | None:
        """Returns the functions of a handler by its name, or None."""
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
        "this name is the inbox's own, choose another": spec.name in {SMOKE, SPLIT},
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
