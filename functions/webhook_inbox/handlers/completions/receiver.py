"""Receives the end of a job and resumes the run that waits for it.

    POST /completions/{token}    {"result": …}  or  {"error": "…", "retry": true}

The first end recorded is final. An end that arrives after its run stopped waiting is recorded for a
replay and answered 410.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from webhook_inbox.domain.audit import Actor, AuditedAction, EventName
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import SETTLED, Run, Status
from webhook_inbox.domain.ports import Ports
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
    """The outcome of a completion; the answer's status."""

    RECORDED = "recorded"  # the end is recorded, and the run is sent
    REPEATED = "repeated"  # the same end was recorded before; the run is sent if it still waits
    LATE = "late"  # recorded after the run stopped waiting
    OVER = "over"  # for a job that failed, with another one started since
    CONFLICT = "conflict"  # the job has ended otherwise
    UNKNOWN = "unknown"  # no such token, or no such wait
    MALFORMED = "malformed"  # neither a result nor an error
    TOO_LARGE = "too-large"
    UNAVAILABLE = "unavailable"  # the ledger or the queue failed; the caller may send it again
    BROKEN = "broken"  # a fault in the inbox


@dataclass(frozen=True, slots=True)
class CompletionReceipt:
    """The outcome of a completion, and why. Contains no token."""

    outcome: CompletionOutcome
    detail: str = ""
    place: WaitAddress | None = None


class Completions:
    """Records the ends of jobs."""

    def __init__(self, manifest: Manifest, ports: Ports) -> None:
        self._manifest = manifest
        self._table = ports.table
        self._waits = Waits(ports.table)
        self._lanes = Lanes(ports.queues)
        self._clock = ports.clock
        self._randomness = ports.randomness

    def by_token(self, token: str, body: bytes) -> CompletionReceipt:
        """Handles a completion request; returns an outcome for any input."""
        try:
            return self._by_token(token, body)
        except TooLarge as error:
            return CompletionReceipt(CompletionOutcome.TOO_LARGE, str(error))
        except Unreadable as error:
            return CompletionReceipt(CompletionOutcome.MALFORMED, str(error))
        except Unavailable as error:
            return CompletionReceipt(CompletionOutcome.UNAVAILABLE, str(error))
        except Exception as error:  # noqa: BLE001 - a fault in the inbox: the caller may repeat it
            # Loaded with the first fault.
            from webhook_inbox.domain.error_text import traceback_text  # noqa: PLC0415

            told = traceback_text(error).replace(token, "[token]")
            return CompletionReceipt(CompletionOutcome.BROKEN, told)

    def by_name(self, place: WaitAddress, ending: Ending, *, by: Actor) -> CompletionReceipt:
        """Completes the newest job of a name for an operator.

        Raises:
            Unavailable: the ledger or the queue failed; the call may be repeated.
        """
        now, run = self._clock.now(), self._run(place)
        wait = self._waits.newest(place, now, key_version=run.key_version if run else 0)
        if wait is None:
            why = f"{place.handler} has never waited for {place.name}"
            return CompletionReceipt(CompletionOutcome.UNKNOWN, why, place)
        recorded = audit.record(
            self._table,
            self._randomness,
            action=AuditedAction.COMPLETE,
            by=by,
            reason=ending.error,
            request={"source": place.source, "handler": place.handler, "effect": place.name},
            event=EventName(place.source, place.event_id),
            now=now,
        )
        receipt = self._take(wait, ending, f"{BY_HAND}: {by}")
        recorded.conclude({receipt.outcome: 1})
        return receipt

    def _by_token(self, token: str, body: bytes) -> CompletionReceipt:
        place, now = place_of(token), self._clock.now()
        wait = None if place is None else self._waits.find(place, now)
        if wait is None or not is_one_of(token, wait.row["tokens"]):
            why = "no such token, or its event has expired"
            return CompletionReceipt(CompletionOutcome.UNKNOWN, why)
        # Parsed after the token is verified: 256 KB of JSON can take 70 ms. A token that the caller
        # repeats in the body is not recorded (G10).
        ending = read(body.replace(token.encode(), b"[token]"))
        if wait.failed and self._waits.find(wait.place.next, now):
            why = "this job has failed, and another one was started"
            return CompletionReceipt(CompletionOutcome.OVER, why, wait.place)
        return self._take(wait, ending, BY_TOKEN)

    def _take(self, wait: CompletionWait, ending: Ending, by: str) -> CompletionReceipt:
        now, known = self._clock.now(), wait.digest
        if not known:
            late = wait.state is WaitState.EXPIRED or _is_over(self._run(wait.place))
            wait = self._waits.end(wait, ending, now=now, by=by, late=late)
        if wait.digest != ending.digest:
            return self._refused(wait)
        if wait.late:
            why = "its run no longer waits; the end is recorded, and a replay uses it"
            return CompletionReceipt(CompletionOutcome.LATE, why, wait.place)
        # Reads the run after the write: a run that is settled later checks the wait itself.
        self._wake(self._run(wait.place), wait, now)
        return CompletionReceipt(
            CompletionOutcome.REPEATED if known else CompletionOutcome.RECORDED, place=wait.place
        )

    def _refused(self, wait: CompletionWait) -> CompletionReceipt:
        if wait.digest:
            ended = WaitState.FAILED if wait.state is WaitState.AGAIN else wait.state
            why = f"the job has {ended} with a different end"
            return CompletionReceipt(CompletionOutcome.CONFLICT, why, wait.place)
        # The state changed since it was read: a repeated call decides by the new one.
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
