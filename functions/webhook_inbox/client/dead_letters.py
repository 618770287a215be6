"""The dead-letter queues, and the dead runs that their messages belong to."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Final

from webhook_inbox.adapters.aws.sqs import count_messages
from webhook_inbox.client.failures import cause_of
from webhook_inbox.client.scope import Scope
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.printable import cut
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.schema import DEAD_FROM, RUN_LIFE, WATCH

ERROR_SHOWN: Final = 160
WORKERS: Final = 8


@dataclass(frozen=True, slots=True)
class DeadLetterLane:
    """The dead-letter queue of a lane.

    Attributes:
        messages: the number of messages, by SQS, which is approximate.
        oldest: how long ago the first of its runs died; None without any.
        dead_runs: the number of dead runs, by the ledger.
        is_complete: False if `dead_runs` is the least, since the limit was reached.
        serial: whether it is a serial lane, whose dead runs have no message.
    """

    lane: str
    messages: int
    oldest: timedelta | None
    dead_runs: int
    is_complete: bool
    serial: bool


@dataclass(frozen=True, slots=True)
class DeadRunCause:
    """Dead runs of one handler that ended with one error, but for its ids and numbers.

    `oldest` is the time at which the first of their events was received.
    """

    handler: str
    error: str
    runs: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class DeadLetterSummary:
    """The dead-letter queues by lane, and the dead runs by cause, the largest group first."""

    lanes: Sequence[DeadLetterLane]
    causes: Sequence[DeadRunCause]


@dataclass(frozen=True, slots=True)
class DeadRunCount:
    """The number of dead runs; the least if it is not complete."""

    runs: int
    is_complete: bool


class DeadLetters:
    """The dead letters of an inbox."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def summarize(self, *, limit: int = 1000) -> DeadLetterSummary:
        """Returns the queues of dead letters and the dead runs, oldest event first.

        Messages are counted by SQS and not received, since receiving would hide them. At most
        `limit` dead runs are read.

        Raises:
            Unavailable: SQS failed, or refused the call.
        """
        target, now, manifest = self._scope.target, self._scope.clock.now(), self._scope.manifest
        try:
            messages = count_messages(target.client("sqs"), target.dlq_urls)
        except Unavailable as error:
            error.args = (f"the dead-letter queues cannot be read: {error.__cause__ or error}",)
            raise
        runs = self._dead_runs(limit + 1)
        complete, runs = len(runs) <= limit, runs[:limit]
        deaths: Mapping[str, list[datetime]] = {lane: [] for lane in messages}
        for run, received_at in runs:
            lane = manifest.lane_of(run.handler)
            if lane in deaths:
                deaths[lane].append(run.dead_at or received_at)
        lanes = [
            DeadLetterLane(
                lane=lane,
                messages=number,
                oldest=now - min(deaths[lane]) if deaths[lane] else None,
                dead_runs=len(deaths[lane]),
                is_complete=complete,
                serial=lane in manifest.serial_lanes,
            )
            for lane, number in messages.items()
        ]
        return DeadLetterSummary(lanes, _causes(runs))

    def count_runs(self) -> DeadRunCount:
        """Counts the dead runs in the due index, at most a page of each of its partitions."""
        ledger = self._scope.ledger()
        with ThreadPoolExecutor(WORKERS) as pool:
            read = partial(ledger.due_page, low=DEAD_FROM)
            pages = list(pool.map(read, ledger.due_buckets([WATCH])))
        complete = not self._scope.is_cut and not any(page.next for page in pages)
        return DeadRunCount(sum(len(page.items) for page in pages), complete)

    def _dead_runs(self, limit: int) -> list[tuple[Run, datetime]]:
        """Returns the dead runs with the time at which their event was received, to the second."""
        found = (
            (run, from_ms(entry.due_at - DEAD_FROM) - RUN_LIFE)
            for entry, run in self._scope.ledger().dead_runs()
            if run is not None
        )
        return list(islice(found, limit))


def _causes(runs: Sequence[tuple[Run, datetime]]) -> list[DeadRunCause]:
    groups: dict[tuple[str, str], list[datetime]] = {}
    for run, received_at in runs:
        groups.setdefault((run.handler, _error_of(run)), []).append(received_at)
    causes = [DeadRunCause(*names, len(times), min(times)) for names, times in groups.items()]
    return sorted(causes, key=lambda cause: (-cause.runs, cause.handler, cause.error))


def _error_of(run: Run) -> str:
    """Returns the error's class, message and line, as a group of `client.failures` has them."""
    cause = cause_of(run)
    kind = cause.error_class if cause.error_class not in cause.message else ""
    place = cause.error_line and f"({cause.error_line})"
    what = ": ".join(filter(None, (kind, cause.message)))
    return cut(" ".join(filter(None, (what, place))), ERROR_SHOWN)
