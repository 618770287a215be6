"""An effect's row: its start, its commit, its failure, each one conditional write.

    (no row) ──► started ──► committed     final: the first commit wins
                   │  ▲ └──► failed        certain that nothing was done, by this or any other start
                   ▼  │
    in doubt: started by an attempt that is over; started again if the policy permits

A doubt ends by a commit, or by a start after a probe or a person said that it did not happen. No
error ends it: an error shows what became of one call, and an earlier one may have been executed.
`doubtful_since` is the time of the first start in doubt and survives later starts.

A start by an attempt that a later one has superseded is rejected: `fence` is the lease count of the
run and only grows. A commit is always accepted, because the effect has happened.
"""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.domain.conditions import Absent, Condition, Equals, OneOf, either, every
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.personal import ERASED
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.domain.secrets import redacted
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.handlers.effects.plan import InDoubt, Plan, plain
from webhook_inbox.ledger.schema import (
    EFFECT_LIFE,
    absent,
    effect_key,
    event_key,
    live,
    shared_effect_key,
    transition,
)

# An item holds 400 KB, and its other attributes are small. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
RESULT_LIMIT: Final = 300 * 1024


class Unstorable(ValueError):
    """The result is not JSON, or exceeds 300 KB."""


def encode(result: Any, *, redact: Callable[[str], str] = str) -> bytes:
    """Encodes a result for storage, with secrets removed (G10).

    Raises:
        Unstorable: the result is not JSON, or exceeds 300 KB.
    """
    try:
        text = _json(result)
        if redact(text) != text:
            text = _json(redacted(json.loads(text), redact))
        data = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Unstorable(f"its result is not JSON: {error}") from error
    if len(data) > RESULT_LIMIT:
        size = -(-len(data) // 1024)
        raise Unstorable(f"its result has {size} KB; the limit is 300 KB")
    return zlib.compress(data)


def decode(stored: bytes) -> Any:
    """Decodes a stored result."""
    return json.loads(zlib.decompress(stored))


def _json(data: Any) -> str:
    return json.dumps(data, default=plain, ensure_ascii=False, separators=(",", ":"))


ERROR_LIMIT: Final = 512
A_DAY: Final = 86_400


class EffectState(StrEnum):
    """The state of an effect."""

    STARTED = "started"  # running, or in doubt once its attempt is over
    COMMITTED = "committed"  # it happened
    FAILED = "failed"  # it certainly did not happen, in any attempt


@dataclass(frozen=True, slots=True)
class Entry:
    """An effect's row as it was read."""

    row: Item

    @property
    def state(self) -> EffectState:
        """Its state."""
        return EffectState(self.row["status"])

    @property
    def unrecorded(self) -> str:
        """Why a committed effect has no result, "" if it has one."""
        why: str = self.row.get("unrecorded", "")
        return why

    @property
    def doubtful_since(self) -> datetime:
        """The time of its first start with an unknown outcome."""
        return from_ms(self.row["doubtful_since"])

    @property
    def in_doubt(self) -> InDoubt:
        """The policy of the starts whose outcome is unknown."""
        return InDoubt(self.row["in_doubt"])

    @property
    def key_lifetime(self) -> timedelta:
        """The shortest key lifetime of these starts."""
        return timedelta(seconds=int(self.row["key_lifetime"]))

    @property
    def busy_until(self) -> datetime:
        """The latest end of the attempt that started it."""
        return from_ms(self.row["busy_until"])


class EffectJournal:
    """Writes the effects of one attempt."""

    def __init__(self, table: Table, run: Run, *, received_at: datetime) -> None:
        self._table = table
        self._run = run
        self._expires_at = to_seconds(received_at + EFFECT_LIFE)

    def find(self, plan: Plan, now: datetime) -> Entry | None:
        """Returns the effect's row, None if it never started."""
        row = live(self._table.get(self._key(plan)), now)
        return Entry(row) if row and "status" in row else None

    def start(self, plan: Plan, now: datetime) -> Entry | None:
        """Starts an effect; returns None, or the row that prevents the start.

        Raises:
            Unavailable: the table failed; it may be started, and is then in doubt.
        """
        if plan.shared:
            self._refer(plan)
        entry = self._starting(plan, now, doubtful_since=now)
        # An expired row counts as absent, because TTL deletes days late. So does a row without a
        # status: it refers to a business key that the handler no longer uses.
        return self._write(plan, entry, either(absent(now), Absent("status")))

    def start_again(self, plan: Plan, old: Entry, now: datetime, *, doubtful: bool) -> Entry | None:
        """Starts an effect again, unless its row has changed since.

        Args:
            plan: the effect.
            old: its row as read.
            now: the time.
            doubtful: whether the outcome of the earlier start is unknown.
        """
        # A shared row lasts as long as the youngest event that started it needs it.
        self._expires_at = max(self._expires_at, old.row["expires_at"])
        since = old.doubtful_since if doubtful else now
        entry = self._starting(plan, now, doubtful_since=since)
        if doubtful:
            # The arguments are compared as long as the doubt lasts.
            entry["arguments"] = plan.arguments or old.row.get("arguments", "")
            entry["key_lifetime"] = min(entry["key_lifetime"], int(old.row["key_lifetime"]))
        seen = every(Equals("status", old.row["status"]), Equals("lease_id", old.row["lease_id"]))
        # The last error is shown as long as the doubt lasts. It is not written again: an erasure
        # may have replaced its text since the row was read.
        return self._write(plan, entry, seen, keeps=("error",) if doubtful else ())

    def commit(self, plan: Plan, result: bytes, now: datetime, **more: Any) -> Entry | None:
        """Records that the effect happened; returns None, or an earlier commit.

        `more` are further attributes: why a result is not recorded, or who reported it.
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
            transition(
                self._table,
                self._key(plan),
                change,
                when=either(Absent("pk"), unsettled),
                own={"committed_by": self._run.lease_id},
            )
        except ConditionFailed as error:
            return Entry(error.old or {})
        return None

    def fail(self, plan: Plan, why: str, now: datetime) -> None:
        """Records that the effect did not happen; no earlier start may be in doubt."""
        ended = {"status": str(EffectState.FAILED), "failed_at": to_ms(now)}
        self._end(plan, Change(set={**ended, **self._error(why)}, remove=("busy_until",)))

    def doubt(self, plan: Plan, why: str) -> None:
        """Records the error of this attempt, which leaves the effect in doubt."""
        self._end(plan, Change(set=self._error(why)))

    def _end(self, plan: Plan, change: Change) -> None:
        """Changes the row while this attempt's start is the last."""
        ours = every(
            Equals("status", str(EffectState.STARTED)), Equals("lease_id", self._run.lease_id)
        )
        try:
            self._table.update(self._key(plan), change, when=ours)
        except ConditionFailed:
            return  # Superseded, or recorded by an earlier try of this call.

    def prolong(self, plan: Plan, entry: Entry) -> None:
        """Keeps a shared effect, or its doubt, as long as the last event that uses it."""
        if plan.shared and entry.row["expires_at"] < self._expires_at - A_DAY:
            change = Change(set={"expires_at": self._expires_at})
            self._table.update(self._key(plan), change)

    def is_ours(self, entry: Entry) -> bool:
        """Returns whether the row belongs to this run, in any attempt."""
        return all(entry.row.get(name) == value for name, value in self._identity().items())

    def is_overtaken(self, entry: Entry) -> bool:
        """Returns whether a later attempt of this run has started it."""
        return self.is_ours(entry) and entry.row["fence"] > self._run.claims

    # -- the row

    def _error(self, why: str) -> dict[str, str]:
        """Returns the error to store; without its text if the event's payload was erased.

        An erasure before the lease of this attempt has not seen it, and may have reported that no
        text is left.
        """
        row = self._table.get(event_key(self._run.source, self._run.event_id)) or {}
        return {"error": ERASED if "erased_at" in row else why[:ERROR_LIMIT]}

    def _write(
        self, plan: Plan, entry: Mapping[str, Any], when: Condition, *, keeps: Sequence[str] = ()
    ) -> Entry | None:
        left = [name for name in _LEFT_BEHIND if name not in entry and name not in keeps]
        change = Change(set=entry, remove=left)
        try:
            # An attempt uses a name once, so its lease identifies its own start.
            own = {"status": str(EffectState.STARTED), "lease_id": self._run.lease_id}
            transition(self._table, self._key(plan), change, when=when, own=own)
        except ConditionFailed as error:
            return Entry(error.old or {})
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
        return {"name": plan.name, "idempotency_key": str(plan.key), "expires_at": self._expires_at}

    def _identity(self) -> dict[str, str]:
        run = self._run
        return {"source": run.source, "event_id": run.event_id, "handler": run.handler}

    def _refer(self, plan: Plan) -> None:
        """Writes a row in the event's partition that refers to the shared row."""
        key = effect_key(self._run.source, self._run.event_id, self._run.handler, plan.name)
        shared = self._key(plan)
        values = {"name": plan.name, "shared": shared.pk, "expires_at": self._expires_at}
        self._table.update(key, Change(set=values))

    def _key(self, plan: Plan) -> Key:
        if plan.shared:
            return shared_effect_key(plan.name, plan.shared)
        return effect_key(self._run.source, self._run.event_id, self._run.handler, plan.name)


# Attributes of an earlier, failed start or of an expired row.
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
