"""Settling a run: what its worker writes when an attempt is over, fenced by the lease (G2)."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from webhook_inbox.domain.conditions import Absent, Condition, Equals, Present, every, number
from webhook_inbox.domain.errors import ConditionFailed, InboxError, Unavailable
from webhook_inbox.domain.model import Attempt, Run, Status, StoredEvent, WaitStrategy
from webhook_inbox.domain.ports import Change, Key, Table
from webhook_inbox.domain.timestamps import to_ms, to_seconds
from webhook_inbox.ledger.deadlines import last_call, overdue_at
from webhook_inbox.ledger.schema import (
    EFFECT_LIFE,
    EFFECT_PREFIX,
    EVENT_LIFE,
    RUN_LIFE,
    attempt_to,
    due_bucket,
    event_pk,
    run_from,
    run_key,
)

ERROR_LIMIT: Final = 1024
# The first attempts show how it began and the last how it ended; the row stays small.
HISTORY_ENDS: Final = 9


class LeaseLost(InboxError):
    """The run was given to another worker, or changed by an operator: nothing was written."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What one attempt ends in.

    Attributes:
        outcome: the word in the run's history.
        error: what went wrong, or why it waits; cut to 1 KB.
        due: when a waiting run is due.
        wait: what carries the wait; anything but HIDDEN raises the generation, because another
            message replaces this one.
        spent: whether the attempt counts.
        unknown: the handler is not in this deployment.
        held: what a person has to decide; see `Run.held`.
        waits_for: what it waits for; see `Run.waits_for`.
        reservations: its turns at destinations; see `Run.reservations`.
    """

    status: Status
    outcome: str
    now: datetime
    error: str = ""
    due: datetime | None = None
    wait: WaitStrategy = WaitStrategy.HIDDEN
    spent: bool = True
    unknown: bool = False
    held: Mapping[str, Any] = field(default_factory=dict)
    waits_for: str = ""
    reservations: Mapping[str, int] = field(default_factory=dict)


def settle(table: Table, run: Run, settlement: Settlement, *, sent_at: datetime) -> Run:
    """Ends the attempt that `run` holds the lease of, and returns the run as it is then.

    What `run` says of its progress is kept, whatever the attempt ends in; a death keeps whether
    it is blocking.

    Raises:
        LeaseLost: the lease is not ours any more.
        Unavailable: the table failed; the change may have been made.
    """
    key = run_key(run.source, run.event_id, run.handler)
    ours = every(Equals("lease_id", run.lease_id), Equals("status", str(Status.PROCESSING)))
    try:
        return run_from(table.update(key, _change(run, settlement, sent_at), when=ours))
    except ConditionFailed as error:
        # Whoever else changes a status removes the lease id: this is our own earlier try.
        if error.old is not None and error.old.get("lease_id") == run.lease_id:
            return run_from(error.old)
        raise LeaseLost from error


def give_up(table: Table, run: Run, *, error: str, now: datetime, sent_at: datetime) -> bool:
    """Makes a run that nobody works on a dead letter; False if it has changed meanwhile.

    Raises:
        Unavailable: the table failed.
    """
    key = run_key(run.source, run.event_id, run.handler)
    settlement = Settlement(Status.DEAD_LETTER, "given up", now, error=error)
    change = _change(run, settlement, sent_at)
    change = Change(set=change.set, remove=(*change.remove, "lease_id"))
    try:
        table.update(key, change, when=as_seen(run))
    except ConditionFailed:
        return False
    return True


def extend_life(table: Table, run: Run, event: StoredEvent) -> None:
    """Lets a run that cannot be claimed live as long as its event, and its effects longer.

    An event whose id comes again after it expired is a new one, and meets the run of the old
    one, which expires a week later: nobody would then know that the event was handled, nor, if
    that is replayed, what it has done.

    Raises:
        Unavailable: the table failed, or TTL has just deleted the run: the message begins it anew.
    """
    end = to_seconds(event.received_at + RUN_LIFE)
    if run.expires_at is None or to_seconds(run.expires_at) >= end:
        return
    listed = {"due_at": end * 1000} if run.status is Status.DEAD_LETTER else {}
    key = run_key(run.source, run.event_id, run.handler)
    _prolong_effects(table, run, to_seconds(event.received_at + EFFECT_LIFE))
    try:
        table.update(key, Change(set={"expires_at": end, **listed}), when=as_seen(run))
    except ConditionFailed as error:
        if error.old is None:
            raise Unavailable("ledger", "extend_life", "the old run has just expired") from error
        # It has moved on, and lives on.


def _prolong_effects(table: Table, run: Run, end: int) -> None:
    prefix = f"{EFFECT_PREFIX}{run.handler}#"
    for row in table.query(event_pk(run.source, run.event_id), sk_prefix=prefix):
        with suppress(ConditionFailed):  # TTL has just deleted it
            change = Change(set={"expires_at": end})
            table.update(Key(row["pk"], row["sk"]), change, when=Present("pk"))


def as_seen(run: Run) -> Condition:
    """Returns the condition that nobody has claimed, settled or replayed the run since.

    Every claim and every settlement moves one of these, every replay the generation. A run that was
    never attempted has no attempt count, one that was never replaced no generation.
    """
    return every(
        Equals("status", str(run.status)),
        number("attempt_count", run.attempt_count),
        number("generation", run.generation),
        Equals("lease_id", run.lease_id) if run.lease_id else Absent("lease_id"),
    )


def history(run: Run, entry: Attempt) -> tuple[Attempt, ...]:
    """Returns the run's history with the entry added: its first and last nine attempts."""
    entries = (*with_lost(run, before=entry.number, noticed_at=entry.started_at), entry)
    if len(entries) <= 2 * HISTORY_ENDS:
        return entries
    return (*entries[:HISTORY_ENDS], *entries[-HISTORY_ENDS:])


