"""Values of a delivery: paths in its JSON body, fields of its query or form."""

import json
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl

from webhook_inbox.domain.model import Delivery

FIELDS: Final = 1000


def parse(raw: bytes | str) -> object:
    """Returns the JSON value; raises ValueError for any invalid JSON."""
    try:
        return json.loads(raw)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def document(delivery: Delivery) -> object:
    """Returns the body's JSON, None if it is not JSON."""
    return _parsed(delivery.body)


@lru_cache(maxsize=1)
def _parsed(body: bytes) -> object:
    # A scheme with its signature in the body reads it several times. Callers never change it.
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
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS)
    except ValueError:
        return []


def form(delivery: Delivery) -> list[tuple[str, str]]:
    """Returns the fields of a form body in order; empty if the body is not a form."""
    try:
        return fields(delivery.body.decode())
    except UnicodeDecodeError:
        return []


def query_field(delivery: Delivery, name: str) -> str | None:
    """Returns the first value of a query field, or None."""
    return next((value for key, value in fields(delivery.query) if key == name), None)


def form_field(delivery: Delivery, name: str) -> str | None:
    """Returns a form field that occurs exactly once.

    Two values are ambiguous: the signature could cover one and a handler read the other.
    """
    values = [value for key, value in form(delivery) if key == name]
    return values[0] if len(values) == 1 else None
