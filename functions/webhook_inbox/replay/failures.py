"""Watches the runs that the replay of a selection has sent, and tells when too many fail again."""

from typing import Final

from webhook_inbox.domain.model import SETTLED, Run, Status
from webhook_inbox.domain.ports import Table
from webhook_inbox.domain.replay_report import SAMPLE, ReplayReport, ReportedRun
from webhook_inbox.ledger.schema import run_from, run_key
from webhook_inbox.replay.cursor import ChosenPlace, Cursor
from webhook_inbox.replay.selections import RunSelection, Selections

# Each look reads so many of the latest runs, in two calls.
WATCHED: Final = 200
# A share of fewer outcomes tells little.
FEWEST: Final = 10
_FAILED: Final = frozenset({Status.FAILED, Status.DEAD_LETTER})


class Watch:
    """Reads the outcomes of the runs that a series of pages has replayed."""

    def __init__(
        self, selections: Selections, table: Table, selection: RunSelection, begun: int
    ) -> None:
        self._selections = selections
        self._table = table
        self._selection = selection
        self._begun = begun

    def observe(self, cursor: Cursor, report: ReplayReport, limit: float) -> str:
        """Puts the outcomes into the report; returns why the replay must stop, "" if it may go on.

        A run that waits, is in progress or is held has no outcome yet. Outcomes of an earlier
        series of pages, before an operator continued, do not count.

        Raises:
            Unavailable: the ledger failed.
        """
        runs = self._replayed(cursor)
        failed = [run for run in runs if run.status in _FAILED]
        known = len(failed) + sum(run.status in SETTLED for run in runs)
        report.outcomes = {}
        for run in runs:
            report.outcomes[str(run.status)] = report.outcomes.get(str(run.status), 0) + 1
        report.failures = [ReportedRun.of(run) for run in failed[:SAMPLE]]
        if known < FEWEST or len(failed) <= limit * known:
            return ""
        return (
            f"failure rate {len(failed) / known:.0%}: {len(failed)} of the latest {known} replayed"
            f" runs with an outcome failed again (stop_at_failures is {limit:.0%})"
        )

    def _replayed(self, cursor: Cursor) -> list[Run]:
        number = cursor.after.number if isinstance(cursor.after, ChosenPlace) else 0
        first = max(0, number - WATCHED)
        chosen = (each for part in self._selections.chosen(self._selection, first) for each in part)
        keys = [run_key(*each[:3]) for _, each in zip(range(number - first), chosen, strict=False)]
        runs = map(run_from, self._table.get_many(keys))
        return [run for run in runs if self._is_ours(run)]

    def _is_ours(self, run: Run) -> bool:
        last = run.replays[-1] if run.replays else {}
        return last.get("selection") == self._selection.id and last["at"] >= self._begun
