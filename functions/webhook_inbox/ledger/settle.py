"""Settles a run: the worker's write after an attempt, fenced by the lease (G2)."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from webhook_inbox.domain.conditions import Absent, Condition, Equals, Present, every, number
from webhook_inbox.domain.death import DeathCause
from webhook_inbox.domain.errors import ConditionFailed, InboxError, Unavailable
from webhook_inbox.domain.model import (
    NOT_COUNTED,
    Attempt,
    Run,
    Status,
    StoredEvent,
    WaitStrategy,
)
from webhook_inbox.domain.ports import Change, Key, Table
from webhook_inbox.domain.timestamps import from_seconds, to_ms, to_seconds
from webhook_inbox.ledger.deadlines import expiry_warning_at, held_look_at, overdue_at
from webhook_inbox.ledger.schema import (
    EFFECT_LIFE,
    EFFECT_PREFIX,
    EVENT_LIFE,
    RUN_LIFE,
    WAKE,
    WATCH,
    attempt_to,
    dead_due_at,
    dead_entry,
    due_entry,
    event_pk,
    key_of_run,
    run_from,
    transition,
)

ERROR_LIMIT: Final = 1024
# The history keeps the first and the last attempts, so that the row stays small.
HISTORY_ENDS: Final = 9


class LeaseLost(InboxError):
    """Another worker or an operator has changed the run: nothing was written."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """The result of one attempt.

    Attributes:
        outcome: the word in the run's history.
        error: the error, or the reason for the wait; cut to 1 KB.
        due: when a waiting run is due.
        wait: how the wait is implemented; all but HIDDEN raise the generation, because another
            message replaces this one.
        spent: whether the attempt counts. The history has no entry of one that does not, unless
            its outcome is `NOT_COUNTED`.
        unknown: whether the handler is missing in this deployment.
        held: the approval request; see `Run.held`.
        waits_for: see `Run.waits_for`.
        reservations: see `Run.reservations`.
        error_line: see `Run.error_line`.
        error_class: see `Run.error_class`.
        skip_reason: see `Run.skip_reason`.
        attempt_limit: see `Run.attempt_limit`.
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
    error_line: str = ""
    error_class: str = ""
    skip_reason: str = ""
    attempt_limit: int = 0


def settle(table: Table, run: Run, settlement: Settlement, *, sent_at: datetime) -> Run:
    """Ends the attempt of a leased run and returns the settled run.

    `run.progress` and `run.place` are stored with every result, `run.blocking` with a death.

    Raises:
        LeaseLost: the lease is lost.
        Unavailable: the table failed; the change may have been made.
    """
    change = _change(run, settlement, sent_at)
    held = {"lease_id": run.lease_id}
    ours = every(Equals("lease_id", run.lease_id), Equals("status", str(Status.PROCESSING)))
    try:
        # Every other writer of a status removes the lease id: a row that still has it is our own.
        return run_from(transition(table, key_of_run(run), change, when=ours, own=held))
    except ConditionFailed as error:
        raise LeaseLost from error


def death(cause: DeathCause, detail: str, now: datetime, *, outcome: str = "dead") -> Settlement:
    """Returns the only settlement that makes a run a dead letter."""
    return Settlement(Status.DEAD_LETTER, outcome, now, cause.error_text(detail))


def give_up(
    table: Table, run: Run, cause: DeathCause, detail: str, *, now: datetime, sent_at: datetime
) -> bool:
    """Makes a run without a lease a dead letter; False if it was changed meanwhile.

    Raises:
        Unavailable: the table failed.
    """
    dead = death(cause, detail, now, outcome="given up")
    dead = replace(dead, error_line=run.error_line, error_class=run.error_class)
    change = _change(run, dead, sent_at)
    change = Change(set=change.set, remove=(*change.remove, "lease_id"))
    try:
        table.update(key_of_run(run), change, when=as_seen(run))
    except ConditionFailed:
        return False
    return True


def extend_life(table: Table, run: Run, event: StoredEvent) -> None:
    """Extends the life of a run that cannot be leased, and of its effects, to that of its event.

    An event whose id is received again after the first event expired is a new event that finds
    the run of the old one, which expires a week after it. Without the extension, TTL would delete
    the record that the event was handled, and of its effects if that run is replayed.

    Raises:
        Unavailable: the table failed, or TTL has just deleted the run; the message returns.
    """
    end = to_seconds(event.received_at + RUN_LIFE)
    if not is_of_earlier_event(run, event):
        return
    listed = {"due_at": dead_due_at(from_seconds(end))} if run.status is Status.DEAD_LETTER else {}
    _prolong_effects(table, run, to_seconds(event.received_at + EFFECT_LIFE))
    try:
        change = Change(set={"expires_at": end, **listed})
        table.update(key_of_run(run), change, when=as_seen(run))
    except ConditionFailed as error:
        if error.old is None:
            raise Unavailable("ledger", "extend_life", "the old run has just expired") from error
        # The run was changed meanwhile, which extends its life as well.


def is_of_earlier_event(run: Run, event: StoredEvent) -> bool:
    """Tells whether a run was last leased for an event of the same id that has expired."""
    end = to_seconds(event.received_at + RUN_LIFE)
    return run.expires_at is not None and to_seconds(run.expires_at) < end


def _prolong_effects(table: Table, run: Run, end: int) -> None:
    prefix = f"{EFFECT_PREFIX}{run.handler}#"
    for row in table.query(event_pk(run.source, run.event_id), sk_prefix=prefix):
        with suppress(ConditionFailed):  # TTL has just deleted it
            change = Change(set={"expires_at": end})
            table.update(Key(row["pk"], row["sk"]), change, when=Present("pk"))


