"""The search for the runs that a replay selects."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from webhook_inbox.domain.error_text import error_group
from webhook_inbox.domain.errors import Permanent, Skipped
from webhook_inbox.domain.manifest import Manifest, matches
from webhook_inbox.domain.model import EventStatus, Overview, Run, Status
from webhook_inbox.domain.ports import Item, Ports
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger.queries import FOR_EVER, DueEntry, Ledger, Received
from webhook_inbox.ledger.schema import (
    DEAD_FROM,
    EVENT_LIFE,
    RUN_LIFE,
    dead_due_at,
    dedupe_key,
    held_run,
    run_from,
    run_key,
)
from webhook_inbox.replay.added import added_run
from webhook_inbox.replay.body_condition import BODY_LIMIT, holds
from webhook_inbox.replay.cursor import (
    ChosenPlace,
    Cursor,
    NamedPlace,
    OpenPlace,
    ReceivedPlace,
    RunName,
)
from webhook_inbox.replay.request import ReplayRequest
from webhook_inbox.replay.selections import Chosen, RunSelection, Selections

# The events whose rows are read at the same time.
READ_AHEAD: Final = 16


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that the search read.

    Attributes:
        run: None for an id without an event.
        fits: whether the filters select it.
        cursor: the place behind it; candidates that do not fit have one as well, so that a search
            can end and resume among them.
        chosen: how a selection lists it.
        unsearched: whether its body could not be searched.
    """

    run: Run | None
    fits: bool
    cursor: Cursor
    chosen: Chosen | None = None
    unsearched: bool = False


