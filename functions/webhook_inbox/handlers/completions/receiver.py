"""Completions: whoever was given a job tells what came of it, and its run goes on.

    POST /completions/{token}    {"result": …}  or  {"error": "…", "retry": true}

The first end counts. What comes when nobody waits any more is recorded all the same, since it is
a fact that a replay is to find, and answered 410.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from traceback import format_exception

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import SETTLED, Run, Status
from webhook_inbox.domain.ports import Clock, Randomness, Table
from webhook_inbox.handlers.completions.journal import CompletionWait, Waits, WaitState
from webhook_inbox.handlers.completions.results import Ending, TooLarge, Unreadable, read
from webhook_inbox.handlers.completions.resume import wake_waiting
from webhook_inbox.handlers.completions.tokens import WaitAddress, is_one_of, place_of
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.schema import run_from, run_key
from webhook_inbox.queue.lanes import Lanes

BY_TOKEN = "token"  # noqa: S105 - who says so
BY_HAND = "hand"


class CompletionOutcome(StrEnum):
    """What became of a completion; the value is the metric's dimension."""

    RECORDED = "recorded"  # the job's end, and its run was sent
    REPEATED = "repeated"  # known already: its run is sent again if it needs to be
    LATE = "late"  # recorded, and nobody waits any more
    OVER = "over"  # of a job that failed before, and was started anew
    CONFLICT = "conflict"  # the job has ended otherwise
    UNKNOWN = "unknown"  # no such token, or no such wait
    MALFORMED = "malformed"  # says nothing of a job's end
    TOO_LARGE = "too-large"
    UNAVAILABLE = "unavailable"  # the ledger or the queue failed: sent again, it is repeated
    BROKEN = "broken"  # our own fault


@dataclass(frozen=True, slots=True)
class CompletionReceipt:
    """What became of a completion, and why. Holds no token."""

    outcome: CompletionOutcome
    detail: str = ""
    place: WaitAddress | None = None


class Completions:
    """The completing use case."""

    def __init__(self, *, manifest: Manifest, table: Table, lanes: Lanes, clock: Clock) -> None:
        self._manifest = manifest
        self._table = table
        self._waits = Waits(table)
        self._lanes = lanes
        self._clock = clock

    def by_token(self, token: str, body: bytes) -> CompletionReceipt:
        """Takes what a job's token came with. Never raises for any input."""
        try:
            return self._by_token(token, body)
        except TooLarge as error:
            return CompletionReceipt(CompletionOutcome.TOO_LARGE, str(error))
        except Unreadable as error:
            return CompletionReceipt(CompletionOutcome.MALFORMED, str(error))
        except Unavailable as error:
            return CompletionReceipt(CompletionOutcome.UNAVAILABLE, str(error))
        except Exception as error:  # noqa: BLE001 - our own fault: it may be sent again
            told = "".join(format_exception(error)).replace(token, "[token]")
            return CompletionReceipt(CompletionOutcome.BROKEN, told)

    def by_name(
        self, place: WaitAddress, ending: Ending, *, by: str, randomness: Randomness
    ) -> CompletionReceipt:
        """Takes what a person says of a job.

        Raises:
            Unavailable: the ledger or the queue failed; it can be said again.
        """
        now = self._clock.now()
        wait = self._waits.find(place, now)
        if wait is None:
            why = f"{place.handler} has never waited for {place.name}"
            return CompletionReceipt(CompletionOutcome.UNKNOWN, why, place)
        audit.record(
            self._table,
            randomness,
            action="complete",
            by=by,
            reason=ending.error,
            request={"source": place.source, "handler": place.handler, "effect": place.name},
            event_ids=(place.event_id,),
            now=now,
        )
        return self._take(wait, ending, f"{BY_HAND}: {by}")

    def _by_token(self, token: str, body: bytes) -> CompletionReceipt:
        # Whoever repeats its token in the result or the error has it kept nowhere (G10).
        ending = read(body.replace(token.encode(errors="replace") or b"\0", b"[token]"))
        unknown = CompletionReceipt(
            CompletionOutcome.UNKNOWN, "no such token, or its event has expired"
        )
        place = place_of(token)
        wait = None if place is None else self._waits.find(place, self._clock.now())
        if wait is None:
            return unknown
        if is_one_of(token, wait.row["tokens"]):
            return self._take(wait, ending, BY_TOKEN)
        if is_one_of(token, wait.row.get("past", ())):
            return CompletionReceipt(
                CompletionOutcome.OVER, "this job has failed and was started anew", place
            )
        return unknown

    def _take(self, wait: CompletionWait, ending: Ending, by: str) -> CompletionReceipt:
        now, known = self._clock.now(), wait.digest
        if not known:
            late = wait.state is WaitState.EXPIRED or _is_over(self._run(wait.place))
            wait = self._waits.end(wait, ending, now=now, by=by, late=late)
        if wait.digest != ending.digest:
            return self._refused(wait)
        if wait.late:
            why = "nobody waits for it any more; it is kept, and a replay finds it"
            return CompletionReceipt(CompletionOutcome.LATE, why, wait.place)
        # Read once it is recorded: who is settled later than this looks at the wait by itself.
        self._wake(self._run(wait.place), wait, now)
        return CompletionReceipt(
            CompletionOutcome.REPEATED if known else CompletionOutcome.RECORDED, place=wait.place
        )

    def _refused(self, wait: CompletionWait) -> CompletionReceipt:
        if wait.digest:
            ended = WaitState.FAILED if wait.state is WaitState.AGAIN else wait.state
            why = f"the job has {ended}, otherwise than this says"
            return CompletionReceipt(CompletionOutcome.CONFLICT, why, wait.place)
        # Its state has changed since it was read: what is said again is judged by what is there.
        raise Unavailable("ledger", "complete", "the wait has just changed")

    def _wake(self, run: Run | None, wait: CompletionWait, now: datetime) -> None:
        if run is not None:
            lane = self._manifest.lane_of(run.handler)
            wake_waiting(self._table, self._lanes, run, wait, lane=lane, now=now)

    def _run(self, place: WaitAddress) -> Run | None:
        row = self._table.get(run_key(place.source, place.event_id, place.handler))
        return None if row is None else run_from(row)


def _is_over(run: Run | None) -> bool:
    return run is None or run.status in {*SETTLED, Status.DEAD_LETTER}
