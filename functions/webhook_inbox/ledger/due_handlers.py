"""The handlers whose runs the due index may list.

    pk = due_index    sk = handler#{name}    handler, expires_at (once it is no longer deployed)

The index is read handler by handler, so a handler is registered before any run of it is listed: by
the reconciler's first pass after a deployment, or by the first worker that receives a message of
it. The worker matters if a deployment is rolled back before a pass. A handler that is no longer
deployed stays registered until the last run of it is gone.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.conditions import Absent, Present, every
from webhook_inbox.domain.errors import ConditionFailed
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.domain.timestamps import to_seconds
from webhook_inbox.ledger.schema import RUN_LIFE, live

PK: Final = "due_index"
PREFIX: Final = "handler#"
# Longer than a run: DynamoDB deletes expired runs late.
REMEMBERED: Final = RUN_LIFE + timedelta(days=7)


class DueHandlers:
    """Registers handlers; remembers those that it knows to be registered."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: set[str] = set()

    def ensure(self, handler: str, *, until: datetime) -> None:
        """Registers a handler of which a run may be listed until then.

        Raises:
            Unavailable: the table failed; the run must not be listed.
        """
        if handler in self._known:
            return
        row = self._table.get(_key(handler), consistent=False)
        if row is None or row.get("expires_at", to_seconds(until)) < to_seconds(until):
            self._table.update(_key(handler), _registration(handler))
        self._known.add(handler)


def registered(table: Table) -> list[str]:
    """Returns every handler of which a run may be listed, in alphabetical order.

    Raises:
        Unavailable: the table failed.
    """
    return sorted(_rows(table))


def deploy(table: Table, deployed: Iterable[str], *, now: datetime) -> set[str]:
    """Registers the deployed handlers; returns all of which a run may be listed.

    Writes only what has changed since the last deployment.

    Raises:
        Unavailable: the table failed.
    """
    rows, names = _rows(table), set(deployed)
    for name in sorted(names):
        if name not in rows or "expires_at" in rows[name]:
            table.update(_key(name), _registration(name))
    gone = every(Present("pk"), Absent("expires_at"))
    end = Change(set={"expires_at": to_seconds(now + REMEMBERED)})
    for name in sorted(rows.keys() - names):
        if "expires_at" not in rows[name]:
            with suppress(ConditionFailed):
                table.update(_key(name), end, when=gone)
    return names | {name for name, row in rows.items() if live(row, now)}


def _rows(table: Table) -> dict[str, Item]:
    return {row["handler"]: row for row in table.query(PK, sk_prefix=PREFIX)}


def _key(handler: str) -> Key:
    return Key(PK, PREFIX + handler)


def _registration(handler: str) -> Change:
    return Change(set={"handler": handler}, remove=("expires_at",))
