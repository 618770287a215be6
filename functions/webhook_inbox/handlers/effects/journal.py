"""An effect's row: its start, its commit, its failure, each one conditional write.

    (no row) ──► started ──► committed     final: the first commit wins, whoever makes it
                   │  ▲ └──► failed        certain that nothing was done
                   ▼  │
    in doubt: started by an attempt that is over. Started anew where the policy says so.

A start is refused to an attempt that a later one has overtaken: `fence` counts the claims of a
run and never goes back. A commit is not, since what has happened is a fact.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.domain.conditions import Absent, Condition, Equals, OneOf, either, every
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.handlers.effects.plan import Plan
from webhook_inbox.ledger.schema import EFFECT_LIFE, absent, effect_key, live, shared_effect_key

ERROR_LIMIT: Final = 512
A_DAY: Final = 86_400


class EffectState(StrEnum):
    """Where an effect stands."""

    STARTED = "started"  # under way, or in doubt once its attempt is over
    COMMITTED = "committed"  # it happened, once
    FAILED = "failed"  # it is certain that it did not happen


@dataclass(frozen=True, slots=True)
class Entry:
    """An effect's row as it was found."""

    row: Item

    @property
    def state(self) -> EffectState:
        """Where it stands."""
        return EffectState(self.row["status"])

    @property
    def unrecorded(self) -> str:
        """Why a committed effect has no result, "" where it has one."""
        why: str = self.row.get("unrecorded", "")
        return why

    @property
    def doubtful_since(self) -> datetime:
        """When the first of its starts was made of which nobody knows what came of it."""
        return from_ms(self.row["doubtful_since"])

    @property
    def busy_until(self) -> datetime:
        """When the attempt that started it is over at the latest."""
        return from_ms(self.row["busy_until"])


