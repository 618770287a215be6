"""The audit: a row for every operator action, written before the action.

    record ──► action ──► conclude: the counts are added
                  └ a crash leaves a row without counts: begun, and not finished

    pk              sk                      row
    audit#{day}     {time}#{token}          the action
    event's         action#{time}#{token}   the same, of an action on one event: its history

A release of rejected deliveries has one row in the audit and one in each event's history. A replay
has no row in the histories; it names itself in each run.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from webhook_inbox.domain.audit import Actor, AuditedAction, AuditEntry, EventName
from webhook_inbox.domain.conditions import Present
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.ports import Change, Item, Key, Randomness, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms, to_seconds
from webhook_inbox.ledger.schema import ACTION_PREFIX, EVENT_LIFE, dedupe_key, event_pk, live

EVENTS_NAMED: Final = 100
# An audit row outlives the rows that the action was about.
AUDIT_LIFE: Final = 2 * EVENT_LIFE
DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """The rows of an action that has begun."""

    table: Table
    keys: tuple[Key, ...]

    @property
    def place(self) -> str:
        """The name of the row for `begun`: `{day}/{time}#{token}`."""
        return "/".join(self.keys[0]).removeprefix("audit#")

    def conclude(self, counts: Mapping[str, int], *, stopped: str = "") -> None:
        """Adds the counts by outcome, and why the action ended early.

        A failure leaves the action shown as not finished.
        """
        told = {"counts": {str(name): count for name, count in counts.items()}}
        change = Change(set={**told, **({"stopped": stopped} if stopped else {})})
        for key in self.keys:
            with suppress(Unavailable, ConditionFailed):
                self.table.update(key, change, when=Present("pk"))


def record(  # noqa: PLR0913 - one parameter per attribute
    table: Table,
    randomness: Randomness,
    *,
    action: AuditedAction,
    by: Actor,
    reason: str,
    request: Mapping[str, str],
    event: EventName | None = None,
    event_ids: Sequence[str] = (),
    forced: bool = False,
    part: bool = False,
    now: datetime,
) -> AuditRecord:
    """Writes the row of an action, and one in its event's history if it is about one event.

    Args:
        table: the ledger's table.
        randomness: distinguishes actions of one millisecond.
        action: the action.
        by: who performs it.
        reason: why.
        request: the filter, or the names that the action is about; never a secret's value.
        event: the one event that the action is about.
        event_ids: the events that it is about, if there are several; 100 are named.
        forced: whether it repeats finished work.
        part: whether it is a part of an action that has a row: only the history gets one.
        now: the present time.

    Raises:
        Unavailable: the table failed; the caller must not perform the action.
    """
    place = _place(randomness, now)
    lives = {} if part else {Key(f"audit#{now:%Y-%m-%d}", place): AUDIT_LIFE}
    if event is not None:
        lives[Key(event_pk(*event), ACTION_PREFIX + place)] = EVENT_LIFE
        event_ids = (event.event_id,)
    for key, life in lives.items():
        table.put(
            {
                "pk": key.pk,
                "sk": key.sk,
                "action": str(action),
                **by.attributes(),
                "reason": reason,
                "request": dict(request),
                "event_ids": _named(event_ids),
                **({"forced": True} if forced else {}),
                "expires_at": to_seconds(now + life),
            }
        )
    return AuditRecord(table, tuple(lives))


def note(
    table: Table,
    randomness: Randomness,
    *,
    action: AuditedAction,
    by: Actor,
    request: Mapping[str, str],
    event: EventName,
    now: datetime,
) -> None:
    """Writes the finished rows of what the inbox itself has done about an event.

    Raises:
        Unavailable: the table failed; the action is done, and its own row says so.
    """
    place = _place(randomness, now)
    lives = {
        Key(f"audit#{now:%Y-%m-%d}", place): AUDIT_LIFE,
        Key(event_pk(*event), ACTION_PREFIX + place): EVENT_LIFE,
    }
    for key, life in lives.items():
        table.put(
            {
                "pk": key.pk,
                "sk": key.sk,
                "action": str(action),
                **by.attributes(),
                "reason": "",
                "request": dict(request),
                "event_ids": _named([event.event_id]),
                "counts": {"done": 1},
                "expires_at": to_seconds(now + life),
            }
        )


def read_entry(row: Item) -> AuditEntry:
    """Reads a row of the audit or of an event's history."""
    return AuditEntry(
        key=Key(row["pk"], row["sk"]),
        at=from_ms(int(row["sk"].removeprefix(ACTION_PREFIX).partition("#")[0])),
        action=row["action"],
        actor=Actor.of(row),
        reason=row["reason"],
        request=row["request"],
        event_ids=row["event_ids"],
        forced=row.get("forced", False),
        counts=row.get("counts"),
        stopped=row.get("stopped", ""),
    )


def _place(randomness: Randomness, now: datetime) -> str:
    return f"{to_ms(now):013d}#{randomness.token()}"


def begun(
    table: Table,
    place: str,
    *,
    action: AuditedAction,
    name: str,
    request: Mapping[str, str],
    event_ids: Sequence[str],
) -> Actor | None:
    """Returns the actor of a row that the caller of a function wrote, None without such a row.

    Anyone who may invoke the function can name a row, so it must be of the same actor, action and
    request, and not be finished. It may tell more, such as the filter of a selection.

    Raises:
        Unavailable: the table failed.
    """
    day, _, sk = place.partition("/")
    row = table.get(Key(f"audit#{day}", sk)) if sk else None
    if row is None:
        return None
    entry = read_entry(row)
    same = (entry.action, entry.actor.name) == (action, name)
    same = same and _named(event_ids) in ([], list(entry.event_ids))
    same = same and request.items() <= entry.request.items()
    return entry.actor if same and entry.counts is None else None


def _named(event_ids: Sequence[str]) -> list[str]:
    return [dedupe_key(event_id) for event_id in event_ids[:EVENTS_NAMED]]


def find(table: Table, *, since: datetime, until: datetime, now: datetime) -> Iterator[AuditEntry]:
    """Yields the actions of [since, until), newest first; reads day by day and page by page.

    Raises:
        Unavailable: the table failed.
    """
    low, high = f"{to_ms(max(since, now - AUDIT_LIFE)):013d}", f"{to_ms(until):013d}"
    day = until
    while day.date() >= max(since, now - AUDIT_LIFE).date():
        for row in table.query(f"audit#{day:%Y-%m-%d}", newest_first=True):
            if row["sk"] < low:
                break
            if row["sk"] < high and live(row, now) is not None:
                yield read_entry(row)
        day -= DAY
