"""The row of a wait: each change of it is one conditional write.

    (no row) ──► waiting ──► completed             final
                  │  ▲  └──► failed ──► again      the next attempt starts another job
                  │  │         └──────► waiting    so does a replay of a run that died of it
                  ▼  │
                 expired ──► completed             a replay finds what came late,
                                                   or waits for the same job again

It is there before the job is started, which may end before its start is recorded. Within a round
of attempts an end stays what it is: the handler may have acted on it.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.domain.conditions import Absent, Condition, Equals, every
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Change, Item, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.handlers.completions.results import Ending
from webhook_inbox.handlers.completions.tokens import WaitAddress, hashed
from webhook_inbox.handlers.effects.results import decode
from webhook_inbox.ledger.schema import EFFECT_LIFE, absent, live


class WaitState(StrEnum):
    """Where a wait stands."""

    WAITING = "waiting"  # for the job, or for its start
    COMPLETED = "completed"  # it has a result
    FAILED = "failed"  # the job said so
    AGAIN = "again"  # it failed, the run was told, and its next attempt starts another job
    EXPIRED = "expired"  # nobody said anything in time


@dataclass(frozen=True, slots=True)
class CompletionWait:
    """A wait as it was found."""

    place: WaitAddress
    row: Item

    @property
    def state(self) -> WaitState:
        """Where it stands."""
        return WaitState(self.row["status"])

    @property
    def number(self) -> int:
        """Which job it is for, from 1."""
        number: int = self.row["number"]
        return number

    @property
    def effect(self) -> str:
        """The name of the effect that starts the job."""
        return self.place.name if self.number == 1 else f"{self.place.name}:{self.number}"

    @property
    def since(self) -> datetime:
        """When the job was started last, or its wait begun."""
        return from_ms(self.row["since"])

    @property
    def until(self) -> datetime:
        """How long it is waited for."""
        return from_ms(self.row["until"])

    @property
    def ended_at(self) -> datetime | None:
        """When it was said what came of the job."""
        return from_ms(self.row["ended_at"]) if "ended_at" in self.row else None

    @property
    def result(self) -> Any:
        """What the job returned."""
        return decode(self.row["result"])

    @property
    def error(self) -> str:
        """Why the job failed."""
        error: str = self.row.get("error", "")
        return error

    @property
    def retry(self) -> bool:
        """Whether another job may be started."""
        return self.row.get("retry") is True

    @property
    def digest(self) -> str:
        """What tells the job's end from any other, "" while there is none."""
        digest: str = self.row.get("digest", "")
        return digest

    @property
    def late(self) -> bool:
        """Whether it ended when nobody waited any more."""
        return self.row.get("late") is True


class Waits:
    """Reads and changes the rows. Every method raises Unavailable where the table fails."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def find(self, place: WaitAddress, now: datetime) -> CompletionWait | None:
        """Returns a wait, None where there is none."""
        row = live(self._table.get(place.key), now)
        return None if row is None else CompletionWait(place, row)

    def begin(
        self,
        place: WaitAddress,
        token: str,
        *,
        now: datetime,
        until: datetime,
        received_at: datetime,
    ) -> CompletionWait:
        """Begins a wait and returns it, or what somebody else has begun."""
        values = {
            "name": place.name,
            "handler": place.handler,
            "status": str(WaitState.WAITING),
            "number": 1,
            "tokens": [hashed(token)],
            "since": to_ms(now),
            "until": to_ms(until),
            "expires_at": to_seconds(received_at + EFFECT_LIFE),
        }
        return self._change(place, Change(set=values, remove=_OF_AN_END), absent(now))

    def begin_anew(
        self, wait: CompletionWait, token: str, *, now: datetime, until: datetime
    ) -> CompletionWait:
        """Waits for another job, since this one failed; its token is of no use any more."""
        values = {
            "status": str(WaitState.WAITING),
            "number": wait.number + 1,
            "tokens": [hashed(token)],
            "past": [*wait.row.get("past", ()), *wait.row["tokens"]],
            "since": to_ms(now),
            "until": to_ms(until),
        }
        return self._change(wait.place, Change(set=values, remove=_OF_AN_END), _seen(wait))

    def prolong(self, wait: CompletionWait, *, now: datetime, until: datetime) -> CompletionWait:
        """Waits longer for the same job, unless that has ended."""
        values = {"status": str(WaitState.WAITING), "since": to_ms(now), "until": to_ms(until)}
        return self._change(wait.place, Change(set=values), _unended(wait))

    def admit(self, wait: CompletionWait, token: str) -> CompletionWait:
        """Lets a second token complete the same job, made with a key that was rotated."""
        values = {"tokens": [*wait.row["tokens"], hashed(token)]}
        return self._change(wait.place, Change(set=values), _seen(wait))

    def end(
        self, wait: CompletionWait, ending: Ending, *, now: datetime, by: str, late: bool = False
    ) -> CompletionWait:
        """Records a job's end, and returns the wait as it is then: the first end counts.

        Args:
            wait: as it was found, waiting or expired.
            ending: what came of the job.
            now: the time.
            by: who says so.
            late: whether nobody waits any more.
        """
        state = WaitState.COMPLETED if ending.result is not None else WaitState.FAILED
        values: dict[str, Any] = {
            "status": str(WaitState.EXPIRED if wait.state is WaitState.EXPIRED else state),
            "digest": ending.digest,
            "ended_at": to_ms(now),
            "ended_by": by,
        }
        if ending.result is not None:
            values["result"] = ending.result
        else:
            values |= {"error": ending.error, "retry": ending.retry}
        if late:
            values["late"] = True
        return self._change(wait.place, Change(set=values), _unended(wait))

    def expire(self, wait: CompletionWait) -> CompletionWait:
        """Gives up waiting, unless the job has ended meanwhile."""
        change = Change(set={"status": str(WaitState.EXPIRED)})
        return self._change(wait.place, change, _seen(wait))

    def accept(self, wait: CompletionWait) -> CompletionWait:
        """Lets a result count that came late."""
        return self._change(
            wait.place, Change(set={"status": str(WaitState.COMPLETED)}), _seen(wait)
        )

    def let_go(self, wait: CompletionWait) -> CompletionWait:
        """Lets the next attempt start another job."""
        return self._change(wait.place, Change(set={"status": str(WaitState.AGAIN)}), _seen(wait))

    def _change(self, place: WaitAddress, change: Change, when: Condition) -> CompletionWait:
        """Changes a row and returns it, or as it is where somebody was faster."""
        try:
            return CompletionWait(place, self._table.update(place.key, change, when=when))
        except ConditionFailed as error:
            # Our own earlier try, too, whose answer was lost: what it wrote is what is there.
            if error.old is None:
                raise Unavailable("ledger", "wait", "it has just expired") from error
            return CompletionWait(place, error.old)


def _seen(wait: CompletionWait) -> Condition:
    return every(Equals("status", wait.row["status"]), Equals("number", wait.number))


def _unended(wait: CompletionWait) -> Condition:
    return every(_seen(wait), Absent("digest"))


# Of a job before, or of an expired row.
_OF_AN_END: Final = (
    "result",
    "error",
    "retry",
    "digest",
    "ended_at",
    "ended_by",
    "late",
)
