"""The payload of the replay function."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from webhook_inbox.domain.errors import InboxError

NOT_OURS: Final = "cursor: not one this function returned for such a request"
# What a cursor points behind: an entry of the due index, or one of an event's runs.
_ENTRY: Final = {"pk": str, "sk": str, "due_bucket": str, "due_at": int}
_MARK: Final = {"source": str, "handler": str}


class InvalidRequestError(InboxError):
    """The replay payload cannot be used; the text names the field and the remedy."""


class ReplayRequest(BaseModel):
    """Which runs to replay, and how.

    Without `event_ids` the dead letters are searched; with them, every run of those events
    that is not finished. `force` replays finished runs too, of events and a handler given by
    name (G3). `rate_per_second` 0.1-500, `limit` 1-10000. Naive times are UTC.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str | None = None
    type: str | None = None
    handler: str | None = None
    event_ids: Annotated[tuple[str, ...], Field(min_length=1, max_length=1000)] | None = None
    error_contains: str | None = None
    received_after: datetime | None = None
    received_before: datetime | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000
    rate_per_second: Annotated[float, Field(ge=0.1, le=500)] = 10.0
    dry_run: bool = False
    force: bool = False
    reason: Annotated[str, Field(max_length=500)] = ""
    requested_by: Annotated[str, Field(max_length=200)] = ""
    cursor: str | None = None

    @field_validator("received_after", "received_before")
    @classmethod
    def _aware(cls, value: datetime | None) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

    @model_validator(mode="after")
    def _force_by_name(self) -> "ReplayRequest":
        if self.force and not (self.event_ids and self.handler):
            raise ValueError("force needs event_ids and handler: finished work is named one by one")
        return self

    @model_validator(mode="after")
    def _cursor_of_this_search(self) -> "ReplayRequest":
        """Refuses a foreign cursor before anything is audited or replayed."""
        if self.cursor:
            _, within = read_cursor(self.cursor)
            keys = _MARK if self.event_ids else _ENTRY
            if within is not None and {name: type(v) for name, v in within.items()} != keys:
                raise ValueError(NOT_OURS)
        return self

    @classmethod
    def read(cls, payload: object) -> "ReplayRequest":
        """Reads a payload.

        Raises:
            InvalidRequestError: in one line, each field that cannot be used and why.
        """
        try:
            return cls.model_validate(payload)
        except ValidationError as error:
            faults = "; ".join(_spelled(fault) for fault in error.errors(include_url=False))
            raise InvalidRequestError(f"replay: {faults}") from error


def _spelled(fault: Mapping[str, Any]) -> str:
    place, text = ".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, ")
    if place:
        return f"{place}: {text}"
    return text if fault["type"] == "value_error" else f"payload: {text}"


Position = tuple[int, dict[str, Any] | None]


def write_cursor(part: int, within: dict[str, Any] | None = None) -> str:
    """Returns a place in the search as an opaque text: a part, and the index entry within it."""
    return base64.urlsafe_b64encode(json.dumps([part, within]).encode()).decode()


def read_cursor(text: str) -> Position:
    """Reads what `write_cursor` wrote.

    Raises:
        ValueError: it is none of ours.
    """
    try:
        part, within = json.loads(base64.urlsafe_b64decode(text.encode()))
    except (ValueError, TypeError) as error:
        raise ValueError(NOT_OURS) from error
    if not isinstance(part, int) or part < 0 or not isinstance(within, dict | None):
        raise ValueError(NOT_OURS)
    return part, within