def with_lost(run: Run, *, before: int, noticed_at: datetime) -> tuple[Attempt, ...]:
    """Returns the run's history with the attempts, earlier than `before`, that no worker reported.

    They are entered as lost, at the time when they were noticed.
    """
    reported = run.attempts[-1].number if run.attempts else 0
    lost = (
        Attempt(place, noticed_at, noticed_at, "lost", "its worker stopped silently")
        for place in range(reported + 1, before)
    )
    return (*run.attempts, *lost)


def _change(run: Run, settlement: Settlement, sent_at: datetime) -> Change:
    now = settlement.now
    values: dict[str, Any] = {"status": str(settlement.status), "last_at": to_ms(now)}
    remove = ["claimed_until", "parked", "resends"]
    if run.progress:
        values["progress"] = dict(run.progress)
    if settlement.error:
        values["last_error"] = cut(settlement.error)
    if settlement.spent:
        values["attempts"] = _entries(run, settlement)
    if not settlement.unknown:
        remove.append("unknown_since")
    if settlement.status in {Status.DONE, Status.SKIPPED}:
        values["done_at"] = to_ms(now)
        remove += ["due_bucket", "due_at", "next_attempt_at"]
    elif settlement.status is Status.DEAD_LETTER:
        values |= _dead(run, now, sent_at)
        remove.append("next_attempt_at")
    else:
        values |= _waiting(run, settlement)
        remove = [name for name in remove if name not in values]
    return Change(
        set=values,
        default={"unknown_since": to_ms(now)} if settlement.unknown else {},
        add=_additions(settlement),
        remove=remove,
    )


def _dead(run: Run, now: datetime, sent_at: datetime) -> Mapping[str, Any]:
    # The death is never earlier than the message that brought it, whatever the clocks say:
    # only a message sent later, a redrive, may begin a new round.
    return {
        "dead_at": max(to_ms(now), to_ms(sent_at)),
        "attempts_in_round": 0,
        "due_bucket": due_bucket(run_key(run.source, run.event_id, run.handler)),
        "due_at": to_ms(run.expires_at or now),
        **({"blocking": True} if run.blocking else {}),
    }


def _waiting(run: Run, settlement: Settlement) -> Mapping[str, Any]:
    now = settlement.now
    due = settlement.due or now
    values: dict[str, Any] = {
        "due_bucket": due_bucket(run_key(run.source, run.event_id, run.handler)),
    }
    if settlement.wait is WaitStrategy.PARKED:
        values["parked"] = True
    if settlement.waits_for:
        values["waits_for"] = settlement.waits_for
    if settlement.reservations:
        values["reservations"] = dict(settlement.reservations)
    if settlement.held:
        values["held"] = dict(settlement.held)
    if settlement.status is Status.HELD:
        look = last_call(run.expires_at or now)
    else:
        values["next_attempt_at"] = to_ms(due)
        look = due if settlement.wait is WaitStrategy.PARKED else overdue_at(due)
        look = min(look, last_call(run.expires_at or look + EVENT_LIFE))
    values["due_at"] = to_ms(max(now, look))
    return values


def _additions(settlement: Settlement) -> Mapping[str, int]:
    replaced = settlement.status in {Status.FAILED, Status.DEFERRED}
    additions = {"generation": 1} if replaced and settlement.wait is not WaitStrategy.HIDDEN else {}
    if not settlement.spent:
        additions |= {"attempt_count": -1, "attempts_in_round": -1}
    return additions


def _entries(run: Run, settlement: Settlement) -> list[dict[str, Any]]:
    reported = run.attempts[-1].number if run.attempts else 0
    if run.attempt_count <= reported:
        return [attempt_to(attempt) for attempt in run.attempts]
    entry = Attempt(
        number=run.attempt_count,
        started_at=run.claimed_at or settlement.now,
        ended_at=settlement.now,
        outcome=settlement.outcome,
        error=cut(settlement.error),
        worker=run.claimed_by,
    )
    return [attempt_to(attempt) for attempt in history(run, entry)]


def cut(text: str) -> str:
    """Returns the text as it can be stored: valid UTF-8, at most 1 KB."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= ERROR_LIMIT:
        return encoded.decode()
    return encoded[: ERROR_LIMIT - 3].decode(errors="ignore") + "…"
