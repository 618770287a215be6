"""What really happened, noted outside the inbox, and what may never happen.

Every check names the guarantee it breaks. What has to hold of a run's row from one write to the
next is in `transitions`; what has to hold once everything has healed, in `healing`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any, Final

from simulation.worlds.scenario import Letter
from webhook_inbox.adapters.memory import MemoryBlobs
from webhook_inbox.domain.ports import Item, Key, Message
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.schema import RUN_PREFIX, identify
from webhook_inbox.queue.message import RunMessage

RESEND_PAUSE_MS: Final = 15 * 60_000
# Adopted or woken once, sent again six times, and each of these twice where two passes overlap.
RESENDS: Final = 14
FINISHED: Final = frozenset({"done", "skipped"})

# source, event id, handler
RunName = tuple[str, str, str]


class Violation(AssertionError):
    """A guarantee is broken."""

    def __init__(self, guarantee: str, text: str) -> None:
        super().__init__(f"{guarantee}: {text}")
        self.guarantee = guarantee
        self.text = text


def must(guarantee: str, holds: bool, text: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raises a violation of the guarantee unless this holds."""
    if not holds:
        raise Violation(guarantee, text)


def run_name(key: Key) -> RunName:
    """Returns the run a row's key names."""
    return *identify(key.pk), key.sk.removeprefix(RUN_PREFIX)


