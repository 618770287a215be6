"""Values of a delivery: paths in its JSON body, fields of its query or form."""

import json
from binascii import a2b_qp
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

from webhook_inbox.domain.bounded_json import parse_bounded
from webhook_inbox.domain.model import Delivery

FIELDS: Final = 1000
# The unencoded `=` in the value of a field; senders encode them.
EQUALS: Final = 100_000


def parse(raw: bytes | str) -> object:
    """Returns the JSON value; raises ValueError for any invalid JSON."""
    try:
        return json.loads(raw)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def document(delivery: Delivery) -> object:
    """Returns the body's JSON, None if it is not JSON.

    Raises:
        Rejected: the delivery is not verified, and to parse it would cost too much (malformed).
    """
    return _parsed(delivery.body) if delivery.verified else parse_bounded(delivery.body)


@lru_cache(maxsize=2)
def _parsed(body: bytes) -> object:
    # Handshakes and splitters read several values. Callers never change it.
    try:
        return parse(body)
    except ValueError:
        return None


def at(document: object, path: str) -> object:
    """Returns the value at a dotted path, or None; `items.0.id` indexes a list."""
    for name in path.split("."):
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and name.isascii() and name.isdecimal():
            document = document[int(name)] if len(name) < 6 and int(name) < len(document) else None
        else:
            return None
    return document


def text_at(delivery: Delivery, path: str) -> str | None:
    """Returns the text or whole number at a path of the body's JSON, or None."""
    found = at(document(delivery), path)
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    return found if isinstance(found, str) else None


def fields(text: str) -> list[tuple[str, str]]:
    """Returns the fields of a query or a form in order; empty if it cannot be parsed."""
    return _fields(text.encode(errors="surrogatepass"))


def form(delivery: Delivery) -> list[tuple[str, str]]:
    """Returns the fields of a form body in order; empty if the body is not a form."""
    return list(_form(delivery.body))


@lru_cache(maxsize=1)
def _form(body: bytes) -> tuple[tuple[str, str], ...]:
    # A scheme reads several fields of one body.
    try:
        body.decode()
    except UnicodeDecodeError:
        return ()
    return tuple(_fields(body))


def _fields(raw: bytes) -> list[tuple[str, str]]:
    """Decodes fields as `urllib.parse.parse_qsl` does, 70 times as fast where many are encoded."""
    if raw.count(b"&") >= FIELDS:
        return []
    try:
        pairs = (field.partition(b"=") for field in raw.split(b"&") if field)
        return [(_unquoted(name), _unquoted(value)) for name, _, value in pairs]
    except ValueError:
        return []


def _unquoted(raw: bytes) -> str:
    """Returns the decoded text; raises ValueError for many invalid escapes."""
    plain = raw.replace(b"+", b" ")
    escapes = plain.count(b"%")
    if escapes:
        plain = _unescaped(plain, escapes)
    return plain.decode(errors="replace")


def _unescaped(raw: bytes, escapes: int) -> bytes:
    # A valid escape has three bytes.
    if escapes - len(raw) // 3 > FIELDS:
        raise ValueError("too many invalid escapes")
    if raw.count(b"=") > EQUALS:
        raise ValueError("too many equals signs")
    if b"%\r" not in raw and b"%\n" not in raw:
        # Quoted-printable is the same encoding with another sign, and its decoder is compiled.
        decoded = a2b_qp(raw.replace(b"=", b"=3D").replace(b"%", b"="))
        if len(raw) - len(decoded) == 2 * escapes:
            return decoded
    if escapes > FIELDS:
        raise ValueError("too many invalid escapes")
    return unquote_to_bytes(raw)


def query_field(delivery: Delivery, name: str) -> str | None:
    """Returns the first value of a query field, or None."""
    return next((value for key, value in fields(delivery.query) if key == name), None)


def form_field(delivery: Delivery, name: str) -> str | None:
    """Returns a form field that occurs exactly once.

    Two values are ambiguous: the signature could cover one and a handler read the other.
    """
    values = [value for key, value in form(delivery) if key == name]
    return values[0] if len(values) == 1 else None
