"""What a handler declares of the order it keeps: `@router.on(…, order=latest(…))`."""

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
# A number has a place in a sort key of so many digits, and DynamoDB keeps it exactly.
NUMBERS: Final = 10**18
LONGEST_TIMEOUT: Final = timedelta(days=28)
_PATH: Final = re.compile(r"[^.]+(\.[^.]+)*")

# Given an ordering key and the first and last number that are missing, it applies what it can fetch of
# them, in order, and returns the last number that it applied; the first minus one for none.
Backfill = Callable[[str, int, int], int]


@dataclass(frozen=True, slots=True)
class Ordering:
    """The order that a handler keeps: what is declared, and the function that fills gaps."""

    order: Order
    backfill: Backfill | None = None


def latest(key: str, version: str) -> Ordering:
    """Returns the order in which what is older than what has begun is skipped.

    Args:
        key: the path in the body's JSON to what the order is about, like "data.object.id".
        version: the path to what tells older from newer: numbers (or decimal text) by value,
            ISO 8601 times as instants (UTC where they say no zone), other text as text.

    Raises:
        ConfigurationError: a path is none.
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
    """Returns the order by number, one after the other, without gaps.

    Args:
        key: the path in the body's JSON to what is counted, like "account".
        number: the path to the whole number.
        first: the number that every ordering key begins with, 0 or more.
        timeout: how long a run waits for a number that does not come, like "30s" or "1h"; at most
            28 days.
        on_gap: what happens then: "hold" asks a person, "skip" passes over what is missing,
            "dead" makes the run that waits a dead letter.
        backfill: `backfill(key, first, last)` applies the numbers that are missing, in order,
            as far as it can fetch them, and returns the last that it applied. It may be called
            again for what it has applied, if its worker was lost before that was recorded.

    Raises:
        ConfigurationError: a path is none, or a value out of bounds.
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
    """Returns the order of acceptance, one event of an ordering key at a time, on a FIFO lane.

    An event that was acknowledged before another was sent is handled before it. While one is
    retried, the next ones of its ordering key wait; other ordering keys do not.

    Args:
        key: the path in the body's JSON to what the order is about, like "data.object.id".
        on_dead: what a run's death means to the next ones of its ordering key: "continue", or "block"
            until it was replayed to its end.

    Raises:
        ConfigurationError: the path is none, or `on_dead` is unknown.
    """
    if on_dead not in {CONTINUE, BLOCK}:
        raise ConfigurationError(f"order: on_dead={on_dead!r}; use {CONTINUE} or {BLOCK}")
    return Ordering(Order(SERIAL, _path("key", key), on_dead=on_dead))


def _path(name: str, path: object) -> str:
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        raise ConfigurationError(
            f"order: {name}={path!r} is no path; write it like 'data.object.id'"
        )
    return path


def _seconds(timeout: object) -> float:
    if not isinstance(timeout, str):
        raise ConfigurationError(f"order: timeout={timeout!r}; write it like '30s', '5m' or '1h'")
    length = duration(timeout)
    if length > LONGEST_TIMEOUT:
        raise ConfigurationError(f"order: timeout={timeout!r}; at most 672h, which is 28 days")
    return length.total_seconds()
