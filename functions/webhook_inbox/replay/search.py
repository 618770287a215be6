"""Which runs a replay request names, one by one, each with the place right behind it."""

from collections.abc import Iterator
from dataclasses import dataclass

from webhook_inbox.domain.manifest import Manifest, matches
from webhook_inbox.domain.model import Overview, Run, Status
from webhook_inbox.domain.ports import Clock
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import DUE_SHARDS, RUN_LIFE, dedupe_key, run_from
from webhook_inbox.replay.request import ReplayRequest, read_cursor, write_cursor


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that the search came by.

    `run` is None for an id without an event. `fits` tells whether the filters name it. `cursor`
    is the place right behind it: every candidate has one, so that a search among many that do
    not fit can be ended and resumed as well.
    """

    run: Run | None
    fits: bool
    cursor: str


class Search:
    """Looks up named events, or through the dead letters."""

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
            # An event's runs keep their order, so the one that was looked at last is a place.
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
        first, within = read_cursor(request.cursor) if request.cursor else (0, None)
        for shard in range(first, DUE_SHARDS):
            start = within if shard == first else None
            for page in self._ledger.due(shard, start=start):
                for entry, row in page:
                    run = run_from(row)
                    fits = run.status is Status.DEAD_LETTER and _fits(run, request)
                    yield Candidate(run, fits, write_cursor(shard, entry))


def _runs(overview: Overview) -> Iterator[Run]:
    """Yields an event's runs, those without a row as they would begin."""
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
