"""How a user's function becomes a handler."""

import re
from collections.abc import Callable
from typing import Any, Final

from webhook_inbox.errors import ConfigurationError
from webhook_inbox.manifest import DEFAULT_LANE, SPLIT, Backoff, HandlerSpec

NAME: Final = re.compile(r"[a-z0-9_.-]{1,64}")

# Backoff presets. `steady` reaches 9.8 h over eight attempts, which outlasts most outages;
# `fast` is for tests and for downstreams that recover in seconds.
BACKOFFS: Final = {
    "steady": Backoff(),
    "fast": Backoff(base=0.2, factor=2.0, cap=2.0),
}

Function = Callable[..., Any]


class Router:
    """Collects the handlers of one source.

    Args:
        name: the first half of each handler's name, `name.function`.
        source: the source in inbox.toml whose events it handles; the name, unless given.
    """

    def __init__(self, name: str, *, source: str | None = None) -> None:
        self.name = name
        self.source = source if source is not None else name
        self._handlers: dict[str, tuple[HandlerSpec, Function]] = {}

    def on(
        self,
        *types: str,
        name: str | None = None,
        max_attempts: int = 8,
        timeout: float = 50.0,
        backoff: str | Backoff = "steady",
        lane: str = DEFAULT_LANE,
        max_age: float = 14 * 86400.0,
    ) -> Callable[[Function], Function]:
        """Registers the decorated function, sync or async, for events of these types.

        Args:
            types: glob patterns of event types, e.g. `"invoice.*"`.
            name: the handler's name; part of ledger and effect keys, so a rename is a new
                handler. `router.function` unless given.
            max_attempts: attempts in a round before the run is a dead letter, 1-100.
            timeout: seconds an attempt may take, 1-55.
            backoff: a preset, "steady" or "fast", or a Backoff.
            lane: the queue the runs go through.
            max_age: seconds that a run may wait by deferring itself, 60-2419200 (28 days).

        Raises:
            ConfigurationError: a value is out of bounds, or the name is taken.
        """

        def register(function: Function) -> Function:
            spec = HandlerSpec(
                name=name if name is not None else f"{self.name}.{function.__name__}",
                module=function.__module__.rpartition(".")[2],
                function=function.__qualname__,
                source=self.source,
                types=types,
                max_attempts=max_attempts,
                timeout=float(timeout),
                lane=lane,
                backoff=_backoff(backoff),
                max_age=float(max_age),
            )
            _check(spec)
            if spec.name in self._handlers:
                raise ConfigurationError(f"handler {spec.name!r} is registered twice; rename one")
            self._handlers[spec.name] = (spec, function)
            return function

        return register

    @property
    def handlers(self) -> tuple[HandlerSpec, ...]:
        """The declarations, in order."""
        return tuple(spec for spec, _ in self._handlers.values())

    def function(self, name: str) -> Function | None:
        """Returns the function registered under a handler's name."""
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
        "name at least one event type, '*' for all": not spec.types,
        "max_attempts is 1-100": not 1 <= spec.max_attempts <= 100,
        "max_age is 60-2419200 seconds": not 60 <= spec.max_age <= 2_419_200,
        "timeout is 1-55 seconds": not 1 <= spec.timeout <= 55,
        "a backoff has 0 < base <= cap <= 604800 seconds and a factor of 1-100": not (
            0 < spec.backoff.base <= spec.backoff.cap <= 604_800 and 1 <= spec.backoff.factor <= 100
        ),
    }
    for remedy, wrong in faults.items():
        if wrong:
            raise ConfigurationError(f"handler {spec.name!r}: {remedy}")
