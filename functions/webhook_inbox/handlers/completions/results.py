"""What came of a job, as whoever did it says."""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Never

from webhook_inbox.handlers.effects.results import Unstorable, decode, encode
from webhook_inbox.ledger.settle import cut

# Far below a row's 400 KB, and below what API Gateway hands over.
BODY_LIMIT: Final = 256 * 1024


class Unreadable(ValueError):
    """What was sent says nothing of a job's end, and the text says what would."""


class TooLarge(ValueError):
    """More was sent than is kept."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A job's end.

    Attributes:
        result: what it returned, as it is stored; None where it failed.
        error: why it failed, at most 1 KB.
        retry: whether it may be started anew.
        digest: what tells this end from any other.
    """

    result: bytes | None
    error: str
    retry: bool
    digest: str

    @classmethod
    def of(cls, result: Any) -> "Ending":
        """Returns the end of a job that did its work.

        Raises:
            Unstorable: the result is no JSON, or too large.
        """
        stored = encode(result)
        digest = _digest({"result": decode(stored)})
        return cls(stored, error="", retry=False, digest=digest)

    @classmethod
    def failure(cls, error: str, *, retry: bool) -> "Ending":
        """Returns the end of a job that failed."""
        kept = cut(error)
        return cls(None, kept, retry, _digest({"error": kept, "retry": retry}))


def read(body: bytes) -> Ending:
    """Reads `{"result": …}` or `{"error": "…", "retry": true}`.

    Raises:
        TooLarge: it has more than 256 KB.
        Unreadable: it is neither.
    """
    if len(body) > BODY_LIMIT:
        raise TooLarge(f"the body has more than {BODY_LIMIT // 1024} KB")
    try:
        told = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the body is no JSON: {error}") from error
    if isinstance(told, dict) and set(told) == {"result"}:
        try:
            return Ending.of(told["result"])
        except Unstorable as error:
            raise Unreadable(str(error)) from error
    if isinstance(told, dict) and "error" in told and set(told) <= {"error", "retry"}:
        why, retry = told["error"], told.get("retry", False)
        if isinstance(why, str) and why.strip() and isinstance(retry, bool):
            return Ending.failure(why, retry=retry)
    raise Unreadable('send {"result": …}, or {"error": "why"}, with "retry": true to start it anew')


def _refuse(name: str) -> Never:
    raise ValueError(f"{name} is no JSON")


def _digest(told: Any) -> str:
    try:
        text = json.dumps(told, sort_keys=True, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise Unstorable(f"its result is no JSON: {error}") from error
    return sha256(text.encode()).hexdigest()
