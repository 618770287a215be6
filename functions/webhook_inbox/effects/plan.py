"""What a handler asks for when it names an effect."""

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import sha1, sha256
from typing import Any, Final

from webhook_inbox.durations import duration
from webhook_inbox.errors import ConfigurationError, Permanent

# Stripe's limit for an Idempotency-Key, the tightest of the common ones.
KEY_LIMIT: Final = 255
NAME_LIMIT: Final = 128
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
# The namespace of keys as UUIDs: any fixed one; another would change every key.
_KEYS: Final = bytes.fromhex("6f1d3f0c6a5e5c0e9d3b9d0f6c5b7a11")


class InDoubt(StrEnum):
    """What becomes of an effect that started and did not commit."""

    RETRY = "retry"  # repeated under its key, while the downstream still knows that
    HOLD = "hold"  # a person decides


class Key(str):
    """An idempotency key: readable text that fits an HTTP header, and the same as a UUID."""

    __slots__ = ()

    @property
    def uuid(self) -> str:
        """The key as a UUID (version 5), for downstreams that take nothing else."""
        # https://www.rfc-editor.org/rfc/rfc9562#section-5.5
        digits = sha1(_KEYS + self.encode(), usedforsecurity=False).hexdigest()[:32]
        variant = "89ab"[int(digits[16], 16) % 4]
        return "-".join(
            (digits[:8], digits[8:12], f"5{digits[13:16]}", variant + digits[17:20], digits[20:])
        )


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
    key: Key
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


def key_of(name: str, *rest: str) -> Key:
    """Returns an effect's key: `create-order:stripe.fulfil:stripe:evt_1`, or with a business key.

    It fits an HTTP header: at most 255 printable ASCII characters, the tail hashed where the
    whole would not be.
    """
    key = ":".join((name, *rest))
    if len(key) <= KEY_LIMIT and key.isascii() and key.isprintable():
        return Key(key)
    digest = sha256(key.encode(errors="surrogatepass")).hexdigest()
    return Key(f"{rest[0]}:{digest}" if _short(rest[0]) else digest)


def _short(text: str) -> bool:
    return len(text) <= NAME_LIMIT and text.isascii() and text.isprintable()


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