def named(reference: RunMessage) -> RunName:
    """Returns the run a message names."""
    return reference.source, reference.event_id, reference.handler


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a call.

    Attributes:
        kind: which function; "late" for a call that was given up or repeated.
        lease: the lease it claimed and has not settled.
        letter: what ingest was given.
        message: what a processor was given.
        replays: whether it does what an operator's replay asked for.
        force: whether that may reopen finished runs.
        held: the leases of all other workers that are alive and in time.
    """

    kind: str
    lease: str = ""
    letter: Letter | None = None
    message: Message | None = None
    replays: bool = False
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
        hopes: runs that an operator redrove, and the attempts they had by then.
        sends: messages sent for each run.
        receives: how often messages of each run were received.
        resent: when the reconciler last sent a run with a generation, and how often it did.
        forced: finished runs that an operator had replayed by name.
        troubled: runs something went wrong for, beyond their handler's own doing.
        lost: runs of which the queue lost a message.
        misdone: runs whose handler did not simply succeed.
        shaken: handlers that were missing or broken in a deployment.
        begun: the effects that were begun, each with its attempt's lease.
        repeats: how often a person let an effect in doubt be repeated.
        circuits: how often each destination's circuit has changed, and when last.
        calls: when each destination was called lately.
        versions: the newest version that each handler began of each ordering key.
        paused: since when handlers are paused.
        controls: how often somebody said whether each handler is paused.
        earlier: the events that were acknowledged before an event was first sent.
    """

    acknowledged: set[tuple[str, str]] = field(default_factory=set)
    contents: dict[tuple[str, str], bytes] = field(default_factory=dict)
    posts: dict[RunName, int] = field(default_factory=dict)
    keys: dict[RunName, str] = field(default_factory=dict)
    succeeded: set[RunName] = field(default_factory=set)
    spent: dict[RunName, int] = field(default_factory=dict)
    hopes: dict[RunName, int] = field(default_factory=dict)
    sends: dict[RunName, int] = field(default_factory=dict)
    receives: dict[RunName, int] = field(default_factory=dict)
    resent: dict[tuple[RunName, int], tuple[int, int]] = field(default_factory=dict)
    forced: set[RunName] = field(default_factory=set)
    troubled: set[RunName] = field(default_factory=set)
    lost: set[RunName] = field(default_factory=set)
    misdone: set[RunName] = field(default_factory=set)
    shaken: set[str] = field(default_factory=set)
    begun: set[tuple[RunName, str]] = field(default_factory=set)
    repeats: dict[RunName, int] = field(default_factory=dict)
    circuits: dict[str, tuple[int, int]] = field(default_factory=dict)
    calls: dict[str, tuple[int, ...]] = field(default_factory=dict)
    versions: dict[tuple[str, str], int] = field(default_factory=dict)
    paused: dict[str, int] = field(default_factory=dict)
    controls: dict[str, int] = field(default_factory=dict)
    earlier: dict[tuple[str, str], frozenset[tuple[str, str]]] = field(default_factory=dict)

    # -- keeping

    def copy(self) -> "Truth":
        """Returns notes of their own."""
        return Truth(*[getattr(self, name).copy() for name in _NOTES])

    def key(self) -> tuple[frozenset[Any], ...]:
        """Returns what tells these notes from others."""
        notes = [getattr(self, name) for name in _NOTES]
        return tuple([frozenset(n.items() if isinstance(n, dict) else n) for n in notes])

    def forget_event(self, event: tuple[str, str]) -> None:
        """An event has expired: its id may be used again, and nobody answers for it."""
        self.acknowledged.discard(event)
        self.contents.pop(event, None)
        self.earlier.pop(event, None)

    def told(self, handler: str, now: int, *, paused: bool) -> None:
        """A person has paused a handler, or resumed it."""
        self.controls[handler] = self.controls.get(handler, 0) + 1
        if paused:
            self.paused.setdefault(handler, now)
        else:
            self.paused.pop(handler, None)

    def forget_run(self, run: RunName) -> None:
        """A run's row is gone: an event of the same id begins it anew."""
        for notes in (self.posts, self.spent, self.hopes):
            notes.pop(run, None)
        self.succeeded.discard(run)

    def trouble(self, event: tuple[str, str], handlers: Iterable[str]) -> None:
        """Notes that something went wrong for these runs."""
        self.troubled.update((*event, handler) for handler in handlers)

    # -- ingest

    def answered(self, letter: Letter, receipt: Receipt, row: Item | None) -> None:
        """Checks the answer to a delivery; `row` is its event's, as it is stored."""
        outcome, event = receipt.outcome, letter.event
        if letter.forged:
            refused = {IngestOutcome.REJECTED, IngestOutcome.UNAVAILABLE, IngestOutcome.BROKEN}
            must("G6", outcome in refused, f"{letter.name} got {outcome}")
            return
        if outcome is IngestOutcome.CONFLICT:
            must("G7", receipt.status == 409, f"a conflict was answered with {receipt.status}")
            return
        if receipt.status >= 300:
            return
        if outcome is IngestOutcome.REPLAYED:
            stored = [e for e, body in self.contents.items() if body == letter.body]
            must("G6", stored != [], f"{letter.name} was taken for a replay of nothing")
            return
        must("G1", row is not None, f"{letter.name} was acknowledged and is not stored")
        same = self.contents[event] == letter.body
        must("G7", same, f"{letter.name} was acknowledged as a duplicate of other content")
        for handler in (row or {})["runs"] if outcome is IngestOutcome.ACCEPTED else ():
            sent = self.sends.get((*event, handler), 0)
            must("G1", sent > 0, f"{letter.name} was acknowledged and {handler} is not sent")
        self.acknowledged.add(event)

    def stored(self, old: Item | None, new: Item, now: int, blobs: MemoryBlobs) -> None:
        """Checks that an event is stored."""
        alive = old is not None and old["expires_at"] * 1000 > now
        must("G1", not alive or old == new, "a stored event was changed")
        try:
            body = payloads.unpack(new, blobs)
        except Exception as error:
            raise Violation("G1", f"an event was stored without its body: {error}") from error
        event = new["source"], new["event_id"]
        self.contents[event] = body
        if "guard" in new:
            others = [e for e, b in self.contents.items() if b == body and e[0] == event[0]]
            must("G6", others == [event], f"one signed content was stored as {others}")

    # -- messages

    def sent(self, actor: Actor, reference: RunMessage, generation: int, now: int) -> None:
        """Checks a message that a queue took; `generation` is its run's, 0 where it has no row."""
        run = named(reference)
        self.sends[run] = self.sends.get(run, 0) + 1
        ahead = reference.generation > generation
        must(
            "G1",
            not ahead,
            f"{run} was sent with generation {reference.generation}, its row has {generation}",
        )
        if actor.kind == "replay":
            must("G1", reference.generation > 0, f"{run} was replayed under its first generation")
        if actor.kind == "processor" and actor.message is not None:
            replaced = RunMessage.decode(actor.message.body)
            # A batch's worker sends the runs of its items, too.
            fresh = reference.generation > replaced.generation or named(replaced) != run
            must("G1", fresh, f"{run}: a copy has the generation of the message it replaces")
        if actor.kind == "reconciler":
            last, times = self.resent.get((run, reference.generation), (now - RESEND_PAUSE_MS, 0))
            must("flood", last <= now - RESEND_PAUSE_MS, f"{run} was sent again at once")
            must("flood", times < RESENDS, f"{run} was sent again {times + 1} times")
            self.resent[run, reference.generation] = now, times + 1

    def received(self, reference: RunMessage) -> None:
        """Notes that a message was received."""
        run = named(reference)
        self.receives[run] = self.receives.get(run, 0) + 1

    def redriven(self, reference: RunMessage, row: Item | None) -> None:
        """Notes that an operator redrove a message: its run has to be tried again."""
        if row is None or row["status"] != "dead_letter":
            return
        if row.get("generation", 0) == reference.generation:
            self.hopes[named(reference)] = row.get("attempt_count", 0)

    # -- handlers

    def begins(
        self, run: RunName, content: str, row: Item | None, *, limit: int, busy: bool
    ) -> None:
        """Checks that an attempt may reach its handler."""
        must("G2", not busy, f"{run}: two attempts at once")
        status = (row or {}).get("status")
        must("G3", status not in FINISHED, f"{run} was finished and is run again")
        expected = sha256(self.contents[run[:2]]).hexdigest()
        must("G7", content == expected, f"{run}: the handler was given other content")
        must("G1", self.spent.get(run, 0) <= limit, f"{run}: more attempts than {limit}")

    def posted(self, run: RunName, key: str, *, shared: bool = False) -> None:
        """Checks an effect at the sink."""
        others: set[Any] = {self.keys.get(run, key)}
        if not shared:
            others |= {r for r, k in self.keys.items() if k == key}
        must("G4", others <= {key, run}, f"{run} posts with {key}, {others}")
        self.keys[run] = key
        self.posts[run] = self.posts.get(run, 0) + 1


_NOTES: Final = tuple(note.name for note in fields(Truth))
