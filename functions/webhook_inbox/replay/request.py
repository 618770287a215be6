"""The payload of the replay function, and the search for the runs it selects."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from webhook_inbox.domain.errors import InboxError
from webhook_inbox.domain.manifest import Manifest, matches
from webhook_inbox.domain.model import Overview, Run, Status
from webhook_inbox.domain.ports import Clock, Parallel
from webhook_inbox.ledger.queries import FOR_EVER, DueEntry, Ledger
from webhook_inbox.ledger.schema import (
    DEAD_FROM,
    RUN_LIFE,
    dead_due_at,
    dedupe_key,
    held_run,
    run_from,
)

NOT_OURS: Final = "cursor: this function did not return it for such a request"
# The events whose rows are read at the same time.
READ_AHEAD: Final = 16


# In attributes of their own, or different in each page.
_NOT_AUDITED: Final = {
    **dict.fromkeys(("event_ids", "force", "reason", "requested_by", "on_behalf_of"), True),
    **dict.fromkeys(("dry_run", "limit", "cursor", "audit_row"), True),
}


class InvalidRequestError(InboxError):
    """The replay payload cannot be used; the text names the field and the remedy."""


class ReplayRequest(BaseModel):
    """Selects the runs to replay.

    Without `event_ids` it selects dead runs; with them, every unfinished run of those events.
    `force` also replays finished runs, of events and a handler given by name (G3). `new_keys`
    gives the runs new idempotency keys, so that every effect is performed again, also those that
    are committed or in doubt, and every approval is asked for again.
    `rate_per_second` 0.1-500, `limit` 1-10000. Naive times are UTC. `audit_row` names the row that
    webhookctl wrote for all pages of a replay; see `audit.begun`.
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
    new_keys: bool = False
    reason: Annotated[str, Field(max_length=500)] = ""
    requested_by: Annotated[str, Field(max_length=2048)] = ""
    on_behalf_of: Annotated[str, Field(max_length=200)] = ""
    audit_row: Annotated[str, Field(max_length=100)] = ""
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
        if self.new_keys and not (self.event_ids and self.handler and self.reason):
            raise ValueError(
                "new_keys needs event_ids, handler and reason: it performs effects again"
            )
        return self

    @model_validator(mode="after")
    def _cursor_of_this_search(self) -> "ReplayRequest":
        """Rejects a cursor of another request before anything is audited or replayed."""
        if self.cursor:
            after = Cursor.decode(self.cursor).after
            if after is not None and isinstance(after, DueEntry) is not (self.event_ids is None):
                raise ValueError(NOT_OURS)
        return self

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


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """A place in the search of named events: the id's number, and the last run read of it."""

    number: int
    source: str = ""
    handler: str = ""


Position = DueEntry | NamedPlace
# Source, event id and handler.
RunName = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a replay continues.

    Attributes:
        after: the last candidate that was read; None for the beginning.
        again: runs before it that could not be reset; they are read first.
    """

    after: Position | None = None
    again: tuple[RunName, ...] = ()

    def encode(self) -> str:
        """Returns the cursor as text."""
        match self.after:
            case DueEntry(due_at, pk, sk):
                data: list[Any] = ["dead", due_at, pk, sk]
            case NamedPlace(number, source, handler):
                data = ["named", number, source, handler]
            case _:
                data = ["begin", 0, "", ""]
        text = json.dumps([*data, self.again])
        return base64.urlsafe_b64encode(text.encode()).decode()

    @classmethod
    def decode(cls, text: str) -> "Cursor":
        """Reads a cursor.

        Raises:
            ValueError: `encode` did not make it.
        """
        try:
            kind, number, first, second, names = json.loads(base64.urlsafe_b64decode(text.encode()))
            again = tuple((str(s), str(e), str(h)) for s, e, h in names)
        except (ValueError, TypeError) as error:
            raise ValueError(NOT_OURS) from error
        if (type(number), type(first), type(second)) != (int, str, str):
            raise ValueError(NOT_OURS)
        if kind == "begin":
            return cls(None, again)
        if kind == "named" and number >= 0:
            return cls(NamedPlace(number, first, second), again)
        if kind == "dead" and DEAD_FROM <= number <= FOR_EVER:
            return cls(DueEntry(number, first, second), again)
        raise ValueError(NOT_OURS)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that the search read.

    `run` is None for an id without an event. `fits` is whether the filters select it. `cursor` is
    the place behind it; candidates that do not fit have one as well, so that a search can end and
    resume among them.
    """

    run: Run | None
    fits: bool
    cursor: Cursor


