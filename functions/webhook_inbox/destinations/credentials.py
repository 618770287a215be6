"""What calls to a destination prove themselves with: credentials, and a signature.

Secrets are read at each call, so that a rotated one is used at once, and never shown: whatever
form one was sent in is taken out of what a destination answers.
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

# A shorter text is part of many words.
REDACTED_FROM: Final = 4
_ID_LIMIT: Final = 255


@dataclass(frozen=True, slots=True)
class Authorization:
    """What is added to a call when it is sent, and to nothing that anybody sees."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)


class DestinationCredentials:
    """The credentials of one destination.

    Args:
        spec: the destination.
        secrets: gives the live values of a secret by its name, the current one first.
    """

    def __init__(self, spec: DestinationSpec, secrets: Callable[[str], tuple[str, ...]]) -> None:
        self._spec = spec
        self._secrets = secrets
        self._shown_never: set[str] = set()

    def authorization(self) -> Authorization:
        """Returns what authenticates a call that is made now.

        Raises:
            Transient: a secret is not set, is of another form, or cannot be read; nothing was
                done.
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
        """Returns the headers that sign a call as Standard Webhooks; none where nothing signs.

        One signature by each live value of the secret, so that either side may rotate first. The
        id is written as in a URL, without a full stop: part of it comes from strangers, who could
        otherwise move the borders between what is signed.
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
        """Returns a text without what any call has proved itself with (G10).

        Args:
            text: what may be shown afterwards.
            cut: whether it is the beginning of a longer one, and may end within a secret.
            shortest: of how many characters on a secret is one; a shorter text is part of words.
        """
        forms = sorted(self._shown_never, key=len, reverse=True)
        while cut and (end := max((_begun(form, text) for form in forms), default=0)):
            text = text[:-end]
        for form in forms:
            text = text.replace(form, "[secret]") if len(form) >= shortest else text
        return text

    def _in_header(self, header: str, prefix: str, name: str) -> Authorization:
        value = self._live(name)[0]
        # The HTTP library would show the value in its error.
        if not (value.isascii() and value.isprintable()) or value != value.strip():
            raise self._unfit(name, "cannot stand in a header")
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
            raise self._unfit(self._spec.sign, "is no key of Standard Webhooks (whsec_, base64)")
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
    """Returns the ways in which a destination may tell a secret back."""
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


def _begun(form: str, text: str) -> int:
    """Returns how many of the last characters of a text are the first of a form."""
    most = min(len(form) - 1, len(text))
    return next((size for size in range(most, 0, -1) if text.endswith(form[:size])), 0)
