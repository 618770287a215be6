"""Two glob patterns overlap if some type matches both."""

from fnmatch import fnmatchcase
from itertools import product

import pytest

from webhook_inbox.configuration.glob_patterns import overlap


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("invoice.paid", "invoice.paid", True),
        ("invoice.*", "invoice.paid", True),
        ("invoice.*", "*.paid", True),
        ("invoice.*", "customer.*", False),
        ("Invoice.*", "invoice.*", False),
        ("*", "anything", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("a[bx]c", "abc", True),
        ("a[]b]c", "a]c", True),
        ("a[b", "a[b", True),
        ("", "*", True),
        ("", "?", False),
    ],
)
def test_patterns(one: str, other: str, expected: bool) -> None:
    assert overlap(one, other) is overlap(other, one) is expected


def test_it_agrees_with_all_short_types() -> None:
    words = ["".join(letters) for size in range(5) for letters in product("ab", repeat=size)]
    patterns = ["".join(letters) for size in range(4) for letters in product("ab*?", repeat=size)]
    for one, other in product(patterns, repeat=2):
        common = any(fnmatchcase(word, one) and fnmatchcase(word, other) for word in words)
        # Two patterns of three tokens that meet do so in a word of at most six letters.
        assert overlap(one, other) >= common
        if "*" not in one + other:
            assert overlap(one, other) == common
