"""Checks that the reconciler's first cursor passes no event whose runs were never enqueued (G1)."""

from collections.abc import Callable
from typing import Final

from simulation.engine.doubles import Doubles
from simulation.invariants.observer import RunName, must
from webhook_inbox.domain.ports import Item
from webhook_inbox.ledger.schema import identify, run_key

# Positions by shard, in ms.
FIRST: Final = "first"


def check_moved(
    aws: Doubles, old: Item, new: Item, *, lane_of: Callable[[str], str], lost: set[RunName]
) -> None:
    """Checks the events between the old and the new position of the first cursor.

    Each run has a row by now, or a backlog explains its wait; the second look then finds the run.
    An index that lags may hide an event from the first look.

    Args:
        aws: the doubles.
        old: the row of the cursors before the write.
        new: the same row after the write.
        lane_of: returns the existing lane of a handler's runs.
        lost: runs whose message the queue lost.
    """
    if aws.lags:
        return
    for row in list(aws.table.rows()):
        if row["sk"] != "event":
            continue
        shard = row["received_bucket"].rpartition("#")[2]
        if not old[FIRST][shard] < row["received_at"] <= new[FIRST][shard]:
            continue
        for name in row["runs"]:
            run = *identify(row["pk"]), name
            known = aws.table.row(run_key(*run)) is not None
            lane = lane_of(name)
            waits = len(aws.queues[lane]) or len(aws.dlqs[lane]) or run in lost
            must("G1", known or bool(waits), f"{run} was passed and is not enqueued")
