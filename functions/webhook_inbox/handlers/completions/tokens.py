"""Completion tokens: each completes one job of one wait.

    {source#handler#job#event id, as base64url}.{HMAC-SHA256, as base64url}

The first half addresses the row; the second half is the secret. The token is computed when needed
and never stored: the row has its SHA-256, and the signing key is in no table (G10).
"""

import hmac
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.secrets import COMPLETION_KEY, SecretCache
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.effects.plan import plain
from webhook_inbox.ledger.schema import ID_LIMIT, wait_key

# Prefix of a run's `waits_for` while it waits for a job; the rest is the wait's name.
COMPLETION: Final = "completion of "
# Longer names do not fit a row's key; no inbox issues them.
NAME_BYTES: Final = 128
_SPELLING: Final = re.compile(r"([A-Za-z0-9_-]{1,1200})\.[A-Za-z0-9_-]{43}", re.ASCII)


class CompletionToken(str):
    """A completion token. Its holder may complete the job: keep it out of logs."""

    __slots__ = ()

    @property
    def path(self) -> str:
        """The path to POST the job's result or error to, relative to the inbox's URL."""
        return f"/completions/{self}"

    def __repr__(self) -> str:
        """Hides the token from tracebacks and debuggers."""
        return "Token(…)"


@dataclass(frozen=True, slots=True)
class WaitAddress:
    """A wait of a run; `number` counts its jobs from 1, as failed ones are started again."""

    source: str
    event_id: str
    handler: str
    name: str
    number: int = 1

    @property
    def job(self) -> str:
        """The name of the job, and of the effect that starts it."""
        return self.name if self.number == 1 else f"{self.name}:{self.number}"

    @property
    def next(self) -> "WaitAddress":
        """The wait for the next job of the same name."""
        return replace(self, number=self.number + 1)

    @property
    def key(self) -> Key:
        """The key of the job's row."""
        return wait_key(self.source, self.event_id, self.handler, self.job)

    @property
    def subject(self) -> str:
        """The `waits_for` of a run that waits for this."""
        return f"{COMPLETION}{self.name}"


def mint(key: str, place: WaitAddress, *, received_at: datetime) -> CompletionToken:
    """Returns the token of a job, the same in every call.

    Args:
        key: the signing key.
        place: the wait.
        received_at: when the event was received; a reused event id yields another token.
    """
    address = "#".join((place.source, place.handler, place.job, place.event_id)).encode()
    told = f"completion\0{to_ms(received_at)}\0".encode() + address
    secret = hmac.digest(key.encode(), told, "sha256")
    return CompletionToken(f"{_text(address)}.{_text(secret)}")


class TokenIssuer:
    """Issues the tokens of one event."""

    def __init__(self, secrets: SecretCache, received_at: datetime) -> None:
        self._secrets = secrets
        self._received_at = received_at

    def current(self, place: WaitAddress) -> CompletionToken:
        """Returns a job's token under the current key.

        Raises:
            Transient: the secret has no value.
            Unavailable: the secret store failed.
        """
        keys = self._secrets.get(COMPLETION_KEY)
        if not keys:
            raise Transient(
                f"secret {COMPLETION_KEY!r}, which the stack creates, has no value: deploy again,"
                " or set it to 64 random characters"
            )
        return mint(keys[0], place, received_at=self._received_at)

    def issued(self, place: WaitAddress, hashes: Collection[str]) -> Iterator[CompletionToken]:
        """Yields a job's tokens, of live keys, that have one of these hashes.

        The previous key is read only if the current one leaves a hash without a token.

        Raises:
            Unavailable: the secret store failed.
        """
        left = set(hashes)
        keys = self._secrets.keys(COMPLETION_KEY)
        while left and (key := next(keys, None)) is not None:
            token = mint(key, place, received_at=self._received_at)
            if hashed(token) in left:
                left.discard(hashed(token))
                yield token


def place_of(token: str) -> WaitAddress | None:
    """Returns the wait that a token addresses, None if the text is no token."""
    match = _SPELLING.fullmatch(token)
    if match is None:
        return None
    try:
        address = urlsafe_b64decode(match[1] + "=" * (-len(match[1]) % 4)).decode()
        source, handler, name, event_id = address.split("#", 3)
    except ValueError:
        return None
    named = all(0 < len(part.encode()) <= NAME_BYTES for part in (source, handler, name))
    if not named or not 0 < len(event_id.encode()) <= ID_LIMIT:
        return None
    return WaitAddress(source, event_id, handler, name)


def hashed(token: str) -> str:
    """Returns the hash that is stored for a token."""
    return sha256(token.encode(errors="replace")).hexdigest()


def is_one_of(token: str, hashes: Iterable[str]) -> bool:
    """Returns in constant time whether a token has one of these hashes."""
    given = hashed(token)
    # Compares all: stopping at the first match would leak its position through the time.
    fits = [hmac.compare_digest(given, each) for each in hashes]
    return any(fits)


def without(token: CompletionToken, returned: Any) -> Any:
    """Removes the token from the result of `start`, which is recorded (G10)."""
    try:
        text = json.dumps(returned, default=plain)
    except (TypeError, ValueError, RecursionError):
        return returned  # not JSON: rejected when it is recorded
    return json.loads(text.replace(token, "[token]")) if token in text else returned


@contextmanager
def silent(token: CompletionToken) -> Iterator[None]:
    """Removes the token from an error's text, which is recorded with the effect (G10)."""
    try:
        yield
    except Exception as error:
        error.args = tuple(
            arg.replace(token, "[token]") if isinstance(arg, str) else arg for arg in error.args
        )
        raise


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