class Search:
    """Reads the named events, or the dead runs in the due index, a page at a time."""

    def __init__(
        self, *, manifest: Manifest, ledger: Ledger, clock: Clock, parallel: Parallel
    ) -> None:
        self._manifest = manifest
        self._ledger = ledger
        self._clock = clock
        self._parallel = parallel

    def candidates(self, request: ReplayRequest, cursor: Cursor) -> Iterator[Candidate]:
        """Yields the candidates behind a cursor: named ones as named, dead ones oldest first.

        Raises:
            Unavailable: the ledger failed.
        """
        yield from self._again(request, cursor)
        after = cursor.after
        if request.event_ids is not None:
            place = after if isinstance(after, NamedPlace) else NamedPlace(0)
            yield from self._named(request, request.event_ids, place)
        else:
            yield from self._dead(request, after if isinstance(after, DueEntry) else None)

    def _again(self, request: ReplayRequest, cursor: Cursor) -> Iterator[Candidate]:
        ids = request.event_ids
        named = None if ids is None else {dedupe_key(event_id) for event_id in ids}
        for number, (source, event_id, handler) in enumerate(cursor.again, start=1):
            rest = Cursor(cursor.after, cursor.again[number:])
            event = self._ledger.overview(source, event_id, now=self._clock.now())
            runs = {run.handler: run for run in (_runs(event) if event else ())}
            run = runs.get(handler)
            # The caller can have written the cursor: it selects only what the request selects.
            fits = run is not None and _fits(run, request)
            if named is not None:
                fits = fits and event_id in named
            elif run is not None:
                # An update whose answer was lost may have made a dead run pending.
                fits = fits and run.status in {Status.DEAD_LETTER, Status.PENDING}
            yield Candidate(run, fits=fits, cursor=rest)

    def _named(
        self, request: ReplayRequest, ids: tuple[str, ...], after: NamedPlace
    ) -> Iterator[Candidate]:
        for first in range(after.number, len(ids), READ_AHEAD):
            numbers = range(first, min(first + READ_AHEAD, len(ids)))
            read = self._parallel.map(lambda number: self._events(request, ids[number]), numbers)
            for number, events in zip(numbers, read, strict=True):
                if not events:
                    yield Candidate(None, fits=False, cursor=Cursor(NamedPlace(number + 1)))
                runs = [run for event in events for run in _runs(event)]
                # The runs of an event have a stable order, so the last one read is a position.
                places = [NamedPlace(number, run.source, run.handler) for run in runs]
                begin = places.index(after) + 1 if after in places else 0
                for run, place in list(zip(runs, places, strict=True))[begin:]:
                    yield Candidate(run, _fits(run, request), Cursor(place))

    def _events(self, request: ReplayRequest, event_id: str) -> list[Overview]:
        sources = [request.source] if request.source else self._manifest.sources
        now, id_ = self._clock.now(), dedupe_key(event_id)
        found = (self._ledger.overview(source, id_, now=now) for source in sources)
        return [event for event in found if event is not None]

    def _dead(self, request: ReplayRequest, after: DueEntry | None) -> Iterator[Candidate]:
        low, high = DEAD_FROM, FOR_EVER
        # A row's end is its event's time, rounded up to a second.
        if request.received_after is not None:
            low = dead_due_at(request.received_after + RUN_LIFE)
        if request.received_before is not None:
            high = dead_due_at(request.received_before + RUN_LIFE) + 1000
        found = self._ledger.dead_runs(
            low=max(low, DEAD_FROM), high=high, after=after, selects=lambda e: _selects(e, request)
        )
        for entry, run in found:
            if run is not None:
                yield Candidate(run, _fits(run, request), Cursor(entry))


def _selects(entry: DueEntry, request: ReplayRequest) -> bool:
    return request.source in {None, entry.source} and request.handler in {None, entry.handler}


def _runs(overview: Overview) -> Iterator[Run]:
    """Yields an event's runs; one without a row as pending, or as held if its event is."""
    by_name = {run.handler: run for run in overview.runs}
    event = overview.event
    for name in dict.fromkeys((*event.runs, *by_name)):
        if event.held and name not in by_name:
            yield run_from(held_run(event, name))
            continue
        unbegun = Run(
            source=event.source,
            event_id=event.event_id,
            handler=name,
            type=event.type,
            status=Status.PENDING,
            ordering_key=event.ordering_keys.get(name, ""),
            expires_at=event.received_at + RUN_LIFE,
        )
        yield by_name.get(name, unbegun)


def _fits(run: Run, request: ReplayRequest) -> bool:
    received_at = None if run.expires_at is None else run.expires_at - RUN_LIFE
    clauses = (
        request.source in {None, run.source},
        request.handler in {None, run.handler},
        request.type is None or matches((request.type,), run.type),
        request.error_contains is None or request.error_contains in run.last_error,
        request.received_after is None
        or (received_at is not None and received_at >= request.received_after),
        request.received_before is None
        or (received_at is not None and received_at < request.received_before),
    )
    return all(clauses)
