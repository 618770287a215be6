"""How a verified delivery is named: its event id, its type, and when the event happened."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qs

from webhook_inbox.errors import Reason, Rejected
from webhook_inbox.instants import from_seconds
from webhook_inbox.model import Delivery
from webhook_inbox.recipe import Identity
from webhook_inbox.schemes.headers import first

UNKNOWN: Final = "unknown"
TYPE_LIMIT: Final = 256
FORM_FIELDS: Final = 1000

# Control characters spoil logs and terminals; a lone surrogate, which JSON can spell, is not
# text that any store accepts.
_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def parse(raw: bytes | str) -> object:
    """Returns the JSON value; raises ValueError for all that can be wrong with it."""
    try:
        return json.loads(raw)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


class Reading:
    """A verified delivery, its body parsed when first asked for and at most once."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self.unreadable = False

    @cached_property
    def document(self) -> object:
        """The body as JSON; None, and `unreadable`, where it is not."""
        try:
            return parse(self.delivery.body)
        except ValueError:
            self.unreadable = True
            return None

    @cached_property
    def form(self) -> dict[str, str]:
        """The body as a form, the first value of each field; empty where it is none."""
        try:
            fields = parse_qs(self.delivery.body.decode(), max_num_fields=FORM_FIELDS)
        except ValueError:
            return {}
        return {name: values[0] for name, values in fields.items()}

    @cached_property
    def payload(self) -> object:
        """The JSON inside a form's `payload` field; None where there is none."""
        try:
            return parse(self.form.get("payload", "null"))
        except ValueError:
            return None


Finder = Callable[[Reading], object]


def header(*names: str) -> Finder:
    """Finds the first of these headers that is there."""
    return lambda reading: first(reading.delivery.headers, names)


def in_json(path: str) -> Finder:
    """Finds a value in the body's JSON by the names of the objects around it: `event.type`."""
    return lambda reading: at(reading.document, path)


def content_hash(reading: Reading) -> object:
    """Names a body by its content, where a provider gives no id: equal bodies are one event."""
    return "sha256:" + sha256(reading.delivery.body).hexdigest()


def fixed(value: str) -> Finder:
    """Finds the same value in every delivery."""
    return lambda _: value


def at(document: object, path: str) -> object:
    """Returns the value that the dotted path leads to, or None."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """Where the id, the type and the time stand; of several finders the first that finds one."""

    id: tuple[Finder, ...]
    type: tuple[Finder, ...]
    occurred_at: tuple[Finder, ...] = ()

    def identify(self, delivery: Delivery) -> Identity:
        """Names the event.

        Raises:
            Rejected: there is no id, or none that can be kept; nothing else is ever raised.
        """
        reading = Reading(delivery)
        found = _find(self.id, reading)
        if found is None:
            reason = Reason.MALFORMED if reading.unreadable else Reason.MISSING_EVENT_ID
            raise Rejected(reason, "the delivery has no event id where this provider puts it")
        return Identity(
            event_id=event_id(found),
            type=event_type(_find(self.type, reading)),
            occurred_at=instant(_find(self.occurred_at, reading)),
        )


def _find(finders: tuple[Finder, ...], reading: Reading) -> object:
    return next((found for f in finders if (found := f(reading)) not in (None, "")), None)


def event_id(value: object) -> str:
    """Returns the id as text; raises Rejected (malformed) where it is no name for an event.

    A float is refused because two of them can be spelled alike.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip() or _UNFIT.search(value):
        raise Rejected(Reason.MALFORMED, "the event id is neither plain text nor a whole number")
    return value


def event_type(value: object) -> str:
    """Returns the type as text; `unknown` where there is none, since no event is lost for it."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip() or _UNFIT.search(value):
        return UNKNOWN
    return value[:TYPE_LIMIT]


def instant(value: object) -> datetime | None:
    """Returns the time that epoch seconds or ISO 8601 text with an offset give, or None."""
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            return from_seconds(value)
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return None if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return None
