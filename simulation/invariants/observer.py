"""Notes the observable effects of a world outside the inbox and checks each of them.

Every violation names the broken guarantee. `transitions` checks the writes of a run's row;
`convergence` checks the final state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any, Final

from simulation.worlds.scenario import Webhook, is_typed, signed_part
from webhook_inbox.adapters.memory import MemoryBlobs
from webhook_inbox.domain.ports import Item, Key, Message
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.ledger import payloads
from webhook_inbox.ledger.schema import RUN_PREFIX, identify
from webhook_inbox.queue.message import RunMessage

RESEND_PAUSE_MS: Final = 15 * 60_000
# Adopted or resumed once and re-sent six times, each of them twice if two passes overlap.
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
    """Raises a violation of the guarantee unless `holds`."""
    if not holds:
        raise Violation(guarantee, text)


def run_name(key: Key) -> RunName:
    """Returns the run that a row's key identifies."""
    return *identify(key.pk), key.sk.removeprefix(RUN_PREFIX)


def named(reference: RunMessage) -> RunName:
    """Returns the run that a message refers to."""
    return reference.source, reference.event_id, reference.handler


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller of a port.

    Attributes:
        kind: the function; "late" for a delayed or repeated call.
        lease: the acquired lease that is not settled yet.
        webhook: the webhook that ingest received.
        message: the message that a processor received.
        replays: whether the call belongs to an operator's replay.
        force: whether that replay may reopen finished runs.
        held: the leases of all other workers that are alive and within their timeout.
        new_keys: whether that replay may give its runs new keys.
        by_hand: whether a person makes the call.
        person: the person who decides a request, "" for any other caller.
        deployment: the deployment of a pass of the reconciler.
        overdue_until: by lane, the latest due time, in ms, of an entry that the pass may write.
    """

    kind: str
    lease: str = ""
    webhook: Webhook | None = None
    message: Message | None = None
    replays: bool = False
    force: bool = False
    held: frozenset[str] = frozenset()
    new_keys: bool = False
    by_hand: bool = False
    person: str = ""
    deployment: str = ""
    overdue_until: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Observer:
    """The notes of a world.

    Attributes:
        acknowledged: the events answered with a 2xx, by source and id.
        contents: the stored body of each event.
        posts: the number of times each run reached its sink.
        keys: the idempotency keys of each run.
        renewed: how often each run got new keys.
        succeeded: runs with a successful attempt.
        spent: the attempts of each run in its current round.
        redriven_runs: the redriven runs and their attempts before the redrive.
        sends: the number of messages sent for each run.
        receives: the number of receives of messages of each run.
        resent: by run and generation, the time and number of sends by the reconciler.
        forced: finished runs that a forced replay reopened.
        troubled: runs affected by a fault outside their handler.
        lost: runs whose message the queue lost.
        handler_failed: runs with an attempt that did not succeed at once.
        unloadable: handlers that were missing or broken in a deployment.
        begun: the begun effects, each with the lease of its attempt.
        repeats: the number of approved repetitions of an effect in doubt.
        denied: the attempts whose probe did not find the effect, each with its lease.
        circuits: the number of changes of each destination's circuit, and the last time.
        calls: the times of the recent calls of each destination.
        versions: the newest version that each handler began, by ordering key.
        paused: the paused handlers and tenants ("tenant#t1"), and the start of each pause.
        controls: the number of pauses and resumptions of each handler and tenant.
        earlier: by event, the events acknowledged before it was first sent.
        decided: runs that a person has approved.
        erased: the events whose payload was erased.
        cleared: the events of which an erasure reported that no text of a handler is left.
        emptied: the events of which an erasure reported that no payload is left, or arrives.
        began: by source and signed content, the event whose runs began without a decision.
        told: the messages about each request to each person.
    """

    acknowledged: set[tuple[str, str]] = field(default_factory=set)
    contents: dict[tuple[str, str], bytes] = field(default_factory=dict)
    posts: dict[RunName, int] = field(default_factory=dict)
    keys: dict[RunName, tuple[str, ...]] = field(default_factory=dict)
    renewed: dict[RunName, int] = field(default_factory=dict)
    succeeded: set[RunName] = field(default_factory=set)
    spent: dict[RunName, int] = field(default_factory=dict)
    redriven_runs: dict[RunName, int] = field(default_factory=dict)
    sends: dict[RunName, int] = field(default_factory=dict)
    receives: dict[RunName, int] = field(default_factory=dict)
    resent: dict[tuple[RunName, int], tuple[int, int]] = field(default_factory=dict)
    forced: set[RunName] = field(default_factory=set)
    troubled: set[RunName] = field(default_factory=set)
    lost: set[RunName] = field(default_factory=set)
    handler_failed: set[RunName] = field(default_factory=set)
    unloadable: set[str] = field(default_factory=set)
    begun: set[tuple[RunName, str]] = field(default_factory=set)
    repeats: dict[RunName, int] = field(default_factory=dict)
    denied: set[tuple[RunName, str]] = field(default_factory=set)
    circuits: dict[str, tuple[int, int]] = field(default_factory=dict)
    calls: dict[str, tuple[int, ...]] = field(default_factory=dict)
    versions: dict[tuple[str, str], int] = field(default_factory=dict)
    paused: dict[str, int] = field(default_factory=dict)
    controls: dict[str, int] = field(default_factory=dict)
    earlier: dict[tuple[str, str], frozenset[tuple[str, str]]] = field(default_factory=dict)
    decided: set[RunName] = field(default_factory=set)
    erased: set[tuple[str, str]] = field(default_factory=set)
    cleared: set[tuple[str, str]] = field(default_factory=set)
    emptied: set[tuple[str, str]] = field(default_factory=set)
    began: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    told: dict[tuple[str, str, str], int] = field(default_factory=dict)

    # -- the notes

    def copy(self) -> "Observer":
        """Returns an independent copy."""
        return Observer(*[getattr(self, name).copy() for name in _NOTES])

    def key(self) -> tuple[frozenset[Any], ...]:
        """Returns a value that identifies these notes."""
        notes = [getattr(self, name) for name in _NOTES]
        return tuple([frozenset(n.items() if isinstance(n, dict) else n) for n in notes])

    def forget_event(self, event: tuple[str, str]) -> None:
        """Forgets an expired event; its id may be used again."""
        self.acknowledged.discard(event)
        self.contents.pop(event, None)
        self.earlier.pop(event, None)
        self.erased.discard(event)
        self.cleared.discard(event)
        self.emptied.discard(event)
        self.began = {content: e for content, e in self.began.items() if e != event}

    def pause_changed(self, name: str, now: int, *, paused: bool) -> None:
        """Notes that a handler or tenant was paused or resumed."""
        self.controls[name] = self.controls.get(name, 0) + 1
        if paused:
            self.paused.setdefault(name, now)
        else:
            self.paused.pop(name, None)

    def forget_run(self, run: RunName) -> None:
        """Forgets a run whose row was deleted; an event with the same id starts it again."""
        for notes in (self.posts, self.spent, self.redriven_runs):
            notes.pop(run, None)
        self.succeeded.discard(run)

    def mark_troubled(self, event: tuple[str, str], handlers: Iterable[str]) -> None:
        """Marks runs as affected by a fault."""
        self.troubled.update((*event, handler) for handler in handlers)

    # -- ingest

    def answered(self, webhook: Webhook, receipt: Receipt, row: Item | None) -> None:
        """Checks the answer to a delivery; `row` is the stored row of its event."""
        outcome, event = receipt.outcome, webhook.event
        if webhook.forged:
            refused = {IngestOutcome.REJECTED, IngestOutcome.UNAVAILABLE, IngestOutcome.BROKEN}
            must("G6", outcome in refused, f"{webhook.name} got {outcome}")
            return
        if outcome is IngestOutcome.CONFLICT:
            must("G7", receipt.status == 409, f"a conflict was answered with {receipt.status}")
            return
        if receipt.status >= 300:
            return
        if outcome is IngestOutcome.IGNORED:
            typed = is_typed(webhook.source, webhook.body)
            must("G1", typed, f"{webhook.name} was acknowledged and dropped without its type")
            return
        if outcome is IngestOutcome.REPLAYED:
            # A second honest event may have the body of the first, so that no copy is dropped.
            signed = signed_part(webhook.body)
            variants = [b for b in self.contents.values() if signed_part(b) == signed]
            other = webhook.grafted or (variants and webhook.body not in variants)
            must("G1", bool(other), f"{webhook.name} was acknowledged and dropped")
            return
        must("G1", row is not None, f"{webhook.name} was acknowledged but not stored")
        same = webhook.has_content_of(self.contents[event])
        must("G7", same, f"{webhook.name} was acknowledged as a duplicate of other content")
        for handler in (row or {})["runs"] if outcome is IngestOutcome.ACCEPTED else ():
            sent = self.sends.get((*event, handler), 0)
            must("G1", sent > 0, f"{webhook.name} was acknowledged but {handler} was not sent")
        self.acknowledged.add(event)

    def stored(self, old: Item | None, new: Item, now: int, blobs: MemoryBlobs) -> None:
        """Checks a write of an event."""
        alive = old is not None and old["expires_at"] * 1000 > now
        # An erased event may also have expired.
        if "erased_at" in new:
            self._erased(old or {}, new, blobs)
            return
        must("G1", not alive or old == new, "a stored event was changed")
        try:
            body = payloads.unpack(new, blobs)
        except Exception as error:
            raise Violation("G1", f"an event was stored without its body: {error}") from error
        event = identify(new["pk"])
        signed = signed_part(body)
        same = {e for e, b in self.contents.items() if signed_part(b) == signed}
        others = {event_id for source, event_id in same if source == event[0]}
        self.contents[event] = body
        if "guard" in new and others - {event[1]}:
            linked = new.get("identical_to") in others
            must("G6", linked, f"{event} is not linked to a first event of its body: {others}")

    def _erased(self, old: Item, new: Item, blobs: MemoryBlobs) -> None:
        """Checks that an erasure removes the payload and nothing else."""
        payload = {"body", "body_ref", "headers", "erased_at"}
        kept = all(old.get(name) == new.get(name) for name in {*old, *new} - payload)
        must("erasure", kept, "an erasure changed the identity of its event")
        must("erasure", "body" not in new and not new["headers"], "an erasure left the payload")
        gone = "body_ref" in new or old.get("body_ref") not in blobs.objects
        must("erasure", gone, "an erasure forgot a body that is still stored")
        self.erased.add(identify(new["pk"]))

    # -- messages

    def sent(self, actor: Actor, reference: RunMessage, generation: int, now: int) -> None:
        """Checks a sent message; `generation` is that of its run's row, 0 without a row."""
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
            # The worker of a batch also sends the runs of its items.
            fresh = reference.generation > replaced.generation or named(replaced) != run
            must("G1", fresh, f"{run}: a copy has the generation of the message it replaces")
        if actor.kind == "reconciler":
            last, times = self.resent.get((run, reference.generation), (now - RESEND_PAUSE_MS, 0))
            must("flood", last <= now - RESEND_PAUSE_MS, f"{run} was sent again too early")
            must("flood", times < RESENDS, f"{run} was sent again {times + 1} times")
            self.resent[run, reference.generation] = now, times + 1

    def received(self, reference: RunMessage) -> None:
        """Notes that a message was received."""
        run = named(reference)
        self.receives[run] = self.receives.get(run, 0) + 1

    def redriven(self, reference: RunMessage, row: Item | None) -> None:
        """Notes that an operator redrove a message; its run must be attempted again."""
        if row is None or row["status"] != "dead_letter":
            return
        if row.get("generation", 0) == reference.generation:
            self.redriven_runs[named(reference)] = row.get("attempt_count", 0)

    # -- handlers

    def attempt_began(
        self, run: RunName, content: str, row: Item | None, *, limit: int, busy: bool
    ) -> None:
        """Checks that an attempt may reach its handler."""
        must("G2", not busy, f"{run}: two attempts at once")
        status = (row or {}).get("status")
        must("G3", status not in FINISHED, f"{run} was finished and is attempted again")
        expected = sha256(self.contents[run[:2]]).hexdigest()
        must("G7", content == expected, f"{run}: the handler received other content")
        must("G1", self.spent.get(run, 0) <= limit, f"{run}: more attempts than {limit}")

    def content_began(self, run: RunName, event: Item) -> None:
        """Checks that signed content begins by itself for one event only."""
        if run in self.decided or run in self.forced:
            return
        typed = is_typed(run[0], self.contents.get(run[:2], b""))
        must("G6", typed, f"{run} began without a decision; the type of its event is not certain")
        if "guard" not in event:
            return
        content = run[0], event["guard"]
        first = self.began.setdefault(content, run[:2])
        must("G6", first == run[:2], f"{run} began without a decision; its body ran as {first}")

    def posted(self, run: RunName, key: str, *, shared: bool = False) -> None:
        """Checks a call of the sink."""
        used = self.keys.get(run, ())
        if key not in used:
            permitted = len(used) <= self.renewed.get(run, 0)
            must("G4", permitted, f"{run} posts with {key} after {used}")
            self.keys[run] = (*used, key)
        others = () if shared else [r for r, keys in self.keys.items() if r != run and key in keys]
        must("G4", not others, f"{run} posts with {key}, as {others}")
        self.posts[run] = self.posts.get(run, 0) + 1


_NOTES: Final = tuple(note.name for note in fields(Observer))