def as_seen(run: Run) -> Condition:
    """Returns the condition that the run was not leased, settled or replayed since it was read.

    Every lease and settlement changes one of these attributes, every replay the generation.
    """
    return every(
        Equals("status", str(run.status)),
        number("attempt_count", run.attempt_count),
        number("generation", run.generation),
        Equals("lease_id", run.lease_id) if run.lease_id else Absent("lease_id"),
    )


def history(run: Run, entry: Attempt) -> tuple[Attempt, ...]:
    """Returns the run's history with an entry added: the first and the last nine attempts."""
    entries = (*with_lost(run, before=entry.number, noticed_at=entry.started_at), entry)
    if len(entries) <= 2 * HISTORY_ENDS:
        return entries
    return (*entries[:HISTORY_ENDS], *entries[-HISTORY_ENDS:])


def with_lost(run: Run, *, before: int, noticed_at: datetime) -> tuple[Attempt, ...]:
    """Returns the run's history with unreported attempts before number `before` added as lost."""
    lost = (
        Attempt(place, noticed_at, noticed_at, "lost", "its worker stopped silently")
        for place in range(run.last_reported + 1, before)
    )
    return (*run.attempts, *lost)


# Attributes of the end of one attempt; each settlement replaces them.
_TOLD: Final = ("error_line", "error_class", "skip_reason", "attempt_limit")


# A run that has ended keeps them in the last entry of its history, for the six weeks of its row.
_OF_THE_LEASE: Final = ("claimed_at", "claimed_by", "message_id")


def _change(run: Run, settlement: Settlement, sent_at: datetime) -> Change:
    now = settlement.now
    values: dict[str, Any] = {"status": str(settlement.status), "last_at": to_ms(now)}
    remove = ["claimed_until", "parked", "resends", *_TOLD]
    if run.progress:
        values["progress"] = dict(run.progress)
    if run.place:
        values["place"] = run.place
    if settlement.error:
        values["last_error"] = cut(settlement.error)
    values |= {name: value for name in _TOLD if (value := getattr(settlement, name))}
    if settlement.spent or settlement.outcome == NOT_COUNTED:
        values["attempts"] = _entries(run, settlement)
    if not settlement.unknown:
        remove.append("unknown_since")
    if settlement.status in {Status.DONE, Status.SKIPPED}:
        values["done_at"] = to_ms(now)
        remove += ["due_bucket", "due_at", "next_attempt_at"]
        remove += _OF_THE_LEASE
        if settlement.status is Status.DONE:
            # The history keeps the errors of earlier attempts.
            remove.append("last_error")
    elif settlement.status is Status.DEAD_LETTER:
        values |= _dead(run, now, sent_at)
        remove.append("next_attempt_at")
    else:
        values |= _waiting(run, settlement)
    return Change(
        set=values,
        default={"unknown_since": to_ms(now)} if settlement.unknown else {},
        add=_additions(settlement),
        remove=[name for name in remove if name not in values],
    )


def _dead(run: Run, now: datetime, sent_at: datetime) -> Mapping[str, Any]:
    # Clocks differ, and a death must not be earlier than its message was sent: only a message
    # sent later, a redrive, may begin a new round.
    return {
        "dead_at": max(to_ms(now), to_ms(sent_at)),
        "attempts_in_round": 0,
        "deaths": run.deaths + 1,
        **dead_entry(key_of_run(run), run.expires_at or now),
        **({"blocking": True} if run.blocking else {}),
    }


def _waiting(run: Run, settlement: Settlement) -> Mapping[str, Any]:
    now = settlement.now
    due = settlement.due or now
    values: dict[str, Any] = {}
    if settlement.wait is WaitStrategy.PARKED:
        values["parked"] = True
    if settlement.waits_for:
        values["waits_for"] = settlement.waits_for
    if settlement.reservations:
        values["reservations"] = dict(settlement.reservations)
    if settlement.held:
        values["held"] = dict(settlement.held)
    if settlement.status is Status.HELD:
        look = held_look_at(settlement.held, now, expiry_warning_at(run.expires_at or now))
    else:
        values["next_attempt_at"] = to_ms(due)
        look = due if settlement.wait is WaitStrategy.PARKED else overdue_at(due)
        look = min(look, expiry_warning_at(run.expires_at or look + EVENT_LIFE))
    parked = settlement.status is Status.HELD or settlement.wait is WaitStrategy.PARKED
    kind = WAKE if parked else WATCH
    return values | due_entry(key_of_run(run), max(now, look), kind=kind)


def _additions(settlement: Settlement) -> Mapping[str, int]:
    replaced = settlement.status in {Status.FAILED, Status.DEFERRED}
    additions = {"generation": 1} if replaced and settlement.wait is not WaitStrategy.HIDDEN else {}
    if not settlement.spent:
        additions |= {"attempt_count": -1, "attempts_in_round": -1}
    return additions


def _entries(run: Run, settlement: Settlement) -> list[dict[str, Any]]:
    if run.attempt_count <= run.last_reported:
        return [attempt_to(attempt) for attempt in run.attempts]
    entry = Attempt(
        number=run.attempt_count,
        started_at=run.claimed_at or settlement.now,
        ended_at=settlement.now,
        outcome=settlement.outcome,
        error=cut(settlement.error),
        worker=run.claimed_by,
        code_version=run.code_version,
    )
    return [attempt_to(attempt) for attempt in history(run, entry)]


def cut(text: str) -> str:
    """Returns the text as it can be stored: valid UTF-8, at most 1 KB."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= ERROR_LIMIT:
        return encoded.decode()
    return encoded[: ERROR_LIMIT - 3].decode(errors="ignore") + "…"
