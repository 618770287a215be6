"""Status URLs: a caller of one's own reads the status of its event. Loaded with the first one.

    /status/{source#expiry#event id, as base64url}.{HMAC-SHA256, as base64url}

The second half makes the URL unguessable. The first has nothing that its caller did not send, but
the time at which the URL expires, with the event.
"""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from webhook_inbox.domain.model import SETTLED, Status, event_status
from webhook_inbox.domain.ports import Table
from webhook_inbox.domain.secrets import TOKEN_KEY, SecretCache
from webhook_inbox.domain.timestamps import from_ms, to_seconds
from webhook_inbox.ledger.schema import EVENT_LIFE, RUN_PREFIX, event_key, event_pk, live

_SPELLING: Final = re.compile(r"([A-Za-z0-9_-]{1,1000})\.([A-Za-z0-9_-]{43})", re.ASCII)
# The key also hashes the tokens of rejected deliveries, whose text begins with a source's name.
_PURPOSE: Final = b"\0status\0"


class _Subject(NamedTuple):
    source: str
    event_id: str
    until: int


class EventStatuses:
    """Issues and answers the status URLs of events."""

    def __init__(self, table: Table, secrets: SecretCache) -> None:
        self._table = table
        self._secrets = secrets

    def token(self, source: str, event_id: str, received_at: datetime) -> str:
        """Returns the token of an event, "" if the key has no value.

        Raises:
            Unavailable: the secret store failed.
        """
        keys = self._secrets.get(TOKEN_KEY)
        return _mint(keys[0], source, event_id, received_at + EVENT_LIFE) if keys else ""

    def read(self, token: str, now: datetime) -> dict[str, Any] | None:
        """Returns the status of a token's event as JSON data; None for any other text.

        Raises:
            Unavailable: the secret store or the table failed.
        """
        keys = self._secrets.keys(TOKEN_KEY)
        found = next(filter(None, (_subject(token, [key], to_seconds(now)) for key in keys)), None)
        if found is None:
            return None
        row = live(self._table.get(event_key(found.source, found.event_id)), now)
        if row is None:
            return None
        # Not the effects of the event, which may have megabytes.
        partition = event_pk(found.source, found.event_id)
        runs = list(self._table.query(partition, sk_prefix=RUN_PREFIX))
        statuses = {run["handler"]: Status(run["status"]) for run in runs}
        status = event_status(row["runs"], statuses)
        ended = [run["done_at"] for run in runs if "done_at" in run]
        done = {"done_at": _shown(max(ended))} if ended and str(status) in SETTLED else {}
        return {"status": str(status), "received_at": _shown(row["received_at"]), **done}


def _mint(key: str, source: str, event_id: str, until: datetime) -> str:
    subject = _text(f"{source}#{to_seconds(until)}#{event_id}".encode())
    return f"{subject}.{_signature(key, subject)}"


def _subject(token: str, keys: Iterable[str], now: int) -> _Subject | None:
    match = _SPELLING.fullmatch(token)
    if match is None:
        return None
    # All keys are compared: stopping at the first match would leak its position through the time.
    fits = [hmac.compare_digest(match[2], _signature(key, match[1])) for key in keys]
    if not any(fits):
        return None
    text = urlsafe_b64decode(match[1] + "=" * (-len(match[1]) % 4)).decode()
    source, until, event_id = text.split("#", 2)
    return _Subject(source, event_id, int(until)) if int(until) > now else None


def _signature(key: str, subject: str) -> str:
    return _text(hmac.digest(key.encode(), _PURPOSE + subject.encode(), "sha256"))


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _shown(milliseconds: int) -> str:
    return from_ms(milliseconds).isoformat(timespec="milliseconds").replace("+00:00", "Z")
