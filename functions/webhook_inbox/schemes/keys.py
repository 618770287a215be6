"""How a secret's text becomes key bytes. Each reader raises ValueError where it cannot.

The same `whsec_…` is plain text at one provider and base64 at the next, so a recipe always
names its reader and nothing is guessed.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable
from typing import Final

KeyReader = Callable[[str], bytes]


def text(secret: str) -> bytes:
    """Returns the secret's UTF-8."""
    return secret.encode()


def hexadecimal(secret: str) -> bytes:
    """Returns what the hex digits, of either case, stand for."""
    return binascii.unhexlify(secret)


def base64(secret: str) -> bytes:
    """Returns what the base64 stands for; its padding may be missing."""
    bare = secret.rstrip("=")
    return b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def whsec(secret: str) -> bytes:
    """Returns the key of Standard Webhooks: base64, with or without `whsec_` before it."""
    return base64(secret.removeprefix("whsec_"))


READERS: Final[dict[str, KeyReader]] = {"text": text, "hex": hexadecimal, "base64": base64}
