"""Ordering keys that stand still after a death, for handlers whose order says `on_dead = "block"`.

    pk = ordering_key#{handler}#{ordering_key}    sk = blocked#{event id}    source, event_id, since

The row is written before the run dies, so there is no moment at which it is dead and the next run
of its ordering key may begin. Nobody has to take it away: it counts for as long as the run that it names
is not done and not skipped, and whoever comes by later removes it.

Of several that have died only the first may run again, then the next: what is replayed comes in
a message group of its own, where SQS keeps it from nothing.
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
    """Returns what each serial handler's run is in order with, by handler.

    A handler whose path leads to nothing in this body is left out: its run is in order with
    nothing, and dies of it. The body is parsed only where there is a serial handler.
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
    """Returns why a run that is in order with nothing cannot be done."""
    path = spec.order.ordering_key if spec.order else ""
    return (
        f"the body has no text or whole number at {path!r}, by which {spec.name} takes events in"
        " order; mend the path in the handler's `order`, or narrow its types"
    )


def _ordering_key(document: object, spec: HandlerSpec) -> str:
    found = at(document, spec.order.ordering_key) if spec.order else None
    if isinstance(found, int) and not isinstance(found, bool):
        return _storable(str(found))
    return _storable(found) if isinstance(found, str) else ""


def _storable(text: str) -> str:
    """Returns a text as a key can hold it: itself, or its hash if it is long or no Unicode."""
    encoded = text.encode(errors="surrogatepass")
    if len(encoded) <= ID_LIMIT and encoded.decode(errors="replace") == text:
        return text
    return f"sha256:{sha256(encoded).hexdigest()}"


BLOCKED: Final = "blocked#"
# How the `waits_for` of a run begins that waits for a dead one: the rest is that one's event.
BEHIND: Final = "event "


def block(table: Table, spec: HandlerSpec, run: Run, *, now: datetime) -> Run:
    """Stops a run's ordering key, as its handler says, and returns the run as it is to die then.

    Raises:
        Unavailable: the table failed; the run must not die then.
    """
    if not spec.blocks or not run.ordering_key:
        return replace(run, blocking=False)
    change = Change(
        set={
            "source": run.source,
            "event_id": run.event_id,
            # Without its event nobody can replay it: it stops nothing any more.
            "expires_at": to_seconds(event_end(run.expires_at or now + RUN_LIFE)),
        },
        # One that dies again keeps its place among those that have died.
        default={"since": to_ms(now)},
    )
    table.update(_key(spec.name, run.ordering_key, run.event_id), change)
    return replace(run, blocking=True)


def blocker(
    table: Table, spec: HandlerSpec, *, ordering_key: str, event_id: str, now: datetime
) -> Item | None:
    """Returns the row of the run that an event's run has to wait for, None where it may go on.

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
    """Returns what a message of the run says, and in which group it is sent.

    Raises:
        Unavailable: the table failed.
    """
    if spec is None or not spec.blocks or not run.ordering_key:
        return RunMessage.of(run)
    stopped_it = table.get(_key(spec.name, run.ordering_key, run.event_id)) is not None
    return RunMessage.of(run, apart=stopped_it)


def _key(handler: str, ordering_key: str, event_id: str) -> Key:
    return Key(f"ordering_key#{handler}#{ordering_key}", f"{BLOCKED}{event_id}")
