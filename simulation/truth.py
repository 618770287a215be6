"""What really happened, noted outside the inbox, and what may never happen.

Every check names the guarantee it breaks. They look at single writes and calls; what has to
hold once everything has healed is in `healing`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from simulation.scenario import Letter
from webhook_inbox import bodies
from webhook_inbox.ingest import Outcome, Receipt
from webhook_inbox.memory import MemoryBlobs
from webhook_inbox.model import Status
from webhook_inbox.ports import Item, Key
from webhook_inbox.reference import Reference
from webhook_inbox.rows import RUN_PREFIX, identify

RESEND_PAUSE_MS: Final = 15 * 60_000
FINISHED: Final = frozenset({"done", "skipped"})
OPEN: Final = frozenset({"pending", "failed", "deferred", "held", "dead_letter"})

# source, event id, handler
RunName = tuple[str, str, str]


class Violation(AssertionError):
    """A guarantee is broken."""

    def __init__(self, guarantee: str, text: str) -> None:
        super().__init__(f"{guarantee}: {text}")
        self.guarantee = guarantee
        self.text = text


def run_name(key: Key) -> RunName:
    """Returns the run a row's key names."""
    return *identify(key.pk), key.sk.removeprefix(RUN_PREFIX)


def named(reference: Reference) -> RunName:
    """Returns the run a message names."""
    return reference.source, reference.event_id, reference.handler


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a call.

    `lease` is the one it claimed, "" for none; `held` are those of all workers that are alive.
    """

    kind: str
    lease: str = ""
    letter: Letter | None = None
    force: bool = False
    held: frozenset[str] = frozenset()


@dataclass(slots=True)
class Truth:
    """The world's own notes.

    Attributes:
        acknowledged: (source, event id) that were answered with a 2xx.
        contents: the body under which each event was first stored.
        posts: how often each run reached its sink.
        keys: the idempotency key each run used.
        succeeded: runs of which an attempt ended well.
        spent: attempts of each run in its present round.
        sends: messages sent for each run.
        resent: when the reconciler last sent a run with a ticket.
        forced: finished runs that an operator had replayed by name.
        troubled: runs something went wrong for, beyond their handler's own doing.
        misdone: runs whose handler did not simply succeed.
        shaken: handlers that were missing or broken in a deployment.
    """

    acknowledged: set[tuple[str, str]] = field(default_factory=set)
    contents: dict[tuple[str, str], bytes] = field(default_factory=dict)
    posts: dict[RunName, int] = field(default_factory=dict)
    keys: dict[RunName, str] = field(default_factory=dict)
    succeeded: set[RunName] = field(default_factory=set)
    spent: dict[RunName, int] = field(default_factory=dict)
    sends: dict[RunName, int] = field(default_factory=dict)
    resent: dict[tuple[RunName, int], int] = field(default_factory=dict)
    forced: set[RunName] = field(default_factory=set)
    troubled: set[RunName] = field(default_factory=set)
    misdone: set[RunName] = field(default_factory=set)
    shaken: set[str] = field(default_factory=set)

    # -- keeping

    def copy(self) -> "Truth":
        """Returns notes of their own."""
        return Truth(*(getattr(self, name).copy() for name in self.__slots__))

    def key(self) -> tuple[frozenset[Any], ...]:
        """Returns what tells these notes from others."""
        notes = (getattr(self, name) for name in self.__slots__)
        return tuple(frozenset(n.items() if isinstance(n, dict) else n) for n in notes)

    def forget_event(self, event: tuple[str, str]) -> None:
        """An event has expired: its id may be used again, and nobody answers for it."""
        self.acknowledged.discard(event)
        self.contents.pop(event, None)

    def forget_run(self, run: RunName) -> None:
        """A run's row is gone: an event of the same id begins it anew."""
        for notes in (self.posts, self.spent, self.sends):
            notes.pop(run, None)
        self.succeeded.discard(run)

    # -- ingest

    def answered(self, letter: Letter, receipt: Receipt, row: Item | None) -> None:
        """Notes the answer to a delivery; `row` is its event's, as it is stored."""
        if letter.forged:
            refused = {Outcome.REJECTED, Outcome.UNAVAILABLE, Outcome.BROKEN}
            _must("G6", receipt.outcome in refused, f"{letter.name} got {receipt.outcome}")
            return
        if receipt.outcome is Outcome.CONFLICT:
            _must("G7", receipt.status == 409, f"a conflict was answered with {receipt.status}")
            return
        if receipt.status >= 300 or receipt.outcome is Outcome.REPLAYED:
            return
        event = letter.source, letter.event_id
        _must("G1", row is not None, f"{letter.name} was acknowledged and is not stored")
        same = self.contents[event] == letter.body
        _must("G7", same, f"{letter.name} was acknowledged as a duplicate of other content")
        self.acknowledged.add(event)

    # -- writes

    def wrote(
        self,
        actor: Actor,
        key: Key,
        old: Item | None,
        new: Item | None,
        now: int,
        blobs: MemoryBlobs,
    ) -> None:
        """Checks one write of the table."""
        if actor.letter is not None and actor.letter.forged:
            _must("G6", not key.pk.startswith("event#"), f"{actor.letter.name} wrote {key}")
        if key.sk == "event" and new is not None:
            self._stored(old, new, now, blobs)
        elif key.sk.startswith(RUN_PREFIX) and new is not None:
            self._changed(actor, run_name(key), old or {}, new, now)

    def _stored(self, old: Item | None, new: Item, now: int, blobs: MemoryBlobs) -> None:
        alive = old is not None and old["expires_at"] * 1000 > now
        _must("G1", not alive or old == new, "a stored event was changed")
        body = bodies.unpack(new, blobs)
        event = new["source"], new["event_id"]
        self.contents[event] = body
        if "guard" in new:
            others = [e for e, b in self.contents.items() if b == body and e[0] == event[0]]
            _must("G6", others == [event], f"one signed content was stored as {others}")

    def _changed(self, actor: Actor, run: RunName, old: Item, new: Item, now: int) -> None:
        status, before = new["status"], old.get("status")
        _must("G2", new.get("ticket", 0) >= old.get("ticket", 0), f"{run}: the ticket went back")
        watched = "attention" in new
        _must("G9", watched or status not in OPEN, f"{run} is {status} and nobody watches it")
        _must("G9", not watched or status not in FINISHED, f"{run} is {status}, still watched")
        if before in FINISHED:
            self._reopened(actor, run, new)
        elif status == Status.PROCESSING and new.get("lease_id") != old.get("lease_id"):
            self._claimed(actor, run, old)
        elif before == Status.PROCESSING and status != Status.PROCESSING:
            self._settled(actor, run, old, new, now)
        if actor.kind == "replay" and new.get("ticket", 0) > old.get("ticket", 0):
            self.spent[run] = 0
        if status == Status.DEAD_LETTER and before != Status.DEAD_LETTER:
            self.spent[run] = 0

    def _reopened(self, actor: Actor, run: RunName, new: Item) -> None:
        if new["status"] not in FINISHED:
            _must("G3", actor.kind == "replay" and actor.force, f"{run} was finished; {actor.kind}")
            self.forced.add(run)

    def _claimed(self, actor: Actor, run: RunName, old: Item) -> None:
        lease = old.get("lease_id", "")
        live = old.get("status") == Status.PROCESSING and lease in actor.held
        _must("G2", not live or lease == actor.lease, f"{run} was claimed over a live lease")
        self.spent[run] = self.spent.get(run, 0) + 1

    def _settled(self, actor: Actor, run: RunName, old: Item, new: Item, now: int) -> None:
        ours = actor.kind == "processor" and actor.lease == old.get("lease_id")
        over = old.get("claimed_until", 0) < now
        _must("G2", ours or over or actor.kind == "late", f"{run}: {actor.kind} ended a live lease")
        _must("G2", ours or old.get("lease_id") not in actor.held, f"{run} taken from its worker")
        if new["status"] == Status.DONE:
            _must("G1", run in self.succeeded, f"{run} is done and no attempt succeeded")
        if new.get("attempt_count", 0) < old.get("attempt_count", 0):
            self.spent[run] -= 1

    # -- messages and handlers

    def sent(self, actor: Actor, texts: Iterable[str], now: int) -> None:
        """Notes messages that a queue took."""
        for text in texts:
            reference = Reference.decode(text)
            run = named(reference)
            self.sends[run] = self.sends.get(run, 0) + 1
            if actor.kind == "reconciler":
                last = self.resent.get((run, reference.ticket), now - RESEND_PAUSE_MS)
                _must("flood", last <= now - RESEND_PAUSE_MS, f"{run} was sent again at once")
                self.resent[run, reference.ticket] = now

    def begins(
        self, run: RunName, content: str, row: Item | None, *, limit: int, busy: bool
    ) -> None:
        """Checks that an attempt may reach its handler."""
        _must("G2", not busy, f"{run}: two attempts at once")
        stored = row or {}
        _must("G3", stored.get("status") not in FINISHED, f"{run} was finished and is run again")
        expected = sha256(self.contents[run[:2]]).hexdigest()
        _must("G7", content == expected, f"{run}: the handler was given other content")
        _must("G1", self.spent.get(run, 0) <= limit, f"{run}: more attempts than {limit}")

    def posted(self, run: RunName, key: str) -> None:
        """Notes an effect at the sink."""
        others = {self.keys.get(run, key)} | {r for r, k in self.keys.items() if k == key}
        _must("G4", others <= {key, run}, f"{run} posts with {key}, {others}")
        self.keys[run] = key
        self.posts[run] = self.posts.get(run, 0) + 1

    def trouble(self, event: tuple[str, str], handlers: Iterable[str]) -> None:
        """Notes that something went wrong for these runs."""
        self.troubled.update((*event, handler) for handler in handlers)


def _must(guarantee: str, holds: bool, text: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise Violation(guarantee, text)
