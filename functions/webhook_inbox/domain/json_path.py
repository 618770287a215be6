"""Reads values of a body's JSON by dotted paths."""

import json
from functools import lru_cache

from webhook_inbox.domain.model import Delivery


def parse(raw: bytes | str) -> object:
    """Returns the JSON value; raises ValueError for any invalid text."""
    try:
        return json.loads(raw)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def document(delivery: Delivery) -> object:
    """Returns the body's JSON, or None if it is not JSON."""
    return _parsed(delivery.body)


@lru_cache(maxsize=1)
def _parsed(body: bytes) -> object:
    # Cached for schemes that read the body several times; the value must not be changed.
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
