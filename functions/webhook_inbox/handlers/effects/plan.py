"""The plan of an effect: its name, key, arguments and policy."""

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final, TypedDict

from webhook_inbox.domain.errors import ConfigurationError, Permanent
from webhook_inbox.domain.idempotency import NAME_LIMIT, IdempotencyKey, key_of, versioned
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.timestamps import duration, span

# '#' separates the parts of a row's key.
_NAME: Final = re.compile(r"[ -\"$-~]{1,128}", re.ASCII)
_POSITIONAL: Final = frozenset(
    {
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    }
)
# Seconds for a call and its record.
NEEDS: Final = 2.0
DAY: Final = "24h"
# A first parameter with a default receives the key only under one of these names.
_KEY_NAMES: Final = frozenset({"key", "idempotency_key"})


class InDoubt(StrEnum):
    """The policy for an effect that started and did not commit."""

    RETRY = "retry"  # repeat it with its key, within the key's lifetime
    HOLD = "hold"  # hold the run for a person's decision


# The page of a request shows all arguments.
ARGUMENTS_LIMIT: Final = 16 * 1024
SHORTEST_REQUEST: Final = timedelta(minutes=1)
# An event is kept for 35 days; the alarm on waiting runs fires seven days earlier.
LONGEST_REQUEST: Final = timedelta(days=28)


@dataclass(frozen=True, slots=True)
class Approval:
    """Requires approvals of an effect by named people, outside the terminal.

    Attributes:
        by: the group that is asked, `[approvers.NAME]` of inbox.toml.
        count: the number of people who must approve; one denial ends the run.
        expires: how long they may take, one minute to 28 days, like "2d" or "12h".
    """

    by: str
    count: int = 1
    expires: str | timedelta = "2d"

    @property
    def lifetime(self) -> timedelta:
        """How long a request is open; raises ConfigurationError for an invalid `expires`."""
        found = span(self.expires) if isinstance(self.expires, str) else self.expires
        if not SHORTEST_REQUEST <= found <= LONGEST_REQUEST:
            raise ConfigurationError(f"{found} is out of range; use one minute to 28 days")
        return found


Probe = Callable[[IdempotencyKey], Any]


class JobOptions(TypedDict, total=False):
    """The options of an effect that starts a job; `plan` has their defaults.

    `Context.effect` describes them.
    """

    args: Any
    probe: Probe | None
    in_doubt: str | None
    key_lifetime: str | timedelta
    approve: bool | Approval
    needs: float


class EffectOptions(JobOptions, total=False):
    """The options of an effect."""

    key: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """An effect as its handler requests it.

    Attributes:
        name: unique in its run, with the run's key version.
        key: the idempotency key for the downstream.
        shared: the business key that several events share, or "".
        arguments: the fingerprint of the arguments, "" if none are given.
        shows: the arguments as text, for approval.
        keyed: whether the function receives the key.
        probe: finds the result of an effect in doubt.
        in_doubt: the policy while it is unknown whether it happened.
        key_lifetime: how long the downstream keeps a key; later the effect is not repeated.
        approve: whether a person must approve it first, or which people.
        needs: the time that must be left in the attempt.
    """

    name: str
    key: IdempotencyKey
    shared: str
    arguments: str
    shows: str
    keyed: bool
    probe: Probe | None
    in_doubt: InDoubt
    key_lifetime: timedelta
    approve: bool | Approval
    needs: timedelta

    @property
    def subject(self) -> str:
        """The subject of an approval."""
        return f"effect:{self.name}"