class EffectJournal:
    """Writes the effects of one attempt."""

    def __init__(self, table: Table, run: Run, *, received_at: datetime) -> None:
        self._table = table
        self._run = run
        self._expires_at = to_seconds(received_at + EFFECT_LIFE)

    def find(self, plan: Plan, now: datetime) -> Entry | None:
        """Returns the effect's row, None where it never started."""
        row = live(self._table.get(self._key(plan)), now)
        return Entry(row) if row and "status" in row else None

    def start(self, plan: Plan, now: datetime) -> Entry | None:
        """Starts an effect; returns the row that is in the way, None where it is started.

        Raises:
            Unavailable: the table failed; it may be started, and is then in doubt.
        """
        if plan.shared:
            self._refer(plan)
        entry = self._starting(plan, now, doubtful_since=now)
        # TTL deletes days late: what it leaves of an expired row is not this effect's. Nor is a
        # row that led to a business key which the handler does not give any more.
        return self._write(plan, entry, either(absent(now), Absent("status")))

    def start_again(self, plan: Plan, old: Entry, now: datetime, *, doubtful: bool) -> Entry | None:
        """Starts an effect that was started before, unless it has moved on since.

        Args:
            plan: the effect.
            old: as it was seen.
            now: the time.
            doubtful: whether nobody knows what came of the earlier start.
        """
        since = old.doubtful_since if doubtful else now
        entry = self._starting(plan, now, doubtful_since=since)
        seen = every(
            Equals("status", old.row["status"]),
            Equals("lease_id", old.row["lease_id"]),
        )
        return self._write(plan, entry, seen)

    def commit(self, plan: Plan, result: bytes, now: datetime, **more: Any) -> Entry | None:
        """Records that the effect happened; returns an earlier commit, None where this is it.

        `more` are further attributes: why a result is not recorded, or who says that it happened.
        """
        entry = {
            **self._named(plan),
            "status": str(EffectState.COMMITTED),
            "committed_at": to_ms(now),
            "committed_by": self._run.lease_id,
            "result": result,
            **more,
        }
        unsettled = OneOf("status", (str(EffectState.STARTED), str(EffectState.FAILED)))
        change = Change(set=entry, remove=("error", "failed_at", "busy_until"))
        try:
            self._table.update(self._key(plan), change, when=either(Absent("pk"), unsettled))
        except ConditionFailed as error:
            old = Entry(error.old or {})
            return None if old.row.get("committed_by") == self._run.lease_id else old
        return None

    def fail(self, plan: Plan, why: str, now: datetime) -> None:
        """Records that the effect of this attempt certainly did not happen."""
        ours = every(
            Equals("status", str(EffectState.STARTED)), Equals("lease_id", self._run.lease_id)
        )
        change = Change(
            set={
                "status": str(EffectState.FAILED),
                "failed_at": to_ms(now),
                "error": why[:ERROR_LIMIT],
            },
            remove=("busy_until",),
        )
        try:
            self._table.update(self._key(plan), change, when=ours)
        except ConditionFailed:
            return  # Overtaken, or its own earlier try: nothing is left to say.

    def prolong(self, plan: Plan, entry: Entry) -> None:
        """Lets a shared effect live as long as the last event that needed it."""
        if plan.shared and entry.row["expires_at"] < self._expires_at - A_DAY:
            change = Change(set={"expires_at": self._expires_at})
            self._table.update(self._key(plan), change)

    def is_ours(self, entry: Entry) -> bool:
        """Tells whether the row belongs to this run, in whatever attempt."""
        return all(entry.row.get(name) == value for name, value in self._identity().items())

    def is_overtaken(self, entry: Entry) -> bool:
        """Tells whether a later attempt of this run has started it."""
        return self.is_ours(entry) and entry.row["fence"] > self._run.claims

    # -- the row

    def _write(self, plan: Plan, entry: Mapping[str, Any], when: Condition) -> Entry | None:
        change = Change(set=entry, remove=_LEFT_BEHIND)
        try:
            self._table.update(self._key(plan), change, when=when)
        except ConditionFailed as error:
            old = error.old or {}
            # A name is used once an attempt: the lease tells that this is our own earlier try.
            started = old.get("status") == EffectState.STARTED
            ours = started and old.get("lease_id") == self._run.lease_id
            return None if ours else Entry(old)
        return None

    def _starting(self, plan: Plan, now: datetime, *, doubtful_since: datetime) -> dict[str, Any]:
        until = self._run.claimed_until or now
        return {
            **self._named(plan),
            **self._identity(),
            "status": str(EffectState.STARTED),
            "fence": self._run.claims,
            "attempt": self._run.attempt_count,
            "lease_id": self._run.lease_id,
            "started_at": to_ms(now),
            "doubtful_since": to_ms(doubtful_since),
            "busy_until": to_ms(until),
            "arguments": plan.arguments,
            "in_doubt": str(plan.in_doubt),
            "key_lifetime": int(plan.key_lifetime.total_seconds()),
        }

    def _named(self, plan: Plan) -> dict[str, Any]:
        return {
            "name": plan.name,
            "idempotency_key": str(plan.key),
            "expires_at": self._expires_at,
        }

    def _identity(self) -> dict[str, str]:
        run = self._run
        return {"source": run.source, "event_id": run.event_id, "handler": run.handler}

    def _refer(self, plan: Plan) -> None:
        """Leaves a row in the event's partition that leads to the shared one."""
        key = effect_key(self._run.source, self._run.event_id, self._run.handler, plan.name)
        shared = self._key(plan)
        values = {"name": plan.name, "shared": shared.pk, "expires_at": self._expires_at}
        self._table.update(key, Change(set=values))

    def _key(self, plan: Plan) -> Key:
        if plan.shared:
            return shared_effect_key(plan.name, plan.shared)
        return effect_key(self._run.source, self._run.event_id, self._run.handler, plan.name)


# Of an earlier start that failed, or of an expired row.
_LEFT_BEHIND: Final = (
    "failed_at",
    "error",
    "committed_at",
    "committed_by",
    "result",
    "unrecorded",
    "found_by",
    "shared",
)
