"""How a digest is written. Signatures are compared as written, so only one spelling passes.

Decoding what was sent would let in what decoders forgive: spaces and upper case in hex, junk in
base64, stray bits in its last character.
"""

from base64 import b64encode
from collections.abc import Callable
from typing import Final

Encoding = Callable[[bytes], str]


def hexadecimal(digest: bytes) -> str:
    """Writes lower-case hex."""
    return digest.hex()


def base64(digest: bytes) -> str:
    """Writes padded base64 of the standard alphabet."""
    return b64encode(digest).decode()


ENCODINGS: Final[dict[str, Encoding]] = {"hex": hexadecimal, "base64": base64}
