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
    """Returns whether a text is a valid agent name: stored, printed, and read by policies."""
    return 0 < len(text) <= NAME_LIMIT and text.isprintable() and text.strip() == text


def secret_document(secret: str) -> dict[str, Any] | None:
    """Returns a secret's JSON object; None if it is not one, {} if it is invalid."""
    if not secret.lstrip().startswith("{"):
        return None
    try:
        found = parse(secret)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def named_agents(entries: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the agents with valid names and their entries in the secret."""
    return ((name, value) for name, value in entries.items() if is_agent_name(name))


def credentials(secret: str) -> list[tuple[str, str]]:
    """Returns the (agent, credential) pairs of a secret; the agent is "" if it has none.

    An empty credential is ignored: anyone has it.
    """
    entries = secret_document(secret)
    if entries is None:
        return [("", secret)] if secret else []
    return [(name, text) for name, text in named_agents(entries) if isinstance(text, str) and text]


# All values at the token's location in a delivery; () if there are none.
Carried = Callable[[Delivery], Sequence[str]]


def plain(secret: str) -> str:
    """Sends the secret unchanged."""
    return secret


def bearer(secret: str) -> str:
    """Sends `Bearer …`."""
    return f"Bearer {secret}"


def basic(secret: str) -> str:
    """Sends `Basic …`, of a secret that is `user:password`."""
    return f"Basic {b64encode(secret.encode(errors='replace')).decode()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticToken:
    """A token that must equal the secret.

    Attributes:
        headers: lower-case names of the header with it, in order of preference.
        fields: names of query fields with it, read if no header has it.
        find: finds it elsewhere. All values it finds must be valid; during a rotation, one may
            be the current and another the previous secret.
        write: encodes the secret as it is sent.
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
            raise self._missing
        # An empty token is ignored: anyone has it.
        live = [(place, self.write(secret)) for place, secret in enumerate(secrets) if secret]
        if not live:
            raise Rejected(Reason.NO_SECRET, "the source's token is not set")
        oldest = 0
        for token in dict.fromkeys(carried):
            places = {place for place, right in live if matches(token, right)}
            if not places:
                # Which of its tokens is wrong tells a caller no more than one token alone would.
                raise Rejected(Reason.INVALID_SIGNATURE, "the token is not the source's")
            oldest = max(oldest, min(places))
        return Verified(oldest, self.write(secrets[oldest]), delivery.body)

    def precheck(self, delivery: Delivery, keys: Sequence[str]) -> None:  # noqa: ARG002 - a token names no key
        """Checks that there is a token; raises Rejected."""
        if not self._carried(delivery):
            raise self._missing

    def sign(self, sample: Sample, secret: str, now: datetime) -> dict[str, str]:  # noqa: ARG002 - a token has neither content nor time
        """Returns the headers of a delivery with the token; raises ConfigurationError."""
        if not secret:
            raise ConfigurationError("the secret is empty")
        sent = {"content-type": "application/json"}
        return sent | ({self.headers[0]: self.write(secret)} if self.headers else {})

    @property
    def _missing(self) -> Rejected:
        where = f"{self.headers[0]} header" if self.headers else "token at the provider's location"
        return Rejected(Reason.MISSING_SIGNATURE, f"no {where}")

    def _carried(self, delivery: Delivery) -> Sequence[str]:
        if self.find is not None:
            return self.find(delivery)
        found = [value for name in self.headers if (value := delivery.headers.get(name))]
        if found:
            return found[:1]
        # In a query the secret is unchanged; compared in its encoded form.
        values = [query_field(delivery, name) for name in self.fields]
        return [self.write(value) for value in values if value][:1]
