"""Fields of a query string or of a form body."""

from typing import Final
from urllib.parse import parse_qsl

from webhook_inbox.domain.model import Delivery

FIELDS: Final = 1000


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
