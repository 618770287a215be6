"""Fixed selections: the list of runs that a dry run showed, kept for seven days.

    pk = selection#{id}    sk = head            request, report, cursor, chunks
                           sk = runs#{token}    up to 100 runs: source, event id, handler,
                                                generation, status

The rows of a page are written before the head names them. The head is changed under the condition
that it has not changed since it was read: a call that crashed, or a second one at the same time,
leaves rows that no head names.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from webhook_inbox.domain.conditions import Absent, Equals
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Item, Key, Randomness, Table
from webhook_inbox.domain.replay_report import ReplayReport
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.ledger.schema import live
from webhook_inbox.replay.request import InvalidRequestError, ReplayRequest

SELECTION_LIFE: Final = timedelta(days=7)
CHUNK: Final = 100
_HEAD: Final = "head"
_ID_LENGTH: Final = 12
# Fields of the first request that later pages do not keep.
_OF_ONE_PAGE: Final = {"cursor", "selection", "seconds"}


class Chosen(NamedTuple):
    """A run of a selection, as it was when it was chosen."""

    source: str
    event_id: str
    handler: str
    generation: int
    status: str

    def is_as_chosen(self, run: Run) -> bool:
        """Returns whether the run has not been replayed, and has its status."""
        return (run.generation, str(run.status)) == (self.generation, self.status)


@dataclass(frozen=True, slots=True)
class RunSelection:
    """The head of a selection.

    Attributes:
        request: the filters, and the limit of all pages.
        report: of all pages so far.
        cursor: where the search continues; "" at its end or limit.
        chunks: the sort key and the number of runs of each row.
        version: raised by every page; it fences two callers.
    """

    id: str
    request: ReplayRequest
    report: ReplayReport
    cursor: str
    chunks: tuple[tuple[str, int], ...]
    version: int
    created_at: datetime

    @property
    def runs(self) -> int:
        """The number of runs."""
        return sum(number for _, number in self.chunks)


class Selections:
    """Writes and reads selections."""

    def __init__(self, table: Table, randomness: Randomness) -> None:
        self._table = table
        self._randomness = randomness

    def begin(self, request: ReplayRequest, now: datetime) -> RunSelection:
        """Writes the head of an empty selection; raises Unavailable if the table failed."""
        id_ = self._randomness.token()[:_ID_LENGTH]
        kept = request.model_copy(update=dict.fromkeys(_OF_ONE_PAGE))
        report = ReplayReport(dry_run=True, selection=id_)
        selection = RunSelection(id_, kept, report, request.cursor or "", (), 0, now)
        try:
            self._table.put(_head(selection), when=Absent("pk"))
        except ConditionFailed as error:
            raise Unavailable("ledger", "PutItem", "the new id is taken; call again") from error
        return selection

    def read(self, id_: str, now: datetime) -> RunSelection:
        """Returns a selection.

        Raises:
            InvalidRequestError: there is none of this id.
            Unavailable: the table failed.
        """
        row = live(self._table.get(Key(_pk(id_), _HEAD)), now)
        if row is None:
            raise InvalidRequestError(
                f"replay: selection: there is no selection {id_}, or it has expired after 7 days"
            )
        return _selection(row)

    def extend(
        self, selection: RunSelection, runs: Sequence[Run], report: ReplayReport, *, cursor: str
    ) -> RunSelection:
        """Adds the runs of a page.

        Raises:
            Unavailable: the table failed, or another call extended it; the call can be repeated.
        """
        chunks = list(selection.chunks)
        for start in range(0, len(runs), CHUNK):
            chosen = runs[start : start + CHUNK]
            sk = f"runs#{self._randomness.token()}"
            self._table.put(_chunk(selection, sk, chosen))
            chunks.append((sk, len(chosen)))
        later = replace(
            selection,
            report=report,
            cursor=cursor,
            chunks=tuple(chunks),
            version=selection.version + 1,
        )
        try:
            self._table.put(_head(later), when=Equals("version", selection.version))
        except ConditionFailed as error:
            if error.old is None or not _same(error.old, later):
                cause = f"another call extends the selection {selection.id}; call again"
                raise Unavailable("ledger", "PutItem", cause) from error
        return later

    def chosen(self, selection: RunSelection, first: int = 0) -> Iterator[list[Chosen]]:
        """Yields the runs from number `first` on, a row at a time.

        Raises:
            Unavailable: the table failed, or a row has expired meanwhile.
        """
        begin = 0
        for sk, number in selection.chunks:
            if begin + number > first:
                row = self._table.get(Key(_pk(selection.id), sk))
                if row is None:
                    raise Unavailable("ledger", "GetItem", f"selection {selection.id} has expired")
                runs = [Chosen(*values) for values in row["runs"]]
                yield runs[max(0, first - begin) :]
            begin += number


def _pk(id_: str) -> str:
    return f"selection#{id_}"


def _head(selection: RunSelection) -> Item:
    kept = selection.request.model_dump(mode="json", exclude_none=True)
    return {
        "pk": _pk(selection.id),
        "sk": _HEAD,
        "request": json.dumps(kept),
        "report": json.dumps(asdict(selection.report)),
        "by": selection.request.requested_by,
        "cursor": selection.cursor,
        "chunks": [[sk, number] for sk, number in selection.chunks],
        "version": selection.version,
        "created_at": to_ms(selection.created_at),
        "expires_at": to_seconds(selection.created_at + SELECTION_LIFE),
    }


def _chunk(selection: RunSelection, sk: str, runs: Sequence[Run]) -> Item:
    chosen = [[r.source, r.event_id, r.handler, r.generation, str(r.status)] for r in runs]
    # Longer than the head, so that a selection that is read is complete.
    end = to_seconds(selection.created_at + SELECTION_LIFE + timedelta(days=1))
    return {"pk": _pk(selection.id), "sk": sk, "runs": chosen, "expires_at": end}


def _selection(row: Item) -> RunSelection:
    return RunSelection(
        id=row["pk"].removeprefix("selection#"),
        request=ReplayRequest.read(json.loads(row["request"])),
        report=ReplayReport.from_data(json.loads(row["report"])),
        cursor=row["cursor"],
        chunks=tuple((sk, number) for sk, number in row["chunks"]),
        version=row["version"],
        created_at=from_ms(row["created_at"]),
    )


def _same(row: Item, later: RunSelection) -> bool:
    """Returns whether the row is this very write, repeated because its answer was lost."""
    return bool(row["chunks"] == _head(later)["chunks"] and row["version"] == later.version)
