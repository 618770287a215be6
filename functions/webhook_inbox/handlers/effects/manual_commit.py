"""Commits an effect in doubt on an operator's word, with the operator and the reason."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from webhook_inbox.domain.conditions import Absent, Equals, Present, every
from webhook_inbox.domain.errors import ConditionFailed, InboxError
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.effects.journal import EffectState
from webhook_inbox.ledger.schema import effect_key, transition

# The `found_by` of such a commit; a probe's is "probe".
FOUND_BY: Final = "person"


class NoDoubt(InboxError):
    """The effect is not in doubt; the text says why."""


def find(table: Table, run: Run, name: str) -> Item:
    """Returns the row of an effect that may have happened, of the run or shared.

    Args:
        table: the ledger.
        run: the run of the effect.
        name: the effect's name, or "".

    Raises:
        NoDoubt: there is no name, or the effect did not happen.
        Unavailable: the table failed.
    """
    if not name:
        raise NoDoubt("the run is not held for an effect: approve or deny it")
    row = table.get(effect_key(run.source, run.event_id, run.handler, name)) or {}
    if "shared" in row:
        row = table.get(Key(row["shared"], "effect")) or {}
    if row.get("status") not in {EffectState.STARTED, EffectState.COMMITTED}:
        raise NoDoubt(f"the effect {name} has not been done: approve or deny it")
    return row


def commit(
    table: Table, row: Item, result: bytes, *, word: Mapping[str, str], mark: str, now: datetime
) -> bool:
    """Commits an effect; returns False if it is committed already, as the first commit wins.

    Args:
        table: the ledger.
        row: the effect's row as read.
        result: the result, encoded.
        word: the operator and the reason.
        mark: the unique id of this commit.
        now: the time.

    Raises:
        NoDoubt: it was started again meanwhile.
        Unavailable: the table failed; the effect may be committed.
    """
    if row["status"] == EffectState.COMMITTED and "unrecorded" not in row:
        return False
    change = Change(
        set={
            "status": str(EffectState.COMMITTED),
            "committed_at": to_ms(now),
            "committed_by": mark,
            "result": result,
            "found_by": FOUND_BY,
            "word": dict(word),
        },
        remove=("error", "failed_at", "busy_until", "unrecorded"),
    )
    lease = row.get("lease_id")
    by_whom = Equals("lease_id", lease) if lease else Absent("lease_id")
    known = Present("unrecorded") if "unrecorded" in row else Absent("unrecorded")
    seen = every(Equals("status", row["status"]), by_whom, known)
    try:
        own = {"status": str(EffectState.COMMITTED), "committed_by": mark}
        transition(table, Key(row["pk"], row["sk"]), change, when=seen, own=own)
    except ConditionFailed as error:
        if (error.old or {}).get("status") != EffectState.COMMITTED:
            raise NoDoubt("the effect was started again by another event: look again") from error
        return False
    return True
