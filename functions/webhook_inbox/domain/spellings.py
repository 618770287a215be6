"""The forms in which a text may quote a value: as it is, escaped or encoded."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, quote_plus

# The bytes of a shorter value in hex or base64 may be a part of ordinary words.
ENCODED_FROM: Final = 8
# The characters that `quote`, encodeURIComponent, encodeURI and requests leave in a URL, with and
# without the percent sign, beside those that none escapes.
_UNESCAPED: Final = (
    "", "/", "!'()*", "!#$&'()*+,/:;=?@", "!#$&'()*+,/:;=?@[]", "!#$%&'()*+,/:;=?@[]",
)  # fmt: skip
# Not by the module `html`, whose entities take milliseconds of a cold start.
_HTML_TEXT: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_HTML: Final = _HTML_TEXT | str.maketrans({'"': "&quot;", "'": "&#x27;"})
_ESCAPE: Final = re.compile("%[0-9A-F]{2}")
_FOR_URLS: Final = str.maketrans("+/", "-_")


def spellings(text: str) -> Iterator[str]:
    """Yields the forms of a text: in JSON, Python, HTML, URLs, hex and base64, some repeatedly."""
    yield from quotations(text)
    yield from _encodings(text.encode(errors="replace"))


def quotations(text: str) -> Iterator[str]:
    """Yields the forms of a text in JSON, Python and HTML, which cost little CPU."""
    yield text
    yield " ".join(text.split()) or text
    yield from (text.translate(_HTML), text.translate(_HTML_TEXT))
    for literal in _literals(text):
        # JSON within JSON, or in the repr of an error.
        yield from (literal, repr(literal)[1:-1], json.dumps(literal)[1:-1])


def _encodings(raw: bytes) -> Iterator[str]:
    yield repr(raw)[2:-1]
    every = "".join(f"%{byte:02X}" for byte in raw)
    for encoded in (*(quote(raw, safe=safe) for safe in _UNESCAPED), quote_plus(raw), every):
        yield encoded
        yield _ESCAPE.sub(lambda found: found[0].lower(), encoded)
    if len(raw) >= ENCODED_FROM:
        yield from (raw.hex(), raw.hex().upper())
        yield from _in_base64(raw)


def _literals(text: str) -> Iterator[str]:
    for encoded in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield encoded
        # As PHP writes it.
        yield encoded.replace("/", "\\/")
    yield from (repr(text)[1:-1], ascii(text)[1:-1])


def _in_base64(raw: bytes) -> Iterator[str]:
    for ahead in range(3):
        # The digits at either end also depend on the neighbouring bytes.
        digits = b64encode(bytes(ahead) + raw).decode()
        certain = digits[ahead + bool(ahead) : (ahead + len(raw)) * 8 // 6]
        yield from (certain, certain.translate(_FOR_URLS))
