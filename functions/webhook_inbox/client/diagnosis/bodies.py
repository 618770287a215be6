"""Hypotheses about bodies: reserialized, decoded, with altered line breaks."""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any, Final

from webhook_inbox.client.diagnosis.hypothesis import RejectionCause, Trial

BOM: Final = b"\xef\xbb\xbf"


def bodies(trial: Trial) -> Iterator[Trial]:
    """Reverts common changes of the body."""
    unlike = "forward the raw bytes before parsing, decoding or saving them"
    for code, words, body in _bodies(trial.delivery.body):
        if body != trial.delivery.body:
            cause = RejectionCause(code, words, unlike)
            yield trial.without(cause, delivery=replace(trial.delivery, body=body))


def _bodies(body: bytes) -> Iterator[tuple[str, str, bytes]]:
    newline = "body-newline"
    yield newline, "a line break was added to the end of the body", body.rstrip(b"\r\n")
    for end in (b"\n", b"\r\n"):
        yield newline, "the line break at the end of the body was cut off", body + end
    crlf = body.replace(b"\r\n", b"\n")
    yield "body-line-ends", "the body's line ends were changed to CRLF", crlf
    lf = crlf.replace(b"\n", b"\r\n")
    yield "body-line-ends", "the body's line ends were changed to LF", lf
    yield "body-bom", "a byte order mark was put before the body", body.removeprefix(BOM)
    yield from _decoded(body)
    for how, text in _spellings(body):
        words = f"the body was parsed and reserialized; the provider signed it {how}"
        yield "body-reserialized", words, text
        yield "body-reserialized", words + ", with a line break at its end", text + b"\n"


def _decoded(body: bytes) -> Iterator[tuple[str, str, bytes]]:
    code = "body-encoded"
    with suppress(ValueError):
        yield code, "the body is still in base64", b64decode(body, validate=True)
    for read, wrote in (("latin-1", "utf-8"), ("utf-8", "latin-1")):
        try:
            text = body.decode(wrote).encode(read)
        except UnicodeError:
            continue
        yield code, f"the body was read as {read} and written as {wrote}", text


def _spellings(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields a JSON document as common libraries write it."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return
    if isinstance(document, str):
        yield "as the text that it holds in quotes", document.encode(errors="replace")
    layouts: tuple[tuple[str, dict[str, Any]], ...] = (
        ("without spaces", {"separators": (",", ":")}),
        ("with a space after each comma and colon", {}),
        ("indented by 2", {"indent": 2}),
        ("indented by 4", {"indent": 4}),
    )
    escapes: tuple[tuple[str, Callable[[str], str]], ...] = (
        ("", lambda text: text),
        (", slashes escaped", lambda text: text.replace("/", "\\/")),
        (", < > & escaped", _without_html),
    )
    ways = product(layouts, (False, True), (False, True), escapes)
    for (how, layout), ascii_only, ordered, (escaping, escape) in ways:
        text = json.dumps(document, ensure_ascii=ascii_only, sort_keys=ordered, **layout)
        letters = ", other letters as \\u…" if ascii_only else ""
        order = ", its keys in alphabetical order" if ordered else ""
        yield how + letters + order + escaping, escape(text).encode(errors="replace")


def _without_html(text: str) -> str:
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
