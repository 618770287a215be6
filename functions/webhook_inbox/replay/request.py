"""The payload of the replay function: which runs, how fast, by whom and why."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from webhook_inbox.domain.errors import InboxError
from webhook_inbox.domain.model import BY_RECEIPT, EventStatus
from webhook_inbox.ledger.queries import DueEntry
from webhook_inbox.replay.body_condition import compiled
from webhook_inbox.replay.cursor import (
    NOT_OURS,
    ChosenPlace,
    Cursor,
    NamedPlace,
    OpenPlace,
    ReceivedPlace,
)

# The fields that select runs.
FILTERS: Final = (
    *("status", "source", "type", "handler", "event_ids", "error_contains", "error_class"),
    *("error_group", "tenant", "where", "received_after", "received_before"),
)
DEAD: Final = (EventStatus.DEAD_LETTER,)
# The share of failures that ends the replay of a selection unless the request names another.
STOP_AT_FAILURES: Final = 0.2

FIRST_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
LAST_TIME: Final = datetime(9000, 1, 1, tzinfo=UTC)

Text = Annotated[str, Field(min_length=1, max_length=500)]
# A longer id cannot arrive in a header; the longest ones are hashed, see `dedupe_key`.
EventId = Annotated[str, Field(min_length=1, max_length=10_000)]

# In attributes of their own, or different in each page.
_NOT_AUDITED: Final = {
    **dict.fromkeys(("event_ids", "force", "reason", "requested_by", "on_behalf_of"), True),
    **dict.fromkeys(("dry_run", "fix", "limit", "cursor", "seconds", "audit_row"), True),
}


class InvalidRequestError(InboxError):
    """The replay payload cannot be used; the text names the field and the remedy."""


class ReplayRequest(BaseModel):
    """Selects the runs to replay, by at least one filter or by a fixed selection.

    A run's status is one of `EventStatus`: `accepted` is a run that has not begun. Without `status`
    the request selects dead runs, or every unfinished run of `event_ids`. `where` is a JMESPath
    condition on the JSON body. `error_group` is the id of an `ErrorGroup`.

    A dry run with `fix` writes the list of its runs; `selection` is the list's id. `force` also
    replays finished runs (G3).
    `stop_at_failures` (0-1) ends the replay of a selection when a larger share of its runs has
    failed again. `seconds` ends a page early.

    `new_keys` gives the runs new idempotency keys, so that every effect is performed again, also
    those that are committed or in doubt, and every approval is asked for again. Both options take
    events and a handler given by name, or a selection, and a reason.

    `rate_per_second` 0.1-500, `limit` 1-10000. Naive times are UTC. `audit_row` names the row that
    webhookctl wrote for all pages of a replay; see `audit.begun`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: Annotated[tuple[EventStatus, ...], Field(min_length=1, max_length=9)] | None = None
    source: Text | None = None
    type: Text | None = None
    handler: Text | None = None
    event_ids: Annotated[tuple[EventId, ...], Field(min_length=1, max_length=1000)] | None = None
    error_contains: Text | None = None
    error_class: Text | None = None
    error_group: Annotated[str, Field(pattern="^[0-9a-f]{12}$")] | None = None
    tenant: Text | None = None
    where: Text | None = None
    received_after: datetime | None = None
    received_before: datetime | None = None
    selection: Annotated[str, Field(pattern="^[0-9a-f]{12}$")] | None = None
    fix: bool = False
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000
    rate_per_second: Annotated[float, Field(ge=0.1, le=500)] = 10.0
    seconds: Annotated[int, Field(ge=1, le=280)] | None = None
    stop_at_failures: Annotated[float, Field(gt=0, le=1)] | None = None
    dry_run: bool = False
    force: bool = False
    new_keys: bool = False
    reason: Annotated[str, Field(max_length=500)] = ""
    requested_by: Annotated[str, Field(max_length=2048)] = ""
    on_behalf_of: Annotated[str, Field(max_length=200)] = ""
    audit_row: Annotated[str, Field(max_length=100)] = ""
    cursor: str | None = None

    @property
    def statuses(self) -> frozenset[EventStatus]:
        """The statuses that it selects; all for named events unless it names some."""
        if self.status is None and self.event_ids is not None:
            return frozenset(EventStatus)
        return frozenset(self.status or DEAD)

    @property
    def by_receipt(self) -> bool:
        """True if the search reads all events of a window of time."""
        return self.event_ids is None and bool(self.statuses & BY_RECEIPT)

    @field_validator("received_after", "received_before")
    @classmethod
    def _aware(cls, value: datetime | None) -> datetime | None:
        if value is None:
            return None
        aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value
        # No event was received outside these times, and the life of a run can be added to them.
        return min(max(aware, FIRST_TIME), LAST_TIME).astimezone(UTC)

    @model_validator(mode="after")
    def _window(self) -> "ReplayRequest":
        after, before = self.received_after, self.received_before
        if after is not None and before is not None and after > before:
            raise ValueError("received_after must not be later than received_before")
        return self

    @field_validator("where")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            compiled(value)
        return value

    @model_validator(mode="after")
    def _selects(self) -> "ReplayRequest":
        """Refuses a request without a filter, and one with filters beside a selection."""
        given = [name for name in FILTERS if getattr(self, name) is not None]
        if self.selection and given:
            raise ValueError(f"a selection is a fixed list of runs: leave {', '.join(given)} out")
        if not self.selection and not given:
            raise ValueError(
                'no filter is given, and a replay of everything is refused: give status (["'
                'dead_letter"] for every dead run), ' + ", ".join(FILTERS[1:]) + ", or selection"
            )
        if self.by_receipt and not self.selection and self.received_after is None:
            named = ", ".join(sorted(self.statuses & BY_RECEIPT))
            raise ValueError(f"runs in status {named} are found by time: give received_after")
        return self

    @model_validator(mode="after")
    def _force_of_what_was_shown(self) -> "ReplayRequest":
        named = self.event_ids is not None and self.handler is not None
        for option in ("force", "new_keys"):
            if not getattr(self, option):
                continue
            if not (named or self.selection or self.fix):
                raise ValueError(
                    f"{option} needs event_ids and handler, or a selection (the id that a dry run"
                    " with fix returns): work is repeated only where its list was shown"
                )
            if not self.dry_run and not self.reason.strip():
                raise ValueError(f"{option} needs a reason")
        return self

    @model_validator(mode="after")
    def _options_of_selections(self) -> "ReplayRequest":
        if self.fix and not self.dry_run:
            raise ValueError("fix writes the list of a dry run: add dry_run")
        if self.stop_at_failures is not None and not self.selection:
            raise ValueError("stop_at_failures needs a selection: make one by a dry run with fix")
        return self

    @model_validator(mode="after")
    def _cursor_of_this_search(self) -> "ReplayRequest":
        """Rejects a cursor of another request before anything is audited or replayed."""
        if self.cursor:
            after = Cursor.decode(self.cursor).after
            if after is not None and not isinstance(after, self._places()):
                raise ValueError(NOT_OURS)
        return self

    def _places(self) -> tuple[Any, ...]:
        if self.selection:
            # A selection that is not complete has the cursor of its search.
            return () if self.fix else (ChosenPlace,)
        if self.event_ids is not None:
            return (NamedPlace,)
        if self.by_receipt:
            return (ReceivedPlace,)
        dead = {DueEntry} if EventStatus.DEAD_LETTER in self.statuses else set()
        return (*dead, *({OpenPlace} if self.statuses - {EventStatus.DEAD_LETTER} else ()))

    def audited(self) -> dict[str, str]:
        """Returns what the audit records of the request besides the actor and the event ids.

        It is the same for each page of a replay.
        """
        asked = self.model_dump(mode="json", exclude_none=True, exclude=_NOT_AUDITED)
        return {name: str(value) for name, value in asked.items()}

    @classmethod
    def read(cls, payload: object) -> "ReplayRequest":
        """Reads a payload.

        Raises:
            InvalidRequestError: a field cannot be used; one line names each and the reason.
        """
        try:
            return cls.model_validate(payload)
        except ValidationError as error:
            faults = "; ".join(_fault_text(fault) for fault in error.errors(include_url=False))
            raise InvalidRequestError(f"replay: {faults}") from error


def _fault_text(fault: Mapping[str, Any]) -> str:
    place, text = ".".join(map(str, fault["loc"])), fault["msg"].removeprefix("Value error, ")
    if place:
        return f"{place}: {text}"
    return text if fault["type"] == "value_error" else f"payload: {text}"
