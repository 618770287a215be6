"""Secrets that are sent as they are. They prove who sends, and nothing about what is sent."""

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sample, Verified
from webhook_inbox.providers.schemes.http import urls
from webhook_inbox.providers.schemes.signatures.constant_time import matches

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
        values = [urls.query_field(delivery, name) for name in self.fields]
        return [self.write(value) for value in values if value][:1]