def plan(  # noqa: PLR0913 - each a keyword of its own
    name: str,
    run: Run,
    *,
    takes_key: bool,
    key: str | None = None,
    args: Any = None,
    probe: Probe | None = None,
    in_doubt: str | None = None,
    key_lifetime: str | timedelta = DAY,
    approve: bool | Approval = False,
    needs: float = NEEDS,
) -> Plan:
    """Returns the plan of an effect of a run; the options are `EffectOptions`.

    Raises:
        Permanent: the name, the key, the arguments or an option is invalid; nothing was done.
    """
    check_name(name)
    if key is not None:
        _check_key(name, key)
    shown = "" if args is None else _canonical(name, args)
    if in_doubt and in_doubt not in set(InDoubt):
        raise Permanent(f"effect {name!r}: in_doubt={in_doubt!r}; use one of {', '.join(InDoubt)}")
    policy = InDoubt(in_doubt or (InDoubt.RETRY if takes_key else InDoubt.HOLD))
    try:
        lifetime = duration(key_lifetime) if isinstance(key_lifetime, str) else key_lifetime
    except ConfigurationError as error:
        raise Permanent(f"effect {name!r}: key_lifetime: {error}") from error
    if isinstance(approve, Approval):
        _check_approval(name, approve, shown)
    named, own = versioned(name, run.key_version), (run.handler, run.source, run.event_id)
    return Plan(
        name=named,
        key=key_of(named, *own) if key is None else key_of(named, key),
        shared=key or "",
        arguments=sha256(shown.encode()).hexdigest() if shown else "",
        shows=shown,
        keyed=takes_key,
        probe=probe,
        in_doubt=policy,
        key_lifetime=lifetime,
        approve=approve,
        needs=timedelta(seconds=needs),
    )


def takes_key(function: Callable[..., Any]) -> bool:
    """Returns whether a function takes the key as its only argument.

    A first parameter with a default does not, such as that of `lambda line=line: …` in a loop,
    unless it is named `key` or `idempotency_key`.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return True
    first = next((each for each in parameters if each.kind in _POSITIONAL), None)
    if first is None:
        return False
    return first.default is inspect.Parameter.empty or first.name in _KEY_NAMES


def require_plain(name: str, *functions: Callable[..., Any] | None) -> None:
    """Rejects coroutine functions where plain functions are called.

    Raises:
        Permanent: one is a coroutine function; nothing was done.
    """
    if any(map(inspect.iscoroutinefunction, functions)):
        raise Permanent(
            f"effect {name!r}: it is given a coroutine function; use aeffect, or await_for"
        )


def check_name(name: str) -> None:
    """Rejects an invalid effect name.

    Raises:
        Permanent: the name is not 1-128 printable ASCII characters without "#".
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Permanent(
            f"effect {name!r}: a name is 1-{NAME_LIMIT} printable ASCII characters without #"
        )


def _check_key(name: str, key: str) -> None:
    if not isinstance(key, str) or not key:
        raise Permanent(f"effect {name!r}: a business key must be non-empty text")
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise Permanent(f"effect {name!r}: the business key is not valid Unicode") from error
    if size > 1024:
        raise Permanent(f"effect {name!r}: the business key has {size} bytes; the limit is 1024")


def _check_approval(name: str, approval: Approval, arguments: str) -> None:
    if not arguments:
        raise Permanent(
            f"effect {name!r}: approve=Approval(…) needs args=…: people approve the arguments that"
            " they see"
        )
    size = len(arguments.encode())
    if size > ARGUMENTS_LIMIT:
        raise Permanent(
            f"effect {name!r}: its args have {size} bytes, and people are shown all of them; the"
            f" limit is {ARGUMENTS_LIMIT}"
        )
    if not isinstance(approval.count, int) or approval.count < 1:
        raise Permanent(f"effect {name!r}: approve: count={approval.count!r}; use 1 or more")
    try:
        _ = approval.lifetime
    except ConfigurationError as error:
        raise Permanent(f"effect {name!r}: approve: expires: {error}") from error


def _canonical(name: str, args: Any) -> str:
    """Returns the arguments as canonical JSON."""
    try:
        text = json.dumps(args, default=plain, sort_keys=True, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Permanent(f"effect {name!r}: its args are not JSON: {error}") from error
    return text


def plain(value: Any) -> Any:
    """Converts a pydantic model or a dataclass to JSON data, for json.dumps."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
