"""The URL that a provider sent to, which some of them sign."""

import re
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery

FIELDS: Final = 1000
# What `encodeURI` and `querystring.escape` leave as it is, beside letters and digits.
IN_PATHS: Final = ";,/?:@&=+$-_.!~*'()#"
IN_QUERIES: Final = "-_.!~*'()"
QUESTION_MARK: Final = re.compile(r"(%3F)", re.IGNORECASE)
PORTS: Final = {"https": 443, "http": 80}


def public(delivery: Delivery, base: str = "") -> str:
    """Returns the URL as the provider knows it, query included.

    `base` is the source's configured `url`: behind a domain name or a proxy of its own a
    delivery does not show where it was sent to.
    """
    where = base or f"https://{delivery.headers.get('host', '')}{delivery.path}"
    return f"{where}?{delivery.query}" if delivery.query else where


def with_port(url: str, *, written: bool) -> str:
    """Returns the URL with its port, be it the default one; or, not `written`, without any.

    Raises:
        Rejected: the URL cannot be read (malformed).
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise Rejected(Reason.MALFORMED, "the request's URL cannot be read") from error
    place = f"{host}:{port or PORTS.get(parts.scheme, 0)}" if written else host
    return urlunsplit(parts._replace(netloc=place))


def decoded(url: str) -> str:
    """Returns the URL with what is escaped in it written plainly, but for the question mark."""
    pieces = QUESTION_MARK.split(url)
    # Every second piece is a question mark.
    return "".join(p if n % 2 else unquote(p) for n, p in enumerate(pieces))


def escaped(path: str, query: str) -> str:
    """Returns path and query as Contentful writes them: the query escaped twice."""
    # Its toolkit drops what follows a second question mark.
    search = quote(query.partition("?")[0], safe=IN_QUERIES, errors="replace")
    return quote(f"{path}?{search}" if search else path, safe=IN_PATHS, errors="replace")


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


def form_field(delivery: Delivery, name: str) -> str | None:
    """Returns a field that stands in the form once: of two, one could be signed and one read."""
    values = [value for key, value in form(delivery) if key == name]
    return values[0] if len(values) == 1 else None
