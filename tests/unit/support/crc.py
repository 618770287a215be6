"""Text with a chosen CRC-32, as an attacker makes it."""

from typing import Final
from zlib import crc32

BITS: Final = 64
ZEROS: Final = b"0" * BITS


def with_crc(start: bytes, end: bytes, crc: int) -> bytes:
    """Returns `start`, 64 digits that are 0 or 1, and `end`, so that the whole has this CRC-32.

    A CRC is linear over its input's bits: each digit flips the same bits of it, whatever the
    others are.
    """
    plain = crc32(start + ZEROS + end)
    basis: list[tuple[int, int]] = []  # (bits of the CRC, digits that flip them), reduced
    for place in range(BITS):
        flipped = bytearray(ZEROS)
        flipped[place] ^= 1
        effect, digits = _reduced(crc32(start + flipped + end) ^ plain, 1 << place, basis)
        if effect:
            basis.append((effect, digits))
    rest, digits = _reduced(plain ^ crc, 0, basis)
    assert rest == 0
    chosen = bytes(ord("0") + (digits >> place & 1) for place in range(BITS))
    return start + chosen + end


def _reduced(effect: int, digits: int, basis: list[tuple[int, int]]) -> tuple[int, int]:
    for known, flips in basis:
        if effect ^ known < effect:
            effect, digits = effect ^ known, digits ^ flips
    return effect, digits
