"""Signatures with a provider's private key; the source's secret is the public key.

Imported only by providers that need it: the library is large.
"""

import binascii
from abc import abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509 import load_pem_x509_certificate

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.base import Match, Signed
from webhook_inbox.providers.schemes.signatures.encodings import (
    Encoding,
    base64,
    decoded,
    hexadecimal,
)

# Shorter keys can be broken.
RSA_BITS: Final = 2048
# OpenSSL verifies with no longer key: OPENSSL_RSA_MAX_MODULUS_BITS.
RSA_BITS_AT_MOST: Final = 16_384

# To verify one signature of 4.5 MB takes 10 ms. During a rotation a delivery has two.
SIGNATURES: Final = 4

# A secret's text to a key; raises ValueError.
KeyLoader = Callable[[str], Any]


def pem(text: str) -> Any:
    """Reads a public key, or a certificate's, from PEM."""
    data = text.encode()
    if "BEGIN CERTIFICATE" in text:
        return load_pem_x509_certificate(data).public_key()
    return serialization.load_pem_public_key(data)


def spki(text: str) -> Any:
    """Reads a public key from base64 of DER, or from PEM."""
    if "-----BEGIN" in text:
        return pem(text)
    return serialization.load_der_public_key(b64decode(text, validate=True))


def raw_ed25519(text: str) -> Any:
    """Reads an Ed25519 public key from 64 hex digits."""
    return ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(text))


def whpk(text: str) -> Any:
    """Reads an Ed25519 public key of Standard Webhooks: base64 after `whpk_`."""
    return ed25519.Ed25519PublicKey.from_public_bytes(keys.base64(text.removeprefix(keys.PUBLIC)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asymmetric(Signed):
    """A signature with a private key.

    Attributes:
        encoding: the signature's encoding.
        load: reads a secret's text as a public key.
        sizes: the lengths of the scheme's signatures, in bytes.
    """

    sizes: ClassVar[range]
    encoding: Encoding = base64
    load: KeyLoader = pem

    @property
    def signed_with(self) -> str:
        """See `Signed`."""
        return "the private key as PEM: the public one verifies, and signs nothing"

    def _match(
        self, contents: Sequence[bytes], candidates: Sequence[str], secrets: Sequence[str]
    ) -> Match:
        written = [(text, raw) for text in candidates if (raw := decoded(text, self.encoding))]
        live = [(place, key) for place, text in enumerate(secrets) if (key := self._usable(text))]
        if not live:
            raise Rejected(Reason.NO_SECRET, "no live key has the form of this provider")
        if not written:
            raise Rejected(Reason.MALFORMED, "the signature is not encoded correctly")
        if len(written) > SIGNATURES:
            raise Rejected(Reason.MALFORMED, f"more than {SIGNATURES} signatures")
        for place, key in live:
            for text, raw in written:
                for content in contents:
                    if self._checks(key, raw, content):
                        return Match(place, text, content)
        raise Rejected(Reason.INVALID_SIGNATURE, "no live key verifies this signature")

    def _formed(self, signature: str) -> bool:
        raw = decoded(signature, self.encoding)
        return raw is not None and len(raw) in self.sizes

    def _made(self, secret: str, content: bytes) -> str | None:
        try:
            return self.encoding(self._signed(private_key(secret), content))
        except (ValueError, TypeError, AttributeError, UnsupportedAlgorithm):
            return None

    def _usable(self, text: str) -> Any | None:
        try:
            return self._fitting(self.load(text))
        except (ValueError, TypeError, binascii.Error, UnsupportedAlgorithm):
            return None

    def _checks(self, key: Any, signature: bytes, content: bytes) -> bool:
        try:
            self._verify(key, signature, content)
        except (InvalidSignature, ValueError):
            return False
        return True

    @abstractmethod
    def _fitting(self, key: Any) -> Any | None:
        """Returns the key, None if it is for another algorithm."""

    @abstractmethod
    def _verify(self, key: Any, signature: bytes, content: bytes) -> None:
        """Raises InvalidSignature."""

    @abstractmethod
    def _signed(self, key: Any, content: bytes) -> bytes:
        """Signs the content with a private key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ed25519(Asymmetric):
    """Ed25519, signature and key in hex by default."""

    # RFC 8032, section 5.1.6.
    sizes: ClassVar[range] = range(64, 65)
    encoding: Encoding = hexadecimal
    load: KeyLoader = raw_ed25519

    def pair(self) -> tuple[str, str]:
        """Makes a private key as PEM and the public one in hex."""
        key = ed25519.Ed25519PrivateKey.generate()
        return _private_pem(key), key.public_key().public_bytes_raw().hex()

    def _fitting(self, key: Any) -> Any | None:
        return key if isinstance(key, ed25519.Ed25519PublicKey) else None

    def _verify(self, key: Any, signature: bytes, content: bytes) -> None:
        key.verify(signature, content)

    def _signed(self, key: Any, content: bytes) -> bytes:
        made: bytes = key.sign(content)
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Ecdsa(Asymmetric):
    """ECDSA over P-256 with SHA-256, the signature in DER."""

    # RFC 3279, section 2.2.3: a sequence of two integers of up to 33 bytes, each part with two
    # bytes before it. Leading zero bytes are left out; of 2^50 signatures not one is shorter.
    sizes: ClassVar[range] = range(63, 73)
    load: KeyLoader = spki

    def pair(self) -> tuple[str, str]:
        """Makes a private key as PEM and the public one as base64 of DER."""
        key = ec.generate_private_key(ec.SECP256R1())
        encoded = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return _private_pem(key), b64encode(encoded).decode()

    def _fitting(self, key: Any) -> Any | None:
        usable = isinstance(key, ec.EllipticCurvePublicKey)
        return key if usable and isinstance(key.curve, ec.SECP256R1) else None

    def _verify(self, key: Any, signature: bytes, content: bytes) -> None:
        key.verify(signature, content, ec.ECDSA(hashes.SHA256()))

    def _signed(self, key: Any, content: bytes) -> bytes:
        made: bytes = key.sign(content, ec.ECDSA(hashes.SHA256()))
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Rsa(Asymmetric):
    """RSA PKCS#1 v1.5, with SHA-256 unless a provider is older."""

    # RFC 8017, section 8.2.1: as long as the key.
    sizes: ClassVar[range] = range(RSA_BITS // 8, RSA_BITS_AT_MOST // 8 + 1)
    algorithm: type[hashes.HashAlgorithm] = hashes.SHA256

    def pair(self) -> tuple[str, str]:
        """Makes a private and a public key as PEM."""
        key = rsa.generate_private_key(65537, RSA_BITS)
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return _private_pem(key), public.decode()

    def _fitting(self, key: Any) -> Any | None:
        usable = isinstance(key, rsa.RSAPublicKey)
        return key if usable and key.key_size >= RSA_BITS else None

    def _verify(self, key: Any, signature: bytes, content: bytes) -> None:
        key.verify(signature, content, padding.PKCS1v15(), self.algorithm())

    def _signed(self, key: Any, content: bytes) -> bytes:
        made: bytes = key.sign(content, padding.PKCS1v15(), self.algorithm())
        return made


@lru_cache(maxsize=16)
def private_key(text: str) -> Any:
    """Returns the private key of a PEM, kept: OpenSSL checks one of RSA for 40 ms.

    Raises ValueError, TypeError or UnsupportedAlgorithm if the text is not such a key.
    """
    return serialization.load_pem_private_key(text.encode(), password=None)


def _private_pem(key: Any) -> str:
    text: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return text.decode()
