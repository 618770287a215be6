"""Reading headers that decide a verification."""

from collections.abc import Mapping, Sequence

from webhook_inbox.domain.errors import Reason, Rejected


def first(headers: Mapping[str, str], names: Sequence[str]) -> str | None:
    """Returns the value of the first of these headers that is there and not empty."""
    return next((headers[name] for name in names if headers.get(name)), None)


def required(headers: Mapping[str, str], names: Sequence[str]) -> str:
    """Returns the value of the first of these headers; raises Rejected (malformed)."""
    value = first(headers, names)
    if value is None:
        raise Rejected(Reason.MALFORMED, f"no {names[0]} header, which is part of what is signed")
    return value


def encoded(value: str) -> bytes:
    """Returns a signed header's UTF-8; raises Rejected (malformed) where it is not text."""
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise Rejected(Reason.MALFORMED, "a signed header is not valid text") from error
