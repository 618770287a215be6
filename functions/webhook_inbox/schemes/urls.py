"""The URL that a provider sent to, which some of them sign."""

from urllib.parse import parse_qsl

from webhook_inbox.model import Delivery

FIELDS = 1000


def public(delivery: Delivery, base: str = "") -> str:
    """Returns the URL as the provider knows it, query included.

    `base` is the source's configured `url`: behind a domain name or a proxy of its own a
    delivery does not show where it was sent to.
    """
    where = base or f"https://{delivery.headers.get('host', '')}{delivery.path}"
    return f"{where}?{delivery.query}" if delivery.query else where


def fields(text: str) -> list[tuple[str, str]]:
    """Returns the fields of a query or a form in order; empty where it is none."""
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS)
    except ValueError:
        return []


def form(delivery: Delivery) -> list[tuple[str, str]]:
    """Returns the fields of the body as a form, in order; empty where it is none."""
    try:
        return fields(delivery.body.decode())
    except UnicodeDecodeError:
        return []


def query_field(delivery: Delivery, name: str) -> str | None:
    """Returns the first value of a field of the query, or None."""
    return next((value for key, value in fields(delivery.query) if key == name), None)
