"""Encodings of digests. Signatures are compared as text, so only one spelling is accepted.

Decoders are lenient: they accept spaces and upper case in hex, and junk and stray bits in base64.
"""

import binascii
import hmac
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Final

Encoding = Callable[[bytes], str]


def hexadecimal(digest: bytes) -> str:
    """Writes lower-case hex."""
    return digest.hex()


def base64(digest: bytes) -> str:
    """Writes padded base64 of the standard alphabet."""
    return b64encode(digest).decode()


def base64url(digest: bytes) -> str:
    """Writes unpadded base64 of the alphabet for URLs."""
    return urlsafe_b64encode(digest).decode().rstrip("=")


ENCODINGS: Final[dict[str, Encoding]] = {
    "hex": hexadecimal,
    "base64": base64,
    "base64url": base64url,
}
_DECODERS: Final[dict[Encoding, Callable[[str], bytes]]] = {
    hexadecimal: bytes.fromhex,
    base64: lambda text: b64decode(text, validate=True),
    base64url: lambda text: urlsafe_b64decode(text + "=" * (-len(text) % 4)),
}


def decoded(text: str, encoding: Encoding) -> bytes | None:
    """Returns the decoded bytes, or None if the encoding would not write this text.

    For signatures that cannot be recomputed and compared.
    """
    try:
        found = _DECODERS[encoding](text)
    except (ValueError, binascii.Error):
        return None
    return found if encoding(found) == text else None


def matches(sent: str, expected: str) -> bool:
    """Compares two texts in constant time, even those that have no valid UTF-8."""
    ours, theirs = (text.encode(errors="surrogatepass") for text in (expected, sent))
    return hmac.compare_digest(ours, theirs)
