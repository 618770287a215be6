"""A signature inside each item of a body."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Sample, Sent, Verified
from webhook_inbox.providers.schemes.signatures.base import Signed
from webhook_inbox.providers.schemes.signatures.hmac import Hmac

Verify = Callable[[Delivery, Sequence[str]], Verified]


def each_of(parts: Callable[[Delivery], Sequence[Delivery] | None], verify: Verify) -> Verify:
    """Returns what verifies every part of a delivery, all under one secret."""

    def all_under(delivery: Delivery, secrets: Sequence[str]) -> Verified:
        """Raises what the first usable secret came to."""
        refusals = [Rejected(Reason.NO_SECRET, "the source's secret is not set")]
        for place, secret in enumerate(secrets):
            try:
                first, *_ = [verify(part, (secret,)) for part in parts(delivery) or (delivery,)]
            except Rejected as error:
                refusals.append(error)
            else:
                return replace(first, secret=place)
        telling = [error for error in refusals if error.reason is not Reason.NO_SECRET]
        raise (telling or refusals)[0]

    return all_under


@dataclass(frozen=True, slots=True, kw_only=True)
class EachItem:
    """Every item carries its own HMAC, and one that does not pass fails the whole delivery.

    Attributes:
        mac: how a signature is made; where it stands and what it covers is given here.
        items: finds the items; raises Rejected (malformed) where there are none.
        signature: finds an item's signature.
        signs: returns what an item's signature covers; raises Rejected (malformed).
    """

    mac: Hmac
    items: Callable[[Delivery], Sequence[object]]
    signature: Callable[[object], object]
    signs: Callable[[object], bytes]

    @property
    def reads(self) -> frozenset[str]:
        """No header: signatures stand in the body."""
        return frozenset()

    def verify(self, delivery: Delivery, secrets: Sequence[str]) -> Verified:
        """Checks the signature of every item, all under one secret.

        Raises:
            Rejected: always with a reason, whatever the input; nothing else is ever raised.
        """
        signed = [(self._signature(item), self.signs(item)) for item in self.items(delivery)]
        for place, secret in enumerate(secrets):
            if all(self.mac.made(secret, content, text) for text, content in signed):
                return Verified(place, signed[0][0])
        if not any(self.mac.usable(secret) for secret in secrets):
            raise Rejected(Reason.NO_SECRET, "no live secret is of the form this provider gives")
        raise Rejected(Reason.INVALID_SIGNATURE, "no live secret made every item's signature")

    def sign(self, sample: Sample, secret: str, now: datetime) -> dict[str, str]:  # noqa: ARG002 - signatures stand in the body
        """Returns the headers of a delivery, none of which depends on the secret."""
        self.mac.signature(secret, sample.body)
        return {"content-type": "application/json"}

    def _signature(self, item: object) -> str:
        found = self.signature(item)
        if not isinstance(found, str) or not found:
            raise Rejected(Reason.MALFORMED, "an item of the delivery has no signature")
        return found


def sealed(
    scheme: Signed,
    message: Mapping[str, object],
    field: str,
    *,
    headers: Mapping[str, str],
    secret: str,
    now: datetime,
) -> Sent:
    """Returns a delivery of a JSON message that carries its signature in a field.

    Raises:
        ConfigurationError: the secret is not of the scheme's form.
    """
    body = json.dumps(message).encode()
    delivery = Delivery("it", "POST", "/webhooks/it", "", headers, body, now)
    signature = scheme.signature(secret, scheme.contents(delivery, "")[0])
    return Sent(headers, json.dumps({**message, field: signature}).encode())