class Search:
    """Reads the candidates of a request, a page at a time.

    Named events are read by their keys, dead and waiting runs from the due index, and all others
    by the time at which their events were received.
    """

    def __init__(self, manifest: Manifest, ports: Ports, selections: Selections) -> None:
        self._manifest = manifest
        self._ledger = Ledger(table=ports.table, blobs=ports.blobs)
        self._table = ports.table
        self._selections = selections
        self._clock = ports.clock
        self._parallel = ports.parallel

    def candidates(self, request: ReplayRequest, cursor: Cursor) -> Iterator[Candidate]:
        """Yields the candidates behind a cursor: named ones as named, all others in their order.

        Dead runs and those found by the time of receipt begin with the oldest event.

        Raises:
            Unavailable: the ledger failed.
        """
        found = self._candidates(request, cursor)
        if request.tenant is None and request.where is None:
            yield from found
            return
        while batch := list(islice(found, READ_AHEAD)):
            yield from self._parallel.map(lambda each: self._by_event(each, request), batch)

    def _candidates(self, request: ReplayRequest, cursor: Cursor) -> Iterator[Candidate]:
        yield from self._again(request, cursor)
        after, begun = cursor.after, cursor.begun
        if request.event_ids is not None:
            place = after if isinstance(after, NamedPlace) else NamedPlace(0)
            yield from self._named(request, request.event_ids, place, begun)
        elif request.by_receipt:
            place_ = after if isinstance(after, ReceivedPlace) else None
            yield from self._received(request, place_, begun)
        else:
            if not isinstance(after, DueEntry) and request.statuses - {EventStatus.DEAD_LETTER}:
                yield from self._open(
                    request, after if isinstance(after, OpenPlace) else None, begun
                )
            if EventStatus.DEAD_LETTER in request.statuses:
                yield from self._dead(
                    request, after if isinstance(after, DueEntry) else None, begun
                )

    def chosen(self, selection: RunSelection, cursor: Cursor) -> Iterator[Candidate]:
        """Yields the runs of a selection behind a cursor.

        Raises:
            Unavailable: the ledger failed.
        """
        if cursor.again:
            names = {each[:3]: each for part in self._selections.chosen(selection) for each in part}
            # The caller can have written the cursor: it selects only what the selection lists.
            again = [names[name] for name in cursor.again if name in names]
            for number, (item, run) in enumerate(self._read(again), start=1):
                rest = tuple(each[:3] for each in again[number:])
                yield Candidate(run, fits=True, cursor=replace(cursor, again=rest), chosen=item)
        number = cursor.after.number if isinstance(cursor.after, ChosenPlace) else 0
        for part in self._selections.chosen(selection, number):
            for item, run in self._read(part):
                number += 1
                place = Cursor(ChosenPlace(number), begun=cursor.begun)
                yield Candidate(run, fits=True, cursor=place, chosen=item)

    def _read(self, items: list[Chosen]) -> list[tuple[Chosen, Run | None]]:
        """Returns listed runs as they are now; None for one whose rows are gone."""
        keys = [run_key(*item[:3]) for item in items]
        rows = {(row["pk"], row["sk"]): row for row in self._table.get_many(keys)}
        unbegun = [item for item, key in zip(items, keys, strict=True) if key not in rows]
        read = dict(zip(unbegun, self._parallel.map(self._unbegun, unbegun), strict=True))
        return [
            (item, run_from(rows[key]) if key in rows else read[item])
            for item, key in zip(items, keys, strict=True)
        ]

    def _unbegun(self, item: Chosen) -> Run | None:
        return self._run(item[:3])

    def _again(self, request: ReplayRequest, cursor: Cursor) -> Iterator[Candidate]:
        ids = request.event_ids
        named = None if ids is None else {dedupe_key(event_id) for event_id in ids}
        for number, name in enumerate(cursor.again, start=1):
            rest = replace(cursor, again=cursor.again[number:])
            run = self._run(name)
            # The caller can have written the cursor: it selects only what the request selects.
            fits = run is not None and _fits(run, request, interrupted=named is None)
            if named is not None:
                fits = fits and name[1] in named
            yield Candidate(run, fits=fits, cursor=rest)

    def _run(self, name: RunName) -> Run | None:
        source, event_id, handler = name
        event = self._ledger.overview(source, event_id, now=self._clock.now())
        runs = {run.handler: run for run in (self._runs(event, handler) if event else ())}
        return runs.get(handler)

    def _runs(self, overview: Overview, handler: str | None) -> Iterator[Run]:
        """Yields an event's runs, and that of a named handler that the event lacks."""
        yield from _runs(overview)
        added = added_run(overview, handler, self._manifest)
        if added is not None:
            yield added

    def _named(
        self, request: ReplayRequest, ids: tuple[str, ...], after: NamedPlace, begun: int
    ) -> Iterator[Candidate]:
        for first in range(after.number, len(ids), READ_AHEAD):
            numbers = range(first, min(first + READ_AHEAD, len(ids)))
            read = self._parallel.map(lambda number: self._events(request, ids[number]), numbers)
            for number, events in zip(numbers, read, strict=True):
                if not events:
                    place = Cursor(NamedPlace(number + 1), begun=begun)
                    yield Candidate(None, fits=False, cursor=place)
                named = request.handler
                runs = [run for event in events for run in self._runs(event, named)]
                # The runs of an event have a stable order, so the last one read is a position.
                places = [NamedPlace(number, run.source, run.handler) for run in runs]
                begin = places.index(after) + 1 if after in places else 0
                for run, found in list(zip(runs, places, strict=True))[begin:]:
                    yield Candidate(run, _fits(run, request), Cursor(found, begun=begun))

    def _events(self, request: ReplayRequest, event_id: str) -> list[Overview]:
        sources = [request.source] if request.source else self._manifest.sources
        now, id_ = self._clock.now(), dedupe_key(event_id)
        found = (self._ledger.overview(source, id_, now=now) for source in sources)
        return [event for event in found if event is not None]

    def _dead(
        self, request: ReplayRequest, after: DueEntry | None, begun: int
    ) -> Iterator[Candidate]:
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
                yield Candidate(run, _fits(run, request), Cursor(entry, begun=begun))

    def _open(
        self, request: ReplayRequest, after: OpenPlace | None, begun: int
    ) -> Iterator[Candidate]:
        """Yields the runs of the due index that wait, one bucket after the other."""
        for bucket in sorted(self._ledger.due_buckets()):
            if after is not None and bucket < after.bucket:
                continue
            within = after is not None and bucket == after.bucket
            last = DueEntry(after.due_at, after.pk, after.sk) if after and within else None
            found = self._ledger.open_runs(
                bucket, after=last, selects=lambda entry: _selects(entry, request)
            )
            for entry, run in found:
                place = OpenPlace(entry.due_at, bucket, entry.pk, entry.sk)
                if run is not None:
                    # A replay lists its run again, with a later time.
                    fits = _fits(run, request) and not _replayed_since(run, begun)
                    yield Candidate(run, fits, Cursor(place, begun=begun))

    def _received(
        self, request: ReplayRequest, after: ReceivedPlace | None, begun: int
    ) -> Iterator[Candidate]:
        """Yields the runs of the events of a window of time, oldest event first."""
        now = self._clock.now()
        low = max(request.received_after or now, now - EVENT_LIFE - timedelta(hours=1))
        high = min(request.received_before or now, now)
        if after is not None:
            low = max(low, from_ms(after.received_at))
        found = self._ledger.received(low, high)
        while batch := list(islice(found, READ_AHEAD)):
            read = self._parallel.map(lambda each: self._runs_of(each, request, now), batch)
            for event, runs in zip(batch, read, strict=True):
                for run in runs:
                    place = _place(event, run)
                    if after is None or _order(place) > _order(after):
                        yield Candidate(run, _fits(run, request), Cursor(place, begun=begun))

    def _runs_of(self, event: Received, request: ReplayRequest, now: datetime) -> list[Run]:
        """Returns an event's runs by handler; none of an event that no filter can select."""
        if request.source not in {None, event.source}:
            return []
        if request.type is not None and not matches((request.type,), event.type):
            return []
        overview = self._ledger.overview(event.source, event.event_id, now=now)
        return [] if overview is None else sorted(_runs(overview), key=lambda run: run.handler)

    def _by_event(self, candidate: Candidate, request: ReplayRequest) -> Candidate:
        """Applies the filters that need the event's row or its body, which are read last."""
        run = candidate.run
        if run is None or not candidate.fits:
            return candidate
        row = self._ledger.event_row(run.source, run.event_id, now=self._clock.now())
        if row is None:
            return replace(candidate, fits=False)
        tenant = getattr(run, "tenant", "") or row.get("tenant", "")
        if request.tenant not in {None, tenant}:
            return replace(candidate, fits=False)
        if request.where is None:
            return candidate
        body = self._body(row)
        if body is None:
            return replace(candidate, fits=False, unsearched=True)
        return replace(candidate, fits=holds(request.where, body))

    def _body(self, row: Item) -> bytes | None:
        """Returns a body; None if it is too large, gone or erased."""
        if row.get("body_size", 0) > BODY_LIMIT:
            return None
        try:
            return self._ledger.body_of(row)
        except (Permanent, Skipped):
            return None


