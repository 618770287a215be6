"""Checks the entries of the due index, and each pass over them (G1, G8)."""

from collections import Counter
from typing import Final

from simulation.engine.doubles import Doubles
from simulation.invariants.observer import RunName, must
from webhook_inbox.adapters.memory import MemoryQueue
from webhook_inbox.domain.manifest import DEFAULT_LANE, Manifest
from webhook_inbox.domain.ports import Item
from webhook_inbox.ledger.schema import WAKE, WATCH

# A backlog explains the wait of a message for a day at most.
EXPLAINED_MS: Final = 86_400_000
# The oldest message of a FIFO lane may wait for its ordering key alone.
FIFO_EXPLAINED_MS: Final = 7_200_000
# A handler and a kind of entries.
Place = tuple[str, str]


def check_listed(run: RunName, row: Item, registered: bool) -> None:  # noqa: FBT001
    """Checks that the reconciler will look for an entry of this handler."""
    must("G1", registered or "due_bucket" not in row, f"{run} is listed, its handler is unknown")


def check_unexplained(run: RunName, old: Item, until: int) -> None:
    """Checks that the backlog does not explain why a run that the reconciler writes still waits.

    Args:
        run: the run.
        old: its row before the write.
        until: the latest due time, in ms, that the backlog of its lane did not explain when the
            pass read it. A pass reads a backlog once, before it sends: a message that the pass
            itself sends would otherwise explain the wait of the next run.
    """
    watched = old.get("due_bucket", "").startswith(WATCH)
    must("flood", not watched or old["due_at"] <= until, f"{run} was written behind a backlog")


def due(aws: Doubles, manifest: Manifest, now: int) -> Counter[Place]:
    """Returns how many runs of each handler the next pass must handle, by kind."""
    found: Counter[Place] = Counter()
    for row in aws.table.rows():
        kind = row.get("due_bucket", "").partition("#")[0]
        if not kind or row["due_at"] > now:
            continue
        lane = manifest.lane_of(row["handler"])
        queue = aws.queues[lane if lane in aws.queues else DEFAULT_LANE]
        late = 0 if kind == WAKE else explained(queue)
        if row["due_at"] + late <= now:
            found[row["handler"], kind] += 1
    return found


def check_pass(before: Counter[Place], after: Counter[Place], *, drain: int) -> None:
    """Checks that a pass handled every handler's due runs, up to the handler's budget (G8)."""
    for place, number in before.items():
        left, most = after[place], max(0, number - drain)
        guarantee = "G8" if len(before) > 1 else "G1"
        must(guarantee, left <= most, f"{place}: {left} of {number} due runs were not handled")


def explained(queue: MemoryQueue) -> int:
    """Returns how late a message of a queue may be because of its backlog, in ms."""
    backlog = queue.backlog()
    # A message in flight explains nothing: a leased run is not overdue.
    oldest = backlog.oldest if backlog.visible else None
    most = FIFO_EXPLAINED_MS if queue.fifo else EXPLAINED_MS
    return 0 if oldest is None else min(int(oldest.total_seconds() * 1000), most)
