"""The runs that wait for a person or a destination, counted within a bound."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Final

from webhook_inbox.domain.model import Run
from webhook_inbox.ledger.queries import Ledger

# The open runs that are read per partition of the due index; a handler has eight.
PER_SHARD: Final = 200
WORKERS: Final = 8


@dataclass(frozen=True, slots=True)
class WaitingRuns:
    """Runs that wait; not complete if only some of the due index was read."""

    runs: tuple[Run, ...]
    complete: bool


def waiting_runs(ledger: Ledger, selects: Callable[[Run], bool]) -> WaitingRuns:
    """Returns the open runs that `selects` names, as far as the bound allows."""

    def read(bucket: str) -> list[Run]:
        return list(islice(ledger.due_runs(bucket=bucket), PER_SHARD + 1))

    with ThreadPoolExecutor(WORKERS) as pool:
        shards = list(pool.map(read, ledger.due_buckets()))
    waits = tuple(run for runs in shards for run in runs if selects(run))
    return WaitingRuns(waits, all(len(runs) <= PER_SHARD for runs in shards))
