"""Forbidden writes of a run's row are detected and permitted ones accepted."""

from datetime import timedelta
from typing import Any

import pytest

from simulation.invariants.observer import RESEND_PAUSE_MS, Actor, Observer, Violation
from simulation.invariants.transitions import PASS_MS, ROLLING_MS, SKEW_MS, changed
from tests.simulation.tiny import RUN
from webhook_inbox.domain.ports import Item, Message
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.deadlines import RESENDS
from webhook_inbox.ledger.schema import DEAD_FROM
from webhook_inbox.queue.message import RunMessage

NOW = 1_767_225_600_000
LIMIT = 2


def message(generation: int = 0, sent_at: int = NOW) -> Message:
    return Message("m-1", "r", RunMessage(*RUN, generation).encode(), from_ms(sent_at), 1)


def row(status: str, **parts: Any) -> Item:
    """Returns a run's row as it should be: whatever is open is watched."""
    entry = {"due_bucket": "1", "due_at": DEAD_FROM if status == "dead_letter" else NOW}
    watched = {} if status in {"done", "skipped", "processing"} else entry
    found: Item = {"status": status, "attempt_count": 1, **watched, **parts}
    return {name: value for name, value in found.items() if value is not None}


LEASED = row("processing", lease_id="mine", claimed_until=NOW + 330_000)
ENDED = {**LEASED, "claimed_until": NOW - 1}
MINE = Actor("processor", "mine", message=message())
CLAIMS = Actor("processor", message=message())
RECONCILER, REPLAY = Actor("reconciler"), Actor("replay", replays=True)
DIED = row("dead_letter", dead_at=NOW, generation=1, last_error="permanent: no")


def write(actor: Actor, old: Item, new: Item, **notes: Any) -> Observer:
    observer = Observer(**{"spent": {RUN: LIMIT}, "succeeded": {RUN}, **notes})
    changed(observer, actor, RUN, old, new, now=NOW, limit=LIMIT)
    return observer


LET_WAIT = row("deferred", attempt_count=0, generation=1, next_attempt_at=NOW)
OF_ANOTHER = Message("m-2", "r", RunMessage("acme", "e0", "mail").encode(), from_ms(NOW), 1)

GOOD: dict[str, tuple[Actor, Item, Item]] = {
    "a first claim": (CLAIMS, {}, LEASED),
    "the same claim once more": (MINE, LEASED, LEASED),
    "a claim of a failed run": (CLAIMS, row("failed"), LEASED),
    "a take-over of an ended lease": (CLAIMS, ENDED, {**LEASED, "lease_id": "new"}),
    "a claim of the dead by a later message": (
        Actor("processor", message=message(1, NOW + 1)),
        DIED,
        {**LEASED, "generation": 1},
    ),
    "a success": (MINE, LEASED, row("done")),
    "a failure": (MINE, LEASED, row("failed", generation=1)),
    "a deferral": (MINE, LEASED, row("deferred", attempt_count=0)),
    "an expired lease, declared dead by another actor": (RECONCILER, ENDED, row("pending")),
    "a success that arrives late": (Actor("late"), LEASED, row("done")),
    "a parked run, due": (
        RECONCILER,
        row("held", parked=True, next_attempt_at=NOW),
        row("pending"),
    ),
    "a replay": (REPLAY, DIED, row("pending", generation=2)),
    "a replay by force": (
        Actor("replay", replays=True, force=True),
        row("done"),
        row("pending", generation=1),
    ),
    "a finished run, noted again": (MINE, row("done"), row("done", code_version="v2")),
    "exhausted": (MINE, LEASED, row("dead_letter", last_error="exhausted: down")),
    "refused": (MINE, LEASED, row("dead_letter", last_error="permanent: no such order")),
    "not deployed for an hour": (
        MINE,
        {**LEASED, "unknown_since": NOW - ROLLING_MS},
        row("dead_letter", last_error="permanent: mail is not in this deployment"),
    ),
    "lost": (
        RECONCILER,
        row("pending", resends=len(RESENDS)),
        row("dead_letter", last_error="lost: never received"),
    ),
    "let wait before its first claim": (CLAIMS, {}, LET_WAIT),
    "let wait once more": (
        Actor("processor", message=message(1)),
        LET_WAIT,
        {**LET_WAIT, "generation": 2, "next_attempt_at": NOW + 1},
    ),
    "let wait by the first of a FIFO lane's group": (
        CLAIMS,
        {**LET_WAIT, "ordering_key": "42"},
        {**LET_WAIT, "ordering_key": "42", "generation": 2},
    ),
    "prolonged by a message that is refused": (
        CLAIMS,
        {**LET_WAIT, "generation": 3},
        {**LET_WAIT, "generation": 3, "expires_at": 1},
    ),
    "resumed behind its predecessor": (
        Actor("processor", "other", message=OF_ANOTHER),
        {**LET_WAIT, "parked": True},
        row("pending", attempt_count=0, generation=1),
    ),
    "resumed before its time": (
        RECONCILER,
        row("deferred", parked=True, waits_for="resumption", next_attempt_at=NOW + 3_600_000),
        row("pending"),
    ),
}

