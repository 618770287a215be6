"""How a digest is written. Signatures are compared as written, so only one spelling passes.

Decoding what was sent would let in what decoders forgive: spaces in hex, junk in base64,
stray bits in its last character.
"""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Encoding:
    """A spelling of bytes: how it is written, and the characters it is made of."""

    write: Callable[[bytes], str]
    alphabet: frozenset[str]

    def fits(self, candidate: str, like: str) -> bool:
        """Tells whether the candidate could be a digest at all, by the look of a real one."""
        return len(candidate) == len(like) and self.alphabet.issuperset(candidate)


_ALPHANUMERIC: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

HEX: Final = Encoding(bytes.hex, frozenset("0123456789abcdef"))
BASE64: Final = Encoding(lambda data: b64encode(data).decode(), frozenset(_ALPHANUMERIC + "+/="))

ENCODINGS: Final[dict[str, Encoding]] = {"hex": HEX, "base64": BASE64}
