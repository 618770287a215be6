"""The links by which approvers decide outside the terminal; each is for one person.

    /approvals/v1.{request, person and expiry as JSON, as base64url}.{HMAC-SHA256, as base64url}

The token is computed when a request is announced and is stored nowhere. Its key signs nothing else,
and only processors and ingest may read it (G10).
"""

import hmac
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from webhook_inbox.domain.timestamps import from_seconds, to_seconds
from webhook_inbox.handlers.approvals.request_row import RequestAddress

PATH: Final = "/approvals/"
# An event id of 512 control characters, which JSON escapes, and the longest names take 4,850.
LONGEST: Final = 5000
_SPELLING: Final = re.compile(
    rf"(v1\.[A-Za-z0-9_-]{{1,{LONGEST - 47}}})\.([A-Za-z0-9_-]{{43}})", re.ASCII
)


@dataclass(frozen=True, slots=True)
class ApprovalLink:
    """The content of a genuine link; `expires_at` is when its request expires."""

    address: RequestAddress
    person: str
    expires_at: datetime


def link_token(key: str, address: RequestAddress, person: str, expires_at: datetime) -> str:
    """Returns a person's token for a request, the same in every call.

    Args:
        key: the signing key.
        address: the request.
        person: the approver's name in inbox.toml.
        expires_at: when the request expires; rounded up to a second.
    """
    parts = (
        address.source,
        address.event_id,
        address.handler,
        address.subject,
        address.fingerprint,
        address.round,
        person,
        to_seconds(expires_at),
    )
    # JSON, since no separator is free of collisions: an event id may have any character.
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    subject = f"v1.{_text(text.encode())}"
    return f"{subject}.{_mac(key, subject)}"


def read_link(keys: Iterable[str], token: str) -> ApprovalLink | None:
    """Returns the content of a token under any of the live keys, expired or not.

    None for any other text, always after the same comparisons.
    """
    match = _SPELLING.fullmatch(token)
    if match is None:
        return None
    # All keys are compared: stopping at the first match would leak its position through the time.
    fits = [hmac.compare_digest(match[2], _mac(key, match[1])) for key in keys]
    if not any(fits):
        return None
    encoded = match[1].removeprefix("v1.")
    parts = json.loads(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    *named, person, until = parts
    return ApprovalLink(RequestAddress(*named), person, from_seconds(until))


def _mac(key: str, subject: str) -> str:
    return _text(hmac.digest(key.encode(), b"approval\0" + subject.encode(), "sha256"))


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
