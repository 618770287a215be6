"""Secrets that a delivery carries unchanged. They prove the sender, not the content.

A secret may hold the credentials of several agents, as a JSON object by agent name. An agent is a
caller with a credential of its own. Any other secret is one credential without an agent name.
"""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.json_path import parse, query_field
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sample, Verified
from webhook_inbox.providers.schemes.signatures.encodings import matches

NAME_LIMIT: Final = 128


def is_agent_name(text: str) -> bool:
    """Tells whether an agent can be called so: it is stored, shown, and asked for by policies."""
    return 0 < len(text) <= NAME_LIMIT and text.isprintable() and text.strip() == text


def secret_document(secret: str) -> dict[str, Any] | None:
    """Returns the JSON object that a secret is; None where it is none, {} where it is broken."""
    if not secret.lstrip().startswith("{"):
        return None
    try:
        found = parse(secret)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def named_agents(entries: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields agents with what the secret holds of them; not those that cannot be called so."""
    return ((name, value) for name, value in entries.items() if is_agent_name(name))


def credentials(secret: str) -> list[tuple[str, str]]:
    """Returns (agent, credential) of all that a secret holds, the agent "" where it names none.

    An empty credential is none: everybody has it.
    """
    entries = secret_document(secret)
    if entries is None:
        return [("", secret)] if secret else []
    return [(name, text) for name, text in named_agents(entries) if isinstance(text, str) and text]


# All values that a delivery carries where the token should be; () where it carries none.
Carried = Callable[[Delivery], Sequence[str]]


def plain(secret: str) -> str:
    """Sends the secret as it is."""
    return secret


def bearer(secret: str) -> str:
    """Sends `Bearer …`."""
    return f"Bearer {secret}"


def basic(secret: str) -> str:
    """Sends `Basic …`, of a secret that is `user:password`."""
    return f"Basic {b64encode(secret.encode(errors='replace')).decode()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticToken:
    """A token that has to equal the secret.

    Attributes:
        headers: lower-case names of the header with it, in order of preference.
        fields: names of query fields with it, looked at where no header has it.
        find: finds it elsewhere; where it finds several, every one has to be right, though while
            the secret is rotated one may be the current and another the previous.
        write: how a secret is sent.
    """

    headers: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    find: Carried | None = None
    write: Callable[[str], str] = plain

    @property
    def reads(self) -> frozenset[str]:
        """The lower-case names of the headers that `verify` reads."""
        return frozenset(self.headers)

    def verify(self, delivery: Delivery, secrets: Sequence[str]) -> Verified:
        """Compares the token, in constant time.

        Raises:
            Rejected: always with a reason, whatever the input; nothing else is ever raised.
        """
        carried = self._carried(delivery)
        if not carried:
            raise Rejected(Reason.MISSING_SIGNATURE, "no token where this provider sends it")
        # An empty token is none: everybody has it.
        live = [(place, self.write(secret)) for place, secret in enumerate(secrets) if secret]
        if not live:
            raise Rejected(Reason.NO_SECRET, "the source's token is not set")
        found = [{place for place, right in live if matches(token, right)} for token in carried]
        if all(found):
            # The oldest that is still in use.
            place = max(min(places) for places in found)
            return Verified(place, self.write(secrets[place]))
        raise Rejected(Reason.INVALID_SIGNATURE, "the token is not the source's")

    def sign(self, sample: Sample, secret: str, now: datetime) -> dict[str, str]:  # noqa: ARG002 - a token has neither content nor time
        """Returns the headers of a delivery with the token; raises ConfigurationError."""
        if not secret:
            raise ConfigurationError("the secret is empty")
        sent = {"content-type": "application/json"}
        return sent | ({self.headers[0]: self.write(secret)} if self.headers else {})

    def _carried(self, delivery: Delivery) -> Sequence[str]:
        if self.find is not None:
            return self.find(delivery)
        found = [value for name in self.headers if (value := delivery.headers.get(name))]
        if found:
            return found[:1]
        # Compared as `write` sends it, which in a query is as it is.
        values = [query_field(delivery, name) for name in self.fields]
        return [self.write(value) for value in values if value][:1]
