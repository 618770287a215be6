"""An effect of which a person says that it happened: committed by hand, with who and why."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from webhook_inbox.domain.conditions import Absent, Equals, Present, every
from webhook_inbox.domain.errors import ConditionFailed, InboxError
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.effects.journal import EffectState
from webhook_inbox.ledger.schema import effect_key

# Who found out that it happened; the other one is "probe".
FOUND_BY: Final = "person"


class NoDoubt(InboxError):
    """The effect is not in doubt, so nobody has to say whether it happened; the text says why."""


def find(table: Table, run: Run, name: str) -> Item:
    """Returns the row of an effect that may have happened, wherever it lies.

    Args:
        table: the ledger.
        run: whose effect it is.
        name: the effect's name, "" for none.

    Raises:
        NoDoubt: it is none, or has certainly not happened.
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
    """Commits an effect; False where it is committed already, since the first commit wins.

    Args:
        table: the ledger.
        row: the effect as it was found.
        result: what it returned, as it is stored.
        word: who says so, and why.
        mark: tells this commit from any other.
        now: the time.

    Raises:
        NoDoubt: it was started anew meanwhile.
        Unavailable: the table failed; it may be committed.
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
        table.update(Key(row["pk"], row["sk"]), change, when=seen)
    except ConditionFailed as error:
        old = error.old or {}
        if old.get("status") != EffectState.COMMITTED:
            raise NoDoubt("the effect was started anew by another event: look again") from error
        return bool(old.get("committed_by") == mark)  # True for an earlier try of this call.
    return True
