"""Declares the order of a handler's events: `@router.on(…, order=latest(…))`."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import BLOCK, SERIAL, Order
from webhook_inbox.domain.timestamps import duration

LATEST: Final = "latest"
SEQUENCE: Final = "sequence"
CONTINUE: Final = "continue"
ON_GAP: Final = ("hold", "skip", "dead")
# Numbers of 18 digits fit a padded sort key, and DynamoDB stores them exactly.
NUMBERS: Final = 10**18
LONGEST_TIMEOUT: Final = timedelta(days=28)
_PATH: Final = re.compile(r"[^.]+(\.[^.]+)*")

# Called with an ordering key and the first and last missing number; applies the events that it can
# fetch, in order, and returns the last number applied, or the first minus one.
Backfill = Callable[[str, int, int], int]


@dataclass(frozen=True, slots=True)
class Ordering:
    """A declared order, and the function that fills its gaps."""

    order: Order
    backfill: Backfill | None = None


def latest(key: str, version: str) -> Ordering:
    """Skips an event older than the newest one begun for its ordering key.

    Args:
        key: the path to the ordering key in the body, such as "data.object.id".
        version: the path to the version, at most 256 characters. Numbers and decimal text compare
            by value, ISO 8601 times as instants (UTC without a zone), other text by code points.

    Raises:
        ConfigurationError: a path is invalid.
    """
    return Ordering(Order(LATEST, _path("key", key), _path("version", version)))


def sequence(
    key: str,
    number: str,
    *,
    first: int = 1,
    timeout: str = "1h",
    on_gap: str = "hold",
    backfill: Backfill | None = None,
) -> Ordering:
    """Handles the events of an ordering key by number, without gaps.

    Args:
        key: the path to the ordering key in the body, such as "account".
        number: the path to the number, 0 to 10^18 - 1.
        first: the first number of every ordering key, 0 or more.
        timeout: how long a run waits for a missing number, like "30s" or "1h"; at most 28 days.
        on_gap: the action after the timeout: "hold" asks a person, "skip" passes over the missing
            numbers, "dead" moves the waiting run to the DLQ.
        backfill: `backfill(key, first, last)` fetches and applies the missing numbers in order and
            returns the last one applied, `first - 1` for none. After the loss of a worker it may
            be called again for numbers that it has applied.

    Raises:
        ConfigurationError: a path is invalid, or a value is out of bounds.
    """
    if type(first) is not int or not 0 <= first < NUMBERS:
        raise ConfigurationError(f"order: first={first!r}; a sequence begins with 0 or more")
    if on_gap not in ON_GAP:
        raise ConfigurationError(f"order: on_gap={on_gap!r}; use one of {', '.join(ON_GAP)}")
    if backfill is not None and not callable(backfill):
        raise ConfigurationError("order: backfill is a function (ordering key, first, last)")
    order = Order(
        SEQUENCE,
        _path("key", key),
        _path("number", number),
        first=first,
        timeout=_seconds(timeout),
        on_gap=on_gap,
        backfill=backfill is not None,
    )
    return Ordering(order, backfill)


def serial(key: str, *, on_dead: str = CONTINUE) -> Ordering:
    """Handles the events of an ordering key one at a time, in order of acceptance, on a FIFO lane.

    An event acknowledged before another was sent is handled first. While one is retried, the next
    events of its ordering key wait.

    Args:
        key: the path to the ordering key in the body, such as "data.object.id".
        on_dead: "continue" with the next event after a run is moved to the DLQ, or "block" until it
            is replayed or skipped.

    Raises:
        ConfigurationError: the path is invalid, or `on_dead` is unknown.
    """
    if on_dead not in {CONTINUE, BLOCK}:
        raise ConfigurationError(f"order: on_dead={on_dead!r}; use {CONTINUE} or {BLOCK}")
    return Ordering(Order(SERIAL, _path("key", key), on_dead=on_dead))


def _path(name: str, path: object) -> str:
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        raise ConfigurationError(
            f"order: {name}={path!r} is not a path; write it like 'data.object.id'"
        )
    return path


def _seconds(timeout: object) -> float:
    if not isinstance(timeout, str):
        raise ConfigurationError(f"order: timeout={timeout!r}; write it like '30s', '5m' or '1h'")
    length = duration(timeout)
    if length > LONGEST_TIMEOUT:
        raise ConfigurationError(f"order: timeout={timeout!r}; at most 672h, which is 28 days")
    return length.total_seconds()
