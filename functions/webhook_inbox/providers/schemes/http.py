"""Headers and URLs that a signature covers, and URLs of published keys."""

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Fetch

# Characters that `encodeURI` and `querystring.escape` keep, beside letters and digits.
IN_PATHS: Final = ";,/?:@&=+$-_.!~*'()#"
IN_QUERIES: Final = "-_.!~*'()"
QUESTION_MARK: Final = re.compile(r"(%3F)", re.IGNORECASE)
PORTS: Final = {"https": 443, "http": 80}
URL_LIMIT: Final = 2048


def first(headers: Mapping[str, str], names: Sequence[str]) -> str | None:
    """Returns the value of the first of these headers that is present and not empty."""
    return next((headers[name] for name in names if headers.get(name)), None)


def required(headers: Mapping[str, str], names: Sequence[str]) -> str:
    """Returns the value of the first of these headers; raises Rejected (malformed)."""
    value = first(headers, names)
    if value is None:
        raise Rejected(Reason.MALFORMED, f"no {names[0]} header, which is part of what is signed")
    return value


def encoded(value: str) -> bytes:
    """Returns a signed header's UTF-8; raises Rejected (malformed) if it is not text."""
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise Rejected(Reason.MALFORMED, "a signed header is not valid text") from error


def public(delivery: Delivery, base: str = "") -> str:
    """Returns the URL as the provider knows it, query included.

    `base` is the source's configured `url`. Behind a custom domain or a proxy, a delivery does
    not show the address that the provider called.
    """
    where = base or f"https://{delivery.headers.get('host', '')}{delivery.path}"
    return f"{where}?{delivery.query}" if delivery.query else where


def with_port(url: str, *, written: bool) -> str:
    """Returns the URL with its port, even the default one; or, if not `written`, without a port.

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
    """Returns the URL with all percent-encoding decoded except the question mark's."""
    pieces = QUESTION_MARK.split(url)
    # Every second piece is a question mark.
    return "".join(p if n % 2 else unquote(p) for n, p in enumerate(pieces))


def escaped(path: str, query: str) -> str:
    """Returns path and query as Contentful writes them: the query escaped twice."""
    # Contentful's toolkit drops the part after a second question mark.
    search = quote(query.partition("?")[0], safe=IN_QUERIES, errors="replace")
    return quote(f"{path}?{search}" if search else path, safe=IN_PATHS, errors="replace")


def pinned(url: object, *, host: re.Pattern[str], path: re.Pattern[str] | None = None) -> Fetch:
    """Returns the request for a published key or certificate.

    The URL often comes with the delivery, before its signature is verified: its host is pinned
    before anything is fetched. A pinned path has neither query nor fragment, and one spelling:
    each other one would be fetched, and cached, as another key.

    Raises:
        Rejected: the host differs, the scheme is not https, or the URL has a port or user info
            (malformed).
    """
    if not isinstance(url, str) or len(url) > URL_LIMIT or not url.isascii() or not _clean(url):
        raise Rejected(Reason.MALFORMED, "the URL of the key is not a valid URL")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Rejected(Reason.MALFORMED, "the URL of the key is not a valid URL") from error
    expected = url.startswith("https://") and host.fullmatch(parts.netloc) and port is None
    spelled = url.removeprefix(f"https://{parts.netloc}")
    if not expected or (path is not None and not path.fullmatch(spelled)):
        raise Rejected(Reason.MALFORMED, "the URL of the key is not one of the provider's")
    return Fetch(url, chosen_by_sender=True)


def _clean(url: str) -> bool:
    # Libraries parse these characters differently, and a pin holds only where they agree.
    return url.isprintable() and not set(url) & set(' \\<>"{}^`|')
