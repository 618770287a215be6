"""Reads a source's own keys in inbox.toml, for its provider's module."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from webhook_inbox.domain.errors import ConfigurationError


def text(settings: Mapping[str, Any], key: str, *, default: str | None = None) -> str:
    """Returns a setting's text.

    Raises:
        ConfigurationError: it is missing and has no default, or is no text.
    """
    value = settings.get(key, default)
    if value is None:
        raise ConfigurationError(f'{key}: missing; give it as text, {key} = "…"')
    if not isinstance(value, str) or (not value and default != ""):
        raise ConfigurationError(f'{key}: must be text in quotes; write {key} = "…"')
    return value


def texts(settings: Mapping[str, Any], key: str, *, default: tuple[str, ...]) -> tuple[str, ...]:
    """Returns a setting's list of texts; raises ConfigurationError."""
    value = settings.get(key, default)
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise ConfigurationError(f'{key}: must be a list; write {key} = ["…"]')
    if not all(isinstance(item, str) and item for item in value):
        raise ConfigurationError(f"{key}: must hold texts only, none of them empty")
    return tuple(value)


def one_or_more(settings: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Returns a setting's text, or list of texts, as a list; raises ConfigurationError."""
    value = settings.get(key)
    if isinstance(value, list | tuple) and value:
        return texts(settings, key, default=())
    return (text(settings, key),)


def choice(settings: Mapping[str, Any], key: str, *, of: tuple[str, ...]) -> str:
    """Returns one of these words, the first by default; raises ConfigurationError."""
    value = text(settings, key, default=of[0])
    if value not in of:
        raise ConfigurationError(f'{key}: "{value}" is not known; choose from {", ".join(of)}')
    return value


def whole(settings: Mapping[str, Any], key: str) -> int | None:
    """Returns a setting's number, or None.

    Raises:
        ConfigurationError: it is no whole number above zero.
    """
    value = settings.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigurationError(f"{key}: must be a whole number above zero; write {key} = 120")
    return value


def public_url(settings: Mapping[str, Any], key: str = "url") -> str:
    """Returns an address without a query; "" if it is not set.

    Raises:
        ConfigurationError: it is not an http(s) address, or has a query.
    """
    value = text(settings, key, default="")
    if value and not _is_address(value):
        raise ConfigurationError(
            f'{key}: "{value}" is no address; write it as the provider calls it, without a query'
        )
    return value


def _is_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in {"https", "http"} and parts.netloc != "" and not set(value) & {"?", "#"}
