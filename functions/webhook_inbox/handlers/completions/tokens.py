"""Completion tokens: each completes one wait, names it, and is made anew whenever it is needed.

    {source#handler#name#event id, as base64url}.{HMAC-SHA256, as base64url}

The first half is an address, so that nobody has to look for the row; the second is the secret.
It lies nowhere: the row has the token's SHA-256, and what it is made with is in no table (G10).
"""

import hmac
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.secrets import COMPLETION_KEY, SecretCache
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.effects.plan import plain
from webhook_inbox.ledger.schema import ID_LIMIT, wait_key

# How the `waits_for` of a run begins that waits for a job: the rest is its name.
COMPLETION: Final = "completion of "
# Of names that no inbox writes, but a row's key could not hold.
NAME_BYTES: Final = 128
_SPELLING: Final = re.compile(r"([A-Za-z0-9_-]{1,1200})\.[A-Za-z0-9_-]{43}", re.ASCII)


class CompletionToken(str):
    """A completion token. Whoever has it may complete its wait: keep it out of logs."""

    __slots__ = ()

    @property
    def path(self) -> str:
        """Where to POST what came of the work, behind the inbox's address."""
        return f"/completions/{self}"

    def __repr__(self) -> str:
        """Returns nothing of it, since this is what tracebacks and debuggers show."""
        return "Token(…)"


@dataclass(frozen=True, slots=True)
class WaitAddress:
    """Which wait of which run."""

    source: str
    event_id: str
    handler: str
    name: str

    @property
    def key(self) -> Key:
        """The key of the wait's row."""
        return wait_key(self.source, self.event_id, self.handler, self.name)

    @property
    def subject(self) -> str:
        """What a run waits for, as an operator is told."""
        return f"{COMPLETION}{self.name}"


def mint(key: str, place: WaitAddress, *, number: int, received_at: datetime) -> CompletionToken:
    """Returns a wait's token, the same whenever it is asked for.

    Args:
        key: what it is made with.
        place: the wait.
        number: which job of it, from 1: one that failed is started anew, with another token.
        received_at: when the event came; an id that comes again after years is another event.
    """
    address = "#".join((place.source, place.handler, place.name, place.event_id)).encode()
    told = f"completion\0{number}\0{to_ms(received_at)}\0".encode() + address
    secret = hmac.digest(key.encode(), told, "sha256")
    return CompletionToken(f"{_text(address)}.{_text(secret)}")


class TokenIssuer:
    """Makes the tokens of one event."""

    def __init__(self, secrets: SecretCache, received_at: datetime) -> None:
        self._secrets = secrets
        self._received_at = received_at

    def tokens(self, place: WaitAddress, number: int) -> list[CompletionToken]:
        """Returns a wait's token by each live key, the current one first.

        Raises:
            Transient: there is no key.
            Unavailable: the secret store failed.
        """
        keys = self._secrets.get(COMPLETION_KEY)
        if not keys:
            raise Transient(
                f"secret {COMPLETION_KEY!r}, which the stack makes, has no value: deploy it again,"
                " or set it to 64 random characters"
            )
        return [mint(key, place, number=number, received_at=self._received_at) for key in keys]


def place_of(token: str) -> WaitAddress | None:
    """Returns what a token claims to complete, None for what is no token."""
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
    """Returns what is kept of a token."""
    return sha256(token.encode(errors="replace")).hexdigest()


def is_one_of(token: str, hashes: Iterable[str]) -> bool:
    """Tells in constant time whether a token is one of those whose hashes are kept."""
    given = hashed(token)
    # All are compared: which of them fits is not to be told by the time either.
    fits = [hmac.compare_digest(given, each) for each in hashes]
    return any(fits)


def without(token: CompletionToken, returned: Any) -> Any:
    """Returns what a start returned without the token in it: it is recorded (G10)."""
    try:
        text = json.dumps(returned, default=plain)
    except (TypeError, ValueError, RecursionError):
        return returned  # no JSON: refused where it is recorded
    return json.loads(text.replace(token, "[token]")) if token in text else returned


@contextmanager
def silent(token: CompletionToken) -> Iterator[None]:
    """Takes the token out of an error's text, which is recorded with the effect (G10)."""
    try:
        yield
    except Exception as error:
        error.args = tuple(
            arg.replace(token, "[token]") if isinstance(arg, str) else arg for arg in error.args
        )
        raise


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
