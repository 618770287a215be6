"""Signatures with a shared secret; most providers differ only in these values."""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.base import Match, Signed
from webhook_inbox.providers.schemes.signatures.encodings import Encoding, hexadecimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Hmac(Signed):
    """An HMAC over the signed content.

    Attributes:
        algorithm: the hash, as `hashlib` names it.
        encoding: the digest's encoding.
        key: converts the secret to key bytes.
    """

    algorithm: str = "sha256"
    encoding: Encoding = hexadecimal
    key: keys.KeyReader = keys.text

    def _match(
        self, contents: Sequence[bytes], candidates: Sequence[str], secrets: Sequence[str]
    ) -> Match:
        # As bytes: compare_digest raises on text that is not ASCII.
        sent = [candidate.encode(errors="surrogatepass") for candidate in candidates]
        live = [(place, key) for place, text in enumerate(secrets) if (key := self._usable(text))]
        if not live:
            raise Rejected(Reason.NO_SECRET, "no live secret has the form of this provider")
        for place, key in live:
            for content in contents:
                expected = self._digest(key, content)
                if any(hmac.compare_digest(expected.encode(), candidate) for candidate in sent):
                    return Match(place, expected, content)
        raise Rejected(Reason.INVALID_SIGNATURE, "no live secret verifies this signature")

    def _formed(self, signature: str) -> bool:
        size = hashlib.new(self.algorithm, usedforsecurity=False).digest_size
        return signature.isascii() and len(signature) == len(self.encoding(bytes(size)))

    def _made(self, secret: str, content: bytes) -> str | None:
        key = self._usable(secret)
        return None if key is None else self._digest(key, content)

    def _usable(self, secret: str) -> bytes | None:
        """Returns the key bytes; None for an empty key, which anyone could sign with."""
        try:
            return self.key(secret) or None
        except ValueError:
            return None

    def _digest(self, key: bytes, content: bytes) -> str:
        return self.encoding(hmac.digest(key, content, self.algorithm))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainHash(Hmac):
    """A hash of the secret followed by the signed content; HubSpot v1 and v2.

    Weaker than an HMAC: a captured signature can be extended to longer content.
    """

    def _digest(self, key: bytes, content: bytes) -> str:
        return self.encoding(hashlib.new(self.algorithm, key + content).digest())
