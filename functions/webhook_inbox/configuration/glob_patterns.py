"""Compares glob patterns of event types; builds and checks use it, no Lambda does."""

import re
from functools import cache
from typing import Final

# A letter, a wildcard, or a set such as `[ab]` or `[!ab]`.
_TOKEN: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)


def overlap(one: str, other: str) -> bool:
    """Returns whether some type matches both patterns; a set counts as any letter."""
    return _meet(*(tuple(_TOKEN.findall(pattern)) for pattern in (one, other)))


@cache
def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    if one[:1] == ("*",):
        return _meet(one[1:], other) or (other != () and _meet(one, other[1:]))
    if other[:1] == ("*",):
        return _meet(other, one)
    if not one or not other:
        return one == other
    first, second = one[0], other[0]
    fits = first == second or "?" in (first, second) or len(first) > 1 or len(second) > 1
    return fits and _meet(one[1:], other[1:])
