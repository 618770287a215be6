"""Ordering keys of serial runs, and the blocking of a key after a death.

    ingest ── ordering key from the body ──► event row ──► message group ──► FIFO lane

SQS delivers no message of a group while another of it is in flight, and a serial run's message
stays until the run is settled. The event's row stores the ordering keys, so that duplicates, the
reconciler and replay send into the same group.

A handler with `on_dead="block"` writes this row before the run becomes dead:

    pk = ordering_key#{handler}#{ordering_key}    sk = blocked#{event id}    source, event_id, since

The row blocks the key until its run is done or skipped; the next reader then deletes it. If
several runs have died, they may run again one after the other, in the order of their deaths.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Final

from webhook_inbox.domain.json_path import at, parse
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import SETTLED, Run
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger.deadlines import event_end
from webhook_inbox.ledger.schema import ID_LIMIT, RUN_LIFE, live, run_from, run_key
from webhook_inbox.queue.message import RunMessage


def ordering_keys_of(specs: Iterable[HandlerSpec], body: bytes) -> dict[str, str]:
    """Returns the ordering key of each serial handler's run, by handler.

    A handler whose path has no value in this body is left out; its run will be dead. The body is
    parsed only if there is a serial handler.
    """
    serial = [spec for spec in specs if spec.serial]
    if not serial:
        return {}
    try:
        document = parse(body)
    except ValueError:
        return {}
    found = {spec.name: _ordering_key(document, spec) for spec in serial}
    return {name: ordering_key for name, ordering_key in found.items() if ordering_key}


def missing(spec: HandlerSpec) -> str:
    """Returns the error of a serial run without an ordering key."""
    path = spec.order.ordering_key if spec.order else ""
    return (
        f"the body has no text or whole number at {path!r}, the ordering key of {spec.name};"
        " correct the path in the handler's `order`, or narrow its types"
    )


def _ordering_key(document: object, spec: HandlerSpec) -> str:
    found = at(document, spec.order.ordering_key) if spec.order else None
    if isinstance(found, int) and not isinstance(found, bool):
        return _storable(str(found))
    return _storable(found) if isinstance(found, str) else ""


def _storable(text: str) -> str:
    """Returns a text that fits a key: itself, or its hash if it is long or not valid Unicode."""
    encoded = text.encode(errors="surrogatepass")
    if len(encoded) <= ID_LIMIT and encoded.decode(errors="replace") == text:
        return text
    return f"sha256:{sha256(encoded).hexdigest()}"


BLOCKED: Final = "blocked#"
# The prefix of `waits_for` of a run that waits for a dead one, before the dead run's event id.
BEHIND: Final = "event "


def block(table: Table, spec: HandlerSpec, run: Run, *, now: datetime) -> Run:
    """Blocks a run's ordering key if its handler says so; returns the run to settle as dead.

    Raises:
        Unavailable: the table failed; the caller must not settle the run.
    """
    if not spec.blocks or not run.ordering_key:
        return replace(run, blocking=False)
    change = Change(
        set={
            "source": run.source,
            "event_id": run.event_id,
            # A run cannot be replayed after its event expired, so it must not block any longer.
            "expires_at": to_seconds(event_end(run.expires_at or now + RUN_LIFE)),
        },
        # A run that dies again keeps its position among the dead ones.
        default={"since": to_ms(now)},
    )
    table.update(_key(spec.name, run.ordering_key, run.event_id), change)
    return replace(run, blocking=True)


def blocker(
    table: Table, spec: HandlerSpec, *, ordering_key: str, event_id: str, now: datetime
) -> Item | None:
    """Returns the blocking row that an event's run has to wait for, None if it may run.

    Raises:
        Unavailable: the table failed.
    """
    if not spec.blocks or not ordering_key:
        return None
    own = _key(spec.name, ordering_key, event_id)
    rows = [row for row in table.query(own.pk, sk_prefix=BLOCKED) if live(row, now)]
    for row in sorted(rows, key=lambda row: (row["since"], row["sk"])):
        if row["sk"] == own.sk:
            return None
        found = table.get(run_key(row["source"], row["event_id"], spec.name))
        if found is not None and run_from(found).status not in SETTLED:
            return row
        table.delete(Key(row["pk"], row["sk"]))
    return None


def reference_of(table: Table, spec: HandlerSpec | None, run: Run) -> RunMessage:
    """Returns the message of a run with its message group.

    Raises:
        Unavailable: the table failed.
    """
    if spec is None or not spec.blocks or not run.ordering_key:
        return RunMessage.of(run)
    is_blocking = table.get(_key(spec.name, run.ordering_key, run.event_id)) is not None
    return RunMessage.of(run, apart=is_blocking)


def _key(handler: str, ordering_key: str, event_id: str) -> Key:
    return Key(f"ordering_key#{handler}#{ordering_key}", f"{BLOCKED}{event_id}")