def _selects(entry: DueEntry, request: ReplayRequest) -> bool:
    return request.source in {None, entry.source} and request.handler in {None, entry.handler}


def _place(event: Received, run: Run) -> ReceivedPlace:
    return ReceivedPlace(to_ms(event.received_at), event.source, event.event_id, run.handler)


def _order(place: ReceivedPlace) -> tuple[int, str, str, str]:
    return place.received_at, place.source, place.event_id, place.handler


def _replayed_since(run: Run, begun: int) -> bool:
    last: Mapping[str, object] = run.replays[-1] if run.replays else {}
    at = last.get("at", 0)
    return isinstance(at, int) and bool(begun) and at >= begun


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


def has_begun(run: Run) -> bool:
    """Returns whether a run has a row."""
    return run.generation > 0 or run.first_at is not None


def _status(run: Run) -> EventStatus:
    return EventStatus(str(run.status)) if has_begun(run) else EventStatus.ACCEPTED


def _fits(run: Run, request: ReplayRequest, *, interrupted: bool = False) -> bool:
    """Returns whether the filters select a run, but for those that need its event.

    An update whose answer was lost may have made an `interrupted` run pending.
    """
    received_at = None if run.expires_at is None else run.expires_at - RUN_LIFE
    clauses = (
        _status(run) in request.statuses or (interrupted and run.status is Status.PENDING),
        request.source in {None, run.source},
        request.handler in {None, run.handler},
        request.type is None or matches((request.type,), run.type),
        request.error_contains is None or request.error_contains in run.last_error,
        request.error_class in {None, run.error_class},
        request.error_group is None or request.error_group == _group(run),
        request.received_after is None
        or (received_at is not None and received_at >= request.received_after),
        request.received_before is None
        or (received_at is not None and received_at < request.received_before),
    )
    return all(clauses)


def _group(run: Run) -> str:
    return error_group(run.error_class, run.error_line, run.last_error).id
