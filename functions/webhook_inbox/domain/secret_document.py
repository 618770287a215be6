"""The secrets of one reader, in one JSON document: `{"stripe": "whsec_…"}`.

The console's key/value editor makes the same. During a rotation a secret has two values, the
current one first: `{"stripe": ["whsec_new", "whsec_previous"]}`. `secrets rotate` writes an object
with an end, `{"stripe": {"current": …, "previous": …, "since": TIME, "until": TIME}}`: from `until`
on every reader ignores the previous value, so that no job has to remove it.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Self

from webhook_inbox.domain.errors import ConfigurationError

# Live values by name, the current one first.
Secrets = Mapping[str, tuple[str, ...]]

ROTATION: Final = frozenset({"current", "previous", "since", "until"})

# The readers: ingest verifies with the first, processors call destinations with the second, and no
# function reads the third.
SOURCES: Final = "sources"
HANDLERS: Final = "handlers"
TOOLS: Final = "tools"
READERS: Final = (SOURCES, HANDLERS, TOOLS)

# https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html
LIMIT: Final = 65_536


class Rotation(tuple[str, ...]):
    """The current and the previous value of a rotation that ends.

    Attributes:
        since: when the current value replaced the previous one.
        until: when the previous value stops being valid.
    """

    since: datetime
    until: datetime

    def __new__(cls, values: Iterable[str], *, since: datetime, until: datetime) -> Self:
        """Returns the rotation of these values."""
        made = super().__new__(cls, values)
        made.since, made.until = since, until
        return made


def in_force(values: tuple[str, ...], now: datetime) -> tuple[str, ...]:
    """Returns the values that are valid at this time."""
    ended = isinstance(values, Rotation) and values.until <= now
    return values[:1] if ended else values


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
    found = tuple(dict.fromkeys(filter(str.strip, _listed(value))))
    if not isinstance(value, dict) or len(found) < 2:
        return found
    return Rotation(found, since=_time(value["since"]), until=_time(value["until"]))


def _is_well_formed(value: Any) -> bool:
    listed = _listed(value)
    texts = len(listed) <= 2 and all(isinstance(each, str) for each in listed)
    return texts and (not isinstance(value, dict) or _is_rotation(value))


def _is_rotation(value: Mapping[str, Any]) -> bool:
    try:
        return value.keys() == ROTATION and bool(_time(value["since"]) and _time(value["until"]))
    except (TypeError, ValueError):
        return False


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    # A time that was written by hand may lack its zone, and cannot be compared then.
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def _listed(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value.get("current"), value.get("previous")]
    return value if isinstance(value, list) else [value]


def write(secrets: Secrets) -> str:
    """Returns the document of these secrets.

    Raises:
        ConfigurationError: it is larger than Secrets Manager stores.
    """
    text = json.dumps({name: _written(values) for name, values in secrets.items()})
    # It is ASCII: a character is a byte.
    if len(text) > LIMIT:
        raise ConfigurationError(
            f"the secrets of one reader have {len(text)} bytes, and Secrets Manager stores"
            f" {LIMIT}; remove names that nothing uses: webhookctl secrets list"
        )
    return text


def _written(values: tuple[str, ...]) -> Any:
    if isinstance(values, Rotation):
        times = {"since": values.since.isoformat(), "until": values.until.isoformat()}
        return {"current": values[0], "previous": values[1], **times}
    return list(values) if len(values) > 1 else values[0]


def rotated(
    secrets: Secrets,
    name: str,
    value: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Secrets:
    """Returns the secrets with a new current value; the one before stays live.

    With `since`, the present time, and `until`, it stays live until then.
    """
    before = secrets.get(name, ())[:1]
    if before == (value,):
        # Setting it again must not end the rotation.
        return secrets
    values = (value, *before)
    if since is None or until is None or not before:
        return {**secrets, name: values}
    return {**secrets, name: Rotation(values, since=since, until=until)}


def revoked(secrets: Secrets, name: str) -> Secrets:
    """Returns the secrets without the previous value of this name."""
    return {**secrets, name: secrets[name][:1]} if name in secrets else secrets


def replaced(secrets: Secrets, name: str, value: str) -> Secrets:
    """Returns the secrets with `value` as the only one of this name."""
    return {**secrets, name: (value,)}


def removed(secrets: Secrets, name: str) -> Secrets:
    """Returns the secrets without this name."""
    return {each: values for each, values in secrets.items() if each != name}
