"""What a handler asks for when it names an effect."""

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from webhook_inbox.domain.errors import ConfigurationError, Permanent
from webhook_inbox.domain.idempotency import NAME_LIMIT, IdempotencyKey, key_of
from webhook_inbox.domain.timestamps import duration

# '#' separates the parts of a row's key.
_NAME: Final = re.compile(r"[ -\"$-~]{1,128}", re.ASCII)
_POSITIONAL: Final = frozenset(
    {
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    }
)
# What a parameter is called that is the key though it has a default.
_KEY_NAMES: Final = frozenset({"key", "idempotency_key"})


class InDoubt(StrEnum):
    """What becomes of an effect that started and did not commit."""

    RETRY = "retry"  # repeated under its key, while the downstream still knows that
    HOLD = "hold"  # a person decides


@dataclass(frozen=True, slots=True)
class Plan:
    """One effect as its handler asks for it.

    Attributes:
        name: unique in its run.
        key: what the downstream is given.
        shared: the business key that several events share, "" where the effect is one event's.
        arguments: the fingerprint of what it is called with, "" where the handler names nothing.
        shows: the arguments as a person sees them, where one has to approve them.
        in_doubt: what becomes of it where nobody knows whether it happened.
        key_lifetime: how long the downstream knows a key; it is not repeated later than that.
        approve: whether a person has to approve it first.
        needs: the time that has to be left for it to start.
    """

    name: str
    key: IdempotencyKey
    shared: str
    arguments: str
    shows: str
    in_doubt: InDoubt
    key_lifetime: timedelta
    approve: bool
    needs: timedelta

    @property
    def subject(self) -> str:
        """What an approval is for."""
        return f"effect:{self.name}"


def plan(
    name: str,
    own: tuple[str, str, str],
    *,
    key: str | None,
    args: Any,
    in_doubt: str | None,
    key_lifetime: str | timedelta,
    approve: bool,
    needs: float,
    takes_key: bool,
) -> Plan:
    """Returns a plan; whatever is wrong with it is said before anything happens.

    Args:
        name: the effect's name.
        own: handler, source and event id.
        key: the business key, None for the event's own.
        args: what it is called with, as JSON data, pydantic models or dataclasses.
        in_doubt: "retry" or "hold"; None takes "hold" where the function takes no key.
        key_lifetime: like "24h".
        approve: whether a person decides first.
        needs: seconds.
        takes_key: whether the function takes the key.

    Raises:
        Permanent: a name, a key or the arguments cannot be kept; nothing was done.
    """
    check_name(name)
    if key is not None:
        _check_key(name, key)
    told = None if args is None else _told(name, args)
    if in_doubt and in_doubt not in set(InDoubt):
        raise Permanent(f"effect {name!r}: in_doubt={in_doubt!r}; use one of {', '.join(InDoubt)}")
    policy = InDoubt(in_doubt or (InDoubt.RETRY if takes_key else InDoubt.HOLD))
    try:
        lifetime = duration(key_lifetime) if isinstance(key_lifetime, str) else key_lifetime
    except ConfigurationError as error:
        raise Permanent(f"effect {name!r}: key_lifetime: {error}") from error
    return Plan(
        name=name,
        key=key_of(name, *own) if key is None else key_of(name, key),
        shared=key or "",
        arguments="" if told is None else sha256(told.encode()).hexdigest(),
        shows=told or "",
        in_doubt=policy,
        key_lifetime=lifetime,
        approve=approve,
        needs=timedelta(seconds=needs),
    )


def takes_key(function: Callable[..., Any]) -> bool:
    """Tells whether a function takes the key, which is handed to it as its only argument.

    A first parameter with a default is its own, such as what `lambda line=line: …` binds in a
    loop; unless it is called `key` or `idempotency_key`.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins tell nothing of themselves
        return True
    first = next((each for each in parameters if each.kind in _POSITIONAL), None)
    if first is None:
        return False
    return first.default is inspect.Parameter.empty or first.name in _KEY_NAMES


def require_plain(name: str, *functions: Callable[..., Any] | None) -> None:
    """Refuses coroutine functions where plain ones are called: what they do would not be done.

    Raises:
        Permanent: one of them is; nothing was done.
    """
    if any(map(inspect.iscoroutinefunction, functions)):
        raise Permanent(
            f"effect {name!r}: it is given a coroutine function; use aeffect, or await_for"
        )


def check_name(name: str) -> None:
    """Refuses what is no name of an effect.

    Raises:
        Permanent: it is none.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Permanent(
            f"effect {name!r}: a name is 1-{NAME_LIMIT} printable ASCII characters, none of them #"
        )


def _check_key(name: str, key: str) -> None:
    if not isinstance(key, str) or not key:
        raise Permanent(f"effect {name!r}: a business key is text, and not empty")
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise Permanent(f"effect {name!r}: the business key is no Unicode text") from error
    if size > 1024:
        raise Permanent(f"effect {name!r}: a business key has up to 1024 bytes, not {size}")


def _told(name: str, args: Any) -> str:
    """Returns the arguments as canonical JSON."""
    try:
        text = json.dumps(args, default=plain, sort_keys=True, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Permanent(f"effect {name!r}: its args are no JSON: {error}") from error
    return text


def plain(value: Any) -> Any:
    """Returns a pydantic model or a dataclass as JSON data, for json.dumps."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
