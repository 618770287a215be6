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
from webhook_inbox.domain.ports import Clock
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import DEAD_FROM, RUN_LIFE, WATCH, dedupe_key, run_from

NOT_OURS: Final = "cursor: this function did not return it for such a request"
# A cursor points behind an entry of the due index, or behind one of an event's runs.
_ENTRY: Final = {"pk": str, "sk": str, "due_bucket": str, "due_at": int}
_MARK: Final = {"source": str, "handler": str}


class InvalidRequestError(InboxError):
    """The replay payload cannot be used; the text names the field and the remedy."""


class ReplayRequest(BaseModel):
    """Selects the runs to replay.

    Without `event_ids` it selects dead runs; with them, every unfinished run of those events.
    `force` also replays finished runs, of events and a handler given by name (G3).
    `rate_per_second` 0.1-500, `limit` 1-10000. Naive times are UTC.
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
        """Rejects a cursor of another request before anything is audited or replayed."""
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


Position = tuple[int, dict[str, Any] | None]


def write_cursor(part: int, within: dict[str, Any] | None = None) -> str:
    """Encodes a position in the search: a part, and the index entry within it."""
    return base64.urlsafe_b64encode(json.dumps([part, within]).encode()).decode()


def read_cursor(text: str) -> Position:
    """Decodes a cursor.

    Raises:
        ValueError: `write_cursor` did not make it.
    """
    try:
        part, within = json.loads(base64.urlsafe_b64decode(text.encode()))
    except (ValueError, TypeError) as error:
        raise ValueError(NOT_OURS) from error
    if not isinstance(part, int) or part < 0 or not isinstance(within, dict | None):
        raise ValueError(NOT_OURS)
    return part, within


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that the search read.

    `run` is None for an id without an event. `fits` is whether the filters select it. `cursor` is
    the position behind it; candidates that do not fit have one as well, so that a search can end
    and resume among them.
    """

    run: Run | None
    fits: bool
    cursor: str


class Search:
    """Reads the named events, or the dead runs in the due index."""

    def __init__(self, *, manifest: Manifest, ledger: Ledger, clock: Clock) -> None:
        self._manifest = manifest
        self._ledger = ledger
        self._clock = clock

    def candidates(self, request: ReplayRequest) -> Iterator[Candidate]:
        """Yields candidates from the request's cursor on.

        Raises:
            Unavailable: the ledger failed.
        """
        if request.event_ids is not None:
            return self._named(request, request.event_ids)
        return self._dead(request)

    def _named(self, request: ReplayRequest, ids: tuple[str, ...]) -> Iterator[Candidate]:
        first, within = read_cursor(request.cursor) if request.cursor else (0, None)
        for place in range(first, len(ids)):
            events = self._events(request, ids[place])
            if not events:
                yield Candidate(None, fits=False, cursor=write_cursor(place + 1))
            runs = [run for event in events for run in _runs(event)]
            # The runs of an event have a stable order, so the last one read is a position.
            marks = [{"source": run.source, "handler": run.handler} for run in runs]
            begin = marks.index(within) + 1 if place == first and within in marks else 0
            for run, mark in list(zip(runs, marks, strict=True))[begin:]:
                yield Candidate(run, _fits(run, request), write_cursor(place, mark))

    def _events(self, request: ReplayRequest, event_id: str) -> list[Overview]:
        sources = [request.source] if request.source else self._manifest.sources
        now, id_ = self._clock.now(), dedupe_key(event_id)
        found = (self._ledger.overview(source, id_, now=now) for source in sources)
        return [event for event in found if event is not None]

    def _dead(self, request: ReplayRequest) -> Iterator[Candidate]:
        _, within = read_cursor(request.cursor) if request.cursor else (0, None)
        # Named by the entry, since the number changes when a handler is registered.
        reached = within["due_bucket"] if within else ""
        buckets = sorted(self._ledger.due_buckets([WATCH]))
        for bucket in (name for name in buckets if name >= reached):
            start = within if bucket == reached else None
            for page in self._ledger.due(bucket, low=DEAD_FROM, start=start):
                for entry, row in page:
                    run = run_from(row)
                    fits = run.status is Status.DEAD_LETTER and _fits(run, request)
                    yield Candidate(run, fits, write_cursor(0, entry))


def _runs(overview: Overview) -> Iterator[Run]:
    """Yields an event's runs; one without a row as pending."""
    by_name = {run.handler: run for run in overview.runs}
    event = overview.event
    for name in dict.fromkeys((*event.runs, *by_name)):
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
