"""Reads the texts of errors as the ledger stores them, such as `exhausted: KeyError: 'total'`."""

import re
from typing import Final

# How a run ended; the error's own text follows.
_ENDING: Final = re.compile(r"(?:permanent|exhausted|expired): ")
_CLASS: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):", re.ASCII)
_WORD_WITH_DIGIT: Final = re.compile(r"[A-Za-z_-]*[0-9][A-Za-z0-9_-]*", re.ASCII)
# Shorter words with digits, such as 503 and v2, tell errors apart; longer ones are ids and times.
_SHORT: Final = 3
_LENGTH: Final = 160


def error_class(text: str) -> str:
    """Returns the exception's class name at the beginning of an error's text, "" without one.

    The inbox's own errors (`Transient`, `Permanent`, `Deferred`) are stored without their names.
    """
    found = _CLASS.match(_without_ending(text))
    return found[1] if found else ""


def normalised(text: str) -> str:
    """Returns an error's text with ids, times and other long words with digits as `…`.

    Errors of one cause then have one text. At most 160 characters.
    """
    kept = _WORD_WITH_DIGIT.sub(
        lambda word: word[0] if len(word[0]) <= _SHORT else "…", _without_ending(text)
    )
    return kept if len(kept) <= _LENGTH else f"{kept[: _LENGTH - 1]}…"


def _without_ending(text: str) -> str:
    found = _ENDING.match(text)
    return text[found.end() :] if found else text
