"""Readers that convert a secret's text to key bytes; each raises ValueError.

The same `whsec_…` is plain text for one provider and base64 for the next, so every provider names
its reader.
"""

import binascii
import json
from base64 import b64decode
from collections.abc import Callable
from hashlib import sha1
from typing import Final
from unicodedata import normalize

KeyReader = Callable[[str], bytes]
# The prefix of a Standard Webhooks public key; a shared secret never has it.
PUBLIC: Final = "whpk_"


def text(secret: str) -> bytes:
    """Returns the secret's UTF-8."""
    return secret.encode()


def hexadecimal(secret: str) -> bytes:
    """Returns the bytes of hex digits in either case."""
    return binascii.unhexlify(secret)


def base64(secret: str) -> bytes:
    """Returns the bytes of base64; its padding may be missing."""
    bare = secret.rstrip("=")
    return b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def whsec(secret: str) -> bytes:
    """Returns the key of Standard Webhooks: base64, with or without `whsec_` before it."""
    return base64(secret.removeprefix("whsec_"))


def sha1_of(secret: str) -> bytes:
    """Returns the SHA-1 of the secret's UTF-8, which Braintree signs with."""
    return sha1(secret.encode(), usedforsecurity=False).digest() if secret else b""


def nfkd(secret: str) -> bytes:
    """Returns the UTF-8 of the secret in Unicode's form NFKD, as EasyPost does."""
    return normalize("NFKD", secret).encode()


def part(secret: str, name: str, *, bare: bool = False) -> str:
    """Returns one part of a JSON secret, `{"client_id": "…", "secret": "…"}`, or "".

    With `bare`, returns a secret that is not a JSON object unchanged.
    """
    try:
        parts = json.loads(secret) if secret.startswith("{") else None
    except (ValueError, RecursionError):
        parts = None
    if not isinstance(parts, dict):
        return secret if bare else ""
    found = parts.get(name, "")
    return found if isinstance(found, str) else ""


def of_part(name: str, reader: KeyReader = text) -> KeyReader:
    """Returns a reader of one part of a secret, or of a secret without parts."""
    return lambda secret: reader(part(secret, name, bare=True))


READERS: Final[dict[str, KeyReader]] = {
    "text": text,
    "hex": hexadecimal,
    "base64": base64,
    "whsec": whsec,
    "sha1": sha1_of,
    "nfkd": nfkd,
}
