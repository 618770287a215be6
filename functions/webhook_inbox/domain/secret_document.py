"""The secrets of one reader, in one JSON document: `{"stripe": "whsec_…"}`.

The console's key/value editor makes the same. During a rotation a secret has two values, the
current one first: `{"stripe": ["whsec_new", "whsec_previous"]}`.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from webhook_inbox.domain.errors import ConfigurationError

# Live values by name, the current one first.
Secrets = Mapping[str, tuple[str, ...]]

# The readers: ingest verifies with the first, processors call destinations with the second, and no
# function reads the third.
SOURCES: Final = "sources"
HANDLERS: Final = "handlers"
TOOLS: Final = "tools"
READERS: Final = (SOURCES, HANDLERS, TOOLS)

# https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html
LIMIT: Final = 65_536


def prefix_of(stack: str) -> str:
    """Returns the beginning of the documents' names of a stack."""
    return f"webhook-inbox/{stack}/"


def parse(text: str, *, leniently: bool = False) -> dict[str, tuple[str, ...]]:
    """Returns the secrets of a document; a blank value is none, since anyone could sign with it.

    Leniently, so is a malformed value: a function goes on with the other names. A change does not,
    since it would remove it.

    Raises:
        ValueError: the document is malformed; the message contains no value of it.
    """
    if not text.strip():
        return {}
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        # Not chained: the original error contains the document.
        raise ValueError('is not JSON; store an object like {"stripe": "whsec_…"}') from None
    if not isinstance(document, dict):
        raise ValueError('is not a JSON object; store one like {"stripe": "whsec_…"}')
    live = {
        name: _values(name, value)
        for name, value in document.items()
        if not leniently or _is_well_formed(value)
    }
    return {name: values for name, values in live.items() if values}


def _values(name: str, value: Any) -> tuple[str, ...]:
    if not _is_well_formed(value):
        raise ValueError(f"has a malformed {name!r}; give a text, or a list of two (new, previous)")
    return tuple(dict.fromkeys(filter(str.strip, _listed(value))))


def _is_well_formed(value: Any) -> bool:
    listed = _listed(value)
    return len(listed) <= 2 and all(isinstance(each, str) for each in listed)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def write(secrets: Secrets) -> str:
    """Returns the document of these secrets.

    Raises:
        ConfigurationError: it is larger than Secrets Manager stores.
    """
    document = {
        name: list(values) if len(values) > 1 else values[0] for name, values in secrets.items()
    }
    text = json.dumps(document)
    # It is ASCII: a character is a byte.
    if len(text) > LIMIT:
        raise ConfigurationError(
            f"the secrets of one reader have {len(text)} bytes, and Secrets Manager stores"
            f" {LIMIT}; remove names that nothing uses: webhookctl secrets list"
        )
    return text


def rotated(secrets: Secrets, name: str, value: str) -> Secrets:
    """Returns the secrets with a new current value; the one before stays live."""
    before = secrets.get(name, ())
    if before[:1] == (value,):
        # Setting it again must not end the rotation.
        return secrets
    return {**secrets, name: (value, *before[:1])}


def replaced(secrets: Secrets, name: str, value: str) -> Secrets:
    """Returns the secrets with `value` as the only one of this name."""
    return {**secrets, name: (value,)}


def removed(secrets: Secrets, name: str) -> Secrets:
    """Returns the secrets without this name."""
    return {each: values for each, values in secrets.items() if each != name}