BAD: dict[str, tuple[str, Actor, Item, Item, dict[str, Any]]] = {
    "a generation that goes back": (
        "G2",
        MINE,
        {**LEASED, "generation": 2},
        row("failed", generation=1),
        {},
    ),
    "a failed run outside the due index": ("G9", MINE, LEASED, row("failed", due_bucket=None), {}),
    "a pending run outside the due index": (
        "G9",
        REPLAY,
        DIED,
        row("pending", generation=2, due_bucket=None),
        {},
    ),
    "a done run that is still watched": (
        "G9",
        MINE,
        LEASED,
        row("done", due_bucket="1", due_at=NOW),
        {},
    ),
    "a dead run among the open ones": ("G9", MINE, LEASED, {**DIED, "due_at": NOW}, {}),
    "a leased run among the dead ones": (
        "G1",
        Actor("processor", message=message(1, NOW + 1)),
        DIED,
        {**DIED, **LEASED, "generation": 1},
        {},
    ),
    "a finished run, claimed": ("G3", CLAIMS, row("done"), LEASED, {}),
    "a finished run, replayed": ("G3", REPLAY, row("skipped"), row("pending", generation=1), {}),
    "a finished run, forced by the reconciler": (
        "G3",
        Actor("reconciler", force=True),
        row("done"),
        row("pending"),
        {},
    ),
    "a claim over a live lease": (
        "G2",
        Actor("processor", message=message(), held=frozenset({"mine"})),
        LEASED,
        {**LEASED, "lease_id": "new"},
        {},
    ),
    "a claim through a replaced message": ("G2", CLAIMS, row("failed", generation=1), LEASED, {}),
    "a claim by a message that is ahead": (
        "G2",
        Actor("processor", message=message(2)),
        row("failed", generation=1),
        {**LEASED, "generation": 1},
        {},
    ),
    "a claim of the dead by an old message": (
        "G3",
        Actor("processor", message=message(1, NOW)),
        DIED,
        {**LEASED, "generation": 1},
        {},
    ),
    "another worker's lease, settled": (
        "G2",
        Actor("processor", "other", message=message()),
        LEASED,
        row("failed"),
        {},
    ),
    "a live lease, given up by the reconciler": ("G2", RECONCILER, LEASED, row("pending"), {}),
    "an ended lease, whose worker goes on": (
        "G2",
        Actor("reconciler", held=frozenset({"mine"})),
        ENDED,
        row("pending"),
        {},
    ),
    "done without a success": ("G1", MINE, LEASED, row("done"), {"succeeded": set()}),
    "a deferral that costs an attempt": ("G1", MINE, LEASED, row("deferred"), {}),
    "a parked run, sent early": (
        "G1",
        RECONCILER,
        row("held", parked=True, next_attempt_at=NOW + SKEW_MS + 1),
        row("pending"),
        {},
    ),
    "exhausted before its time": (
        "G1",
        MINE,
        LEASED,
        row("dead_letter", last_error="exhausted: down"),
        {"spent": {RUN: LIMIT - 1}},
    ),
    "dead of a rolling deployment": (
        "G1",
        MINE,
        {**LEASED, "unknown_since": NOW - ROLLING_MS + SKEW_MS + 1},
        row("dead_letter", last_error="permanent: mail is not in this deployment"),
        {},
    ),
    "given up too early": (
        "G1",
        RECONCILER,
        row("pending", resends=len(RESENDS) - 1),
        row("dead_letter", last_error="lost: never received"),
        {},
    ),
    "let wait under its old generation": ("G2", CLAIMS, {}, {**LET_WAIT, "generation": 0}, {}),
    "let wait under a generation that is ahead": (
        "G2",
        CLAIMS,
        {},
        {**LET_WAIT, "generation": 2},
        {},
    ),
    "let wait by a message that was replaced": (
        "G2",
        CLAIMS,
        LET_WAIT,
        {**LET_WAIT, "generation": 2},
        {},
    ),
    "let wait at the cost of an attempt": (
        "G1",
        CLAIMS,
        {},
        {**LET_WAIT, "attempts_in_round": 1},
        {},
    ),
    "let wait although a person has it": (
        "G1",
        CLAIMS,
        row("held", attempt_count=0),
        LET_WAIT,
        {},
    ),
    "resumed, and paused all the while": (
        "G1",
        RECONCILER,
        row("deferred", parked=True, waits_for="resumption", next_attempt_at=NOW + 3_600_000),
        row("pending"),
        {"paused": {"mail": NOW - PASS_MS}},
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_write_that_may_be_is_let_through(name: str) -> None:
    write(*GOOD[name])


@pytest.mark.parametrize("name", BAD)
def test_a_write_that_may_not_be_is_seen(name: str) -> None:
    guarantee, actor, old, new, notes = BAD[name]
    with pytest.raises(Violation) as violation:
        write(actor, old, new, **notes)
    assert violation.value.guarantee == guarantee


@pytest.mark.parametrize(
    ("actor", "old", "new", "spent"),
    [
        (CLAIMS, row("failed"), LEASED, LIMIT + 1),
        (MINE, LEASED, row("failed"), LIMIT),
        (MINE, LEASED, row("deferred", attempt_count=0), LIMIT - 1),
        (REPLAY, DIED, row("pending", generation=2), 0),
        (MINE, LEASED, row("dead_letter", last_error="permanent: no"), 0),
    ],
    ids=["claimed", "failed", "deferred", "replayed", "died"],
)
def test_a_round_s_attempts_are_counted(actor: Actor, old: Item, new: Item, spent: int) -> None:
    assert write(actor, old, new).spent == {RUN: spent}


def test_a_forced_replay_is_noted() -> None:
    assert write(*GOOD["a replay by force"]).forced == {RUN}
    assert write(*GOOD["a replay"]).forced == set()


def test_the_pause_between_two_messages_is_the_reconciler_s_own() -> None:
    assert timedelta(milliseconds=RESEND_PAUSE_MS) == RESENDS[0] == min(RESENDS)
