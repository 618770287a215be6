"""The end of a job: its result or its error, as reported."""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Never

from webhook_inbox.handlers.effects.journal import Unstorable, decode, encode
from webhook_inbox.ledger.settle import cut

# Below DynamoDB's 400 KB per item and the payload limit of API Gateway.
BODY_LIMIT: Final = 256 * 1024


class Unreadable(ValueError):
    """The body reports neither a result nor an error; the text says what is expected."""


class TooLarge(ValueError):
    """The body exceeds 256 KB."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A job's end.

    Attributes:
        result: the result as stored; None if the job failed.
        error: why it failed, at most 1 KB.
        retry: whether another job may be started.
        digest: the fingerprint of this end.
    """

    result: bytes | None
    error: str
    retry: bool
    digest: str

    @classmethod
    def of(cls, result: Any) -> "Ending":
        """Returns the end of a job that succeeded.

        Raises:
            Unstorable: the result is not JSON, or exceeds 300 KB.
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
        TooLarge: the body exceeds 256 KB.
        Unreadable: the body is neither.
    """
    if len(body) > BODY_LIMIT:
        raise TooLarge(f"the body exceeds {BODY_LIMIT // 1024} KB")
    try:
        told = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the body is not JSON: {error}") from error
    if isinstance(told, dict) and set(told) == {"result"}:
        try:
            return Ending.of(told["result"])
        except Unstorable as error:
            raise Unreadable(str(error)) from error
    if isinstance(told, dict) and "error" in told and set(told) <= {"error", "retry"}:
        why, retry = told["error"], told.get("retry", False)
        if isinstance(why, str) and why.strip() and isinstance(retry, bool):
            return Ending.failure(why, retry=retry)
    raise Unreadable(
        'send {"result": …}, or {"error": "why"}, with "retry": true to start another job'
    )


def _refuse(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


def _digest(told: Any) -> str:
    try:
        text = json.dumps(told, sort_keys=True, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise Unstorable(f"its result is not JSON: {error}") from error
    return sha256(text.encode()).hexdigest()
