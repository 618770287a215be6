"""The HMAC scheme: most providers differ only in the values given here."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from webhook_inbox.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.instants import to_ms
from webhook_inbox.model import Delivery
from webhook_inbox.recipe import Sample, Verified
from webhook_inbox.schemes import headers, keys
from webhook_inbox.schemes.encodings import Encoding, hexadecimal
from webhook_inbox.schemes.layouts import Layout, Whole
from webhook_inbox.schemes.templates import Template
from webhook_inbox.schemes.window import Window

_WHOLE: Final = Whole()
_BODY: Final = Template.parse("{body}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hmac:
    """An HMAC in a header.

    Attributes:
        headers: lower-case names of the signature header, in order of preference.
        layout: how its value holds the signatures.
        signs: what is signed.
        algorithm: the hash, as `hashlib` names it.
        encoding: how the digest is written.
        key: how the secret becomes key bytes.
        window: where the signed time stands, and how far it may be off.
        ids: lower-case names of the header that `{id}` stands for, in order of preference.
    """

    headers: tuple[str, ...]
    layout: Layout = _WHOLE
    signs: Template = _BODY
    algorithm: str = "sha256"
    encoding: Encoding = hexadecimal
    key: keys.KeyReader = keys.text
    window: Window | None = None
    ids: tuple[str, ...] = ()

    @property
    def reads(self) -> frozenset[str]:
        """The lower-case names of the headers that `verify` reads."""
        stamps = self.window.headers if self.window else ()
        return frozenset((*self.headers, *stamps, *self.ids))

    def verify(self, delivery: Delivery, secrets: Sequence[str]) -> Verified:
        """Checks the signature, then its time.

        In this order: a forged delivery is called forged, however old it claims to be.

        Raises:
            Rejected: always with a reason, whatever the input; nothing else is ever raised.
        """
        value = headers.first(delivery.headers, self.headers)
        if value is None:
            raise Rejected(Reason.MISSING_SIGNATURE, f"no {self.headers[0]} header")
        claim = self.layout.read(value)
        stamp = self._stamp(delivery, claim.timestamp)
        seconds = None if self.window is None else self.window.read(stamp)
        content = self.content(delivery, stamp)
        place, signature = self._match(content, claim.signatures, secrets)
        if self.window is None or seconds is None:
            return Verified(place, signature)
        signed_at = self.window.judge(seconds, now=delivery.received_at)
        return Verified(place, signature, signed_at)

    def content(self, delivery: Delivery, stamp: str = "") -> bytes:
        """Returns the bytes that the signature covers; raises Rejected (malformed).

        Args:
            delivery: the delivery they are taken from.
            stamp: the time as the provider wrote it, where the time is signed.
        """
        fields = {"body": delivery.body, "timestamp": stamp.encode()}
        if "method" in self.signs:
            fields["method"] = headers.encoded(delivery.method)
        if "id" in self.signs:
            fields["id"] = headers.encoded(headers.required(delivery.headers, self.ids))
        return self.signs.fill(fields)

    def sign(self, sample: Sample, secret: str, now: datetime) -> dict[str, str]:
        """Returns the headers of a delivery signed like the provider's, JSON by content type.

        Raises:
            ConfigurationError: the secret is not of the form that the scheme's keys have.
        """
        key = self._usable(secret)
        if key is None:
            raise ConfigurationError("the secret is not of the form that this provider gives")
        stamp = str(to_ms(now) // 1000)
        sent = {"content-type": "application/json"}
        if self.window is not None and self.window.headers:
            sent[self.window.headers[0]] = stamp
        if self.ids:
            sent[self.ids[0]] = sample.event_id
        fields = {"id": sample.event_id, "timestamp": stamp, "method": "POST"}
        content = self.signs.fill(
            {n: v.encode() for n, v in fields.items()} | {"body": sample.body}
        )
        sent[self.headers[0]] = self.layout.write(self._signature(key, content), stamp)
        return sent

    def _stamp(self, delivery: Delivery, claimed: str | None) -> str:
        if self.window is None:
            return ""
        if not self.window.headers:
            return claimed or ""
        return headers.required(delivery.headers, self.window.headers)

    def _match(
        self, content: bytes, candidates: tuple[str, ...], secrets: Sequence[str]
    ) -> tuple[int, str]:
        # As bytes: compare_digest raises on text that is not ASCII.
        sent = [candidate.encode(errors="surrogatepass") for candidate in candidates]
        live = [(place, key) for place, text in enumerate(secrets) if (key := self._usable(text))]
        if not live:
            raise Rejected(Reason.NO_SECRET, "no live secret is of the form this provider gives")
        for place, key in live:
            expected = self._signature(key, content)
            if any(hmac.compare_digest(expected.encode(), candidate) for candidate in sent):
                return place, expected
        raise Rejected(Reason.INVALID_SIGNATURE, "no live secret made this signature")

    def _usable(self, secret: str) -> bytes | None:
        """An empty key is none: everybody can sign with it."""
        try:
            return self.key(secret) or None
        except ValueError:
            return None

    def _signature(self, key: bytes, content: bytes) -> str:
        return self.encoding(hmac.digest(key, content, self.algorithm))
