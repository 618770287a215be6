"""Parses JSON that is not verified yet, at a bounded cost: anyone can send 6 MB without a secret.

JSON of empty lists, long numbers or surrogates takes 50 to 350 times as long to parse as to hash.
Such a text is refused by counting bytes, before it is parsed. `json_path.document` and `Reading`
parse every delivery that is not `verified` here.
"""

import json
import re
from functools import lru_cache
from math import nan
from typing import Final

from webhook_inbox.domain.errors import Reason, Rejected

# A mark begins a value and takes as long to parse as four backslashes. A message of SNS, 256 KB of
# single digits and commas, has 131,000 marks, and one of backslashes alone 524,000 of them.
LIMIT: Final = 540_000
MARK: Final = 4
MARKS: Final = b"[{,:"
# To parse a number takes time in proportion to the square of its length. 300 KB of digits, more
# than a message of SNS, may be in runs of at least 100.
RUN: Final = 100
RUN_LIMIT: Final = 3_000
_RUN: Final = b"0" * RUN
# How JSON begins, in any of its encodings.
_JSON: Final = re.compile(
    rb"[ \t\r\n]*+(?:[\"\[{0-9\-\0\xef\xfe\xff]|true|false|null|NaN|Infinity)"
)
_DIGITS: Final = bytes(0x30 if 0x30 <= code <= 0x39 else 0x20 for code in range(256))


@lru_cache(maxsize=2)
def is_bounded(body: bytes, *, weight: int = 1) -> bool:
    """Returns whether parsing a body as JSON costs little CPU; kept, as a rejection asks twice.

    Args:
        body: the body.
        weight: the cost of each value, escape and digit, as a multiple of parsing it once.
    """
    size = len(body) * weight
    if size * MARK <= LIMIT:
        return True
    marks = len(body) - len(body.translate(None, MARKS))
    if (marks * MARK + body.count(b"\\")) * weight > LIMIT:
        return False
    if size <= RUN_LIMIT * RUN:
        return True
    if b"\0" in body:
        # Between the digits of UTF-16. `replace` takes ten times as long where there are millions.
        body = body.translate(None, b"\0")
    # Each run has two digits in a row among these bytes; all bytes are read only if many have.
    some = body[:: RUN // 2].translate(_DIGITS).count(b"00") * weight
    return some <= RUN_LIMIT or body.translate(_DIGITS).count(_RUN) * weight <= RUN_LIMIT


def require_bounded(body: bytes, *, weight: int = 1) -> None:
    """Raises Rejected (malformed) if parsing a body would cost too much; see `is_bounded`."""
    if not is_bounded(body, weight=weight):
        raise Rejected(Reason.MALFORMED, "the body has too many values to verify them")


@lru_cache(maxsize=2)
def parse_bounded(body: bytes) -> object:
    """Returns the JSON value; None if it is not JSON, or not in the Unicode that it claims.

    Fractions are NaN: to read them takes four times as long, and no scheme signs one. A scheme
    with its signature in the body reads it several times, and a part of it beside the whole;
    callers never change it.

    Raises:
        Rejected: to parse it would cost too much (malformed).
    """
    if _JSON.match(body) is None:
        return None  # a form
    require_bounded(body)
    try:
        # Strictly: to pass on a surrogate takes as long as to hash 800 bytes.
        return _DECODER.decode(body.decode(json.detect_encoding(body)))
    except (ValueError, RecursionError):
        return None


def _without_value(_: str) -> float:
    return nan


_DECODER: Final = json.JSONDecoder(parse_float=_without_value)
