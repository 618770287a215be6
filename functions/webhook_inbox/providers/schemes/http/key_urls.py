"""What a provider publishes to be verified with: keys and certificates behind an https URL.

The URL often comes with the delivery, so from a stranger: its host is pinned before anything
is fetched.
"""

import re
from urllib.parse import urlsplit

from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.ports import Fetch

URL_LIMIT = 2048


def pinned(url: object, *, host: re.Pattern[str], path: re.Pattern[str] | None = None) -> Fetch:
    """Returns the request for a URL of an expected host.

    Raises:
        Rejected: the URL is another's, is not https, or names a port or a person (malformed).
    """
    if not isinstance(url, str) or len(url) > URL_LIMIT or not url.isascii() or not _clean(url):
        raise Rejected(Reason.MALFORMED, "the URL of the key is no URL")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Rejected(Reason.MALFORMED, "the URL of the key is no URL") from error
    expected = parts.scheme == "https" and host.fullmatch(parts.netloc) and port is None
    if not expected or (path is not None and not path.fullmatch(parts.path)):
        raise Rejected(Reason.MALFORMED, "the URL of the key is not one of the provider's")
    return Fetch(url)


def _clean(url: str) -> bool:
    # Libraries differ on what these mean in a URL, and a pin holds only where they agree.
    return url.isprintable() and not set(url) & set(' \\<>"{}^`|')
