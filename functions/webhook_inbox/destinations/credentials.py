"""Credentials and signatures of calls to a destination.

Secrets are read at each call, so that a rotated one is used at once. They are never shown: every
form in which one was sent is redacted from the responses of the destination.
"""

import hmac
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Final
from urllib.parse import quote, quote_plus

from webhook_inbox.domain.errors import Transient, Unavailable
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.providers.schemes.signatures import keys

# A shorter text is part of many words, and is not redacted.
REDACTED_FROM: Final = 4
_ID_LIMIT: Final = 255


@dataclass(frozen=True, slots=True)
class Authorization:
    """The headers and parameters that are added when a call is sent, and are never logged."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)


class DestinationCredentials:
    """The credentials of one destination.

    Args:
        spec: the destination.
        secrets: returns the live values of a secret by its name, the current one first.
    """

    def __init__(self, spec: DestinationSpec, secrets: Callable[[str], tuple[str, ...]]) -> None:
        self._spec = spec
        self._secrets = secrets
        self._shown_never: set[str] = set()

    def authorization(self) -> Authorization:
        """Returns the credentials of a call that is made now.

        Raises:
            Transient: a secret is not set, is malformed, or cannot be read; the call is not sent.
        """
        match dict(self._spec.auth):
            case {"bearer": name}:
                return self._in_header("Authorization", "Bearer ", name)
            case {"basic": name}:
                return self._basic(name)
            case {"header": header, "secret": name, **more}:
                return self._in_header(header, more.get("prefix", ""), name)
            case {"query": query, "secret": name}:
                return Authorization(query={query: self._live(name)[0]})
            case _:
                return Authorization()

    def signature(self, id_: str, body: bytes, now: datetime) -> Mapping[str, str]:
        """Returns the headers that sign a call as Standard Webhooks; none without `sign`.

        There is one signature for each live value of the secret, so that either side may rotate
        first. The id is percent-encoded, without a full stop: part of it comes from senders, who
        could otherwise shift the boundaries between the signed parts.
        https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

        Raises:
            Transient: as `authorization`.
        """
        if not self._spec.sign:
            return {}
        id_ = quote(id_, safe="/:@", errors="replace").replace(".", "%2E")
        if len(id_) > _ID_LIMIT:
            id_ = sha256(id_.encode()).hexdigest()
        seconds = str(int(now.timestamp()))
        content = f"{id_}.{seconds}.".encode() + body
        made = " ".join(
            "v1," + b64encode(hmac.digest(key, content, "sha256")).decode()
            for key in self._signing_keys()
        )
        self._shown_never.update(made.split(" "))
        return {"webhook-id": id_, "webhook-timestamp": seconds, "webhook-signature": made}

    def redact(self, text: str, *, cut: bool = False, shortest: int = REDACTED_FROM) -> str:
        """Returns a text without the credentials of any call (G10).

        Args:
            text: the text.
            cut: whether it is the beginning of a longer one, and may end within a secret.
            shortest: the length from which a secret is redacted; shorter ones are part of words.
        """
        forms = sorted(self._shown_never, key=len, reverse=True)
        while cut and (end := max((_overlap(form, text) for form in forms), default=0)):
            text = text[:-end]
        for form in forms:
            text = text.replace(form, "[secret]") if len(form) >= shortest else text
        return text

    def _in_header(self, header: str, prefix: str, name: str) -> Authorization:
        value = self._live(name)[0]
        # The error of the HTTP library would show the value.
        if not (value.isascii() and value.isprintable()) or value != value.strip():
            raise self._unfit(name, "cannot be sent in a header")
        return Authorization({header: prefix + value})

    def _basic(self, name: str) -> Authorization:
        value = self._live(name)[0]
        if ":" not in value:
            raise self._unfit(name, 'is not of the form "user:password"')
        self._shown_never |= _forms(value.partition(":")[2])
        return Authorization({"Authorization": f"Basic {_base64(value)}"})

    def _signing_keys(self) -> list[bytes]:
        found = []
        for value in self._live(self._spec.sign):
            try:
                found.append(keys.whsec(value))
            except ValueError:
                continue
        if not any(found):
            raise self._unfit(self._spec.sign, "is not a Standard Webhooks key (whsec_, base64)")
        return [key for key in found if key]

    def _live(self, name: str) -> tuple[str, ...]:
        try:
            values = self._secrets(name)
        except Unavailable as error:
            raise Transient(f"secret {name!r} cannot be read: {error}", refused=True) from error
        if not values:
            raise self._unfit(name, "is not set")
        for value in values:
            self._shown_never |= _forms(value)
        return values

    def _unfit(self, name: str, why: str) -> Transient:
        text = f"secret {name!r} of destination {self._spec.name!r} {why}"
        return Transient(f"{text}: webhookctl secrets set {name}", refused=True)


def _forms(value: str) -> set[str]:
    """Returns the forms in which a destination may return a secret."""
    quoted = {quote(value, safe=safe, errors="replace") for safe in ("/", "")}
    return {
        value,
        json.dumps(value)[1:-1],
        _base64(value),
        *quoted,
        quote_plus(value, errors="replace"),
    }


def _base64(value: str) -> str:
    return b64encode(value.encode(errors="replace")).decode()


def _overlap(form: str, text: str) -> int:
    """Returns the length of the longest end of a text that begins a form."""
    most = min(len(form) - 1, len(text))
    return next((size for size in range(most, 0, -1) if text.endswith(form[:size])), 0)
