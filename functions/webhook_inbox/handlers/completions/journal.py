"""The row of a wait, one per job; each change is one conditional write.

    (no row) ──► waiting ──► completed     final
                  │  ▲  └──► failed ──► again      final: a later attempt starts the next job
                  ▼  │
                 expired ──► completed     a replay uses a result that arrived late,
                                           or waits for the same job again

The first job of a wait has the row `wait#{handler}#{name}`, a later one `wait#{handler}#{name}:2`,
as the effects that start them. The row exists before its job starts, because a job may end before
its start is recorded. The first end recorded is final: the handler may have acted on it.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from webhook_inbox.domain.conditions import Absent, Condition, Equals, every
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Change, Item, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.handlers.completions.results import Ending
from webhook_inbox.handlers.completions.tokens import WaitAddress, hashed
from webhook_inbox.handlers.effects.journal import decode
from webhook_inbox.ledger.schema import EFFECT_LIFE, absent, live


class WaitState(StrEnum):
    """The state of a wait."""

    WAITING = "waiting"  # the job runs, or has not started
    COMPLETED = "completed"  # the job returned a result
    FAILED = "failed"  # the job reported an error
    AGAIN = "again"  # failed, and the next attempt starts another job
    EXPIRED = "expired"  # the timeout passed without an end


@dataclass(frozen=True, slots=True)
class CompletionWait:
    """A wait as it was read."""

    place: WaitAddress
    row: Item

    @property
    def state(self) -> WaitState:
        """Its state."""
        return WaitState(self.row["status"])

    @property
    def since(self) -> datetime:
        """When the job last started, or when the wait began."""
        return from_ms(self.row["since"])

    @property
    def until(self) -> datetime:
        """When the wait expires."""
        return from_ms(self.row["until"])

    @property
    def ended_at(self) -> datetime | None:
        """When the job's end was recorded."""
        return from_ms(self.row["ended_at"]) if "ended_at" in self.row else None

    @property
    def result(self) -> Any:
        """The job's result."""
        return decode(self.row["result"])

    @property
    def failed(self) -> bool:
        """True if the job reported an error, in time or late."""
        return "error" in self.row

    @property
    def error(self) -> str:
        """The job's error."""
        error: str = self.row.get("error", "")
        return error

    @property
    def retry(self) -> bool:
        """True if another job may be started."""
        return self.row.get("retry") is True

    @property
    def digest(self) -> str:
        """The fingerprint of the job's end, "" before it ended."""
        digest: str = self.row.get("digest", "")
        return digest

    @property
    def key_version(self) -> int:
        """The key version of the run that began it."""
        version: int = self.row.get("key_version", 0)
        return version

    @property
    def late(self) -> bool:
        """True if the job ended after its run stopped waiting."""
        return self.row.get("late") is True


class Waits:
    """Reads and changes the rows. Every method raises Unavailable if the table fails."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def find(self, place: WaitAddress, now: datetime) -> CompletionWait | None:
        """Returns the wait for one job, or None."""
        row = live(self._table.get(place.key), now)
        if row is None:
            return None
        return CompletionWait(replace(place, name=row["name"], number=row["number"]), row)

    def newest(
        self, place: WaitAddress, now: datetime, *, key_version: int
    ) -> CompletionWait | None:
        """Returns the wait for the newest job of a name, or None.

        Only a failed job has a next one, and one under an earlier key version.
        """
        wait = later = self.find(place, now)
        # A handler may name another wait like the next job: "job:2".
        while later is not None and later.row["name"] == place.name:
            wait = later
            has_next = wait.failed or wait.key_version < key_version
            later = self.find(wait.place.next, now) if has_next else None
        return wait

    def begin(
        self,
        place: WaitAddress,
        token: str,
        *,
        now: datetime,
        until: datetime,
        received_at: datetime,
        key_version: int,
    ) -> CompletionWait:
        """Begins the wait for a job; returns it, or the row that another worker wrote first."""
        row = {
            "pk": place.key.pk,
            "sk": place.key.sk,
            "name": place.name,
            "handler": place.handler,
            "status": str(WaitState.WAITING),
            "number": place.number,
            "tokens": [hashed(token)],
            "since": to_ms(now),
            "until": to_ms(until),
            "expires_at": to_seconds(received_at + EFFECT_LIFE),
            **({"key_version": key_version} if key_version else {}),
        }
        try:
            self._table.put(row, when=absent(now))
        except ConditionFailed as error:
            return _present(place, error)
        return CompletionWait(place, row)

    def prolong(self, wait: CompletionWait, *, now: datetime, until: datetime) -> CompletionWait:
        """Extends the wait for the same job, unless the job has ended."""
        values = {"status": str(WaitState.WAITING), "since": to_ms(now), "until": to_ms(until)}
        return self._change(wait, values, _unended(wait))

    def admit(self, wait: CompletionWait, token: str) -> CompletionWait:
        """Accepts a second token for the same job, signed with a rotated key."""
        return self._change(wait, {"tokens": [*wait.row["tokens"], hashed(token)]}, _seen(wait))

    def end(
        self, wait: CompletionWait, ending: Ending, *, now: datetime, by: str, late: bool = False
    ) -> CompletionWait:
        """Records a job's end and returns the wait as it is now; the first end recorded is kept.

        Args:
            wait: as it was read, waiting or expired.
            ending: the result or error.
            now: the time.
            by: who reported it.
            late: whether the run no longer waits.
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
        return self._change(wait, values, _unended(wait))

    def expire(self, wait: CompletionWait) -> CompletionWait:
        """Ends the wait at its timeout, unless the job has ended."""
        return self._change(wait, {"status": str(WaitState.EXPIRED)}, _seen(wait))

    def accept(self, wait: CompletionWait) -> CompletionWait:
        """Turns a late result into the result of the wait."""
        return self._change(wait, {"status": str(WaitState.COMPLETED)}, _seen(wait))

    def let_go(self, wait: CompletionWait) -> CompletionWait:
        """Lets the next attempt start another job."""
        return self._change(wait, {"status": str(WaitState.AGAIN)}, _seen(wait))

    def _change(
        self, wait: CompletionWait, values: dict[str, Any], when: Condition
    ) -> CompletionWait:
        """Changes a row and returns it, or the row as another worker has changed it."""
        try:
            row = self._table.update(wait.place.key, Change(set=values), when=when)
        except ConditionFailed as error:
            return _present(wait.place, error)
        return CompletionWait(wait.place, row)


def _present(place: WaitAddress, error: ConditionFailed) -> CompletionWait:
    # Also the row that an earlier try of the same call wrote, whose answer was lost.
    if error.old is None:
        raise Unavailable("ledger", "wait", "it has just expired") from error
    return CompletionWait(place, error.old)


def _seen(wait: CompletionWait) -> Condition:
    return Equals("status", wait.row["status"])


def _unended(wait: CompletionWait) -> Condition:
    return every(_seen(wait), Absent("digest"))
