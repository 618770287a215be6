"""Checks every write of a run's row (G1, G2, G3, G9).

(no row) ─► processing ─► done, failed, deferred, dead_letter      by the lease's holder
                │ lease expired: declared dead, taken over         by any actor, conditionally
dead_letter ─► processing        by a message sent after the death
parked ─► pending                by the reconciler, when due
held ─► pending                  by a person, or to look at the request that people decide
any, open ─► pending             by replay, with a higher generation
any but held and processing ─► deferred   before a lease, under the next generation
"""

from typing import Final

from simulation.engine.acting import CUSTOMER, REFUSAL
from simulation.invariants.observer import FINISHED, Actor, Observer, RunName, must
from simulation.worlds.scenario import SOURCES
from webhook_inbox.domain.death import REMEDIES
from webhook_inbox.domain.manifest import SPLIT
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Item
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.deadlines import RESENDS
from webhook_inbox.ledger.pauses import RESUMPTIONS, TENANT_PREFIX, TENANT_RESUMPTION
from webhook_inbox.ledger.schema import DEAD_FROM
from webhook_inbox.queue.line import TURN, TURN_CHECK
from webhook_inbox.queue.message import RunMessage

SKEW_MS: Final = 5_000
PASS_MS: Final = 300_000
CHECK_MS: Final = int(TURN_CHECK.total_seconds() * 1000)
ROLLING_MS: Final = 3_600_000
ATTEMPTS: Final = ("attempt_count", "attempts_in_round")
OPEN: Final = frozenset({"pending", "failed", "deferred", "held", "dead_letter"})


def changed(
    observer: Observer, actor: Actor, run: RunName, old: Item, new: Item, *, now: int, limit: int
) -> None:
    """Checks one write of a run's row.

    Args:
        observer: the notes of the world.
        actor: the writer.
        run: the run.
        old: the row before; empty if there was none.
        new: the row after.
        now: the time, in ms.
        limit: the attempts per round.
    """
    status, before = new["status"], old.get("status")
    must("G2", _generation(new) >= _generation(old), f"{run}: the generation decreased")
    _listed(run, new)
    chosen = [each["selection"] for each in new.get("replays", ()) if "selection" in each]
    must("G3", len(chosen) == len(set(chosen)), f"{run} was replayed twice from one selection")
    _keyed(observer, actor, run, old, new)
    if before in FINISHED:
        if status not in FINISHED:
            forced = actor.replays and actor.force
            must("G3", forced, f"{run} was finished and {actor.kind} reopened it")
            observer.forced.add(run)
    elif status == Status.PROCESSING and new.get("lease_id") != old.get("lease_id"):
        _claimed(observer, actor, run, old)
    elif before == Status.PROCESSING and status != Status.PROCESSING:
        _settled(observer, actor, run, old, new, now)
    by_people = actor.kind == "person" or "request" in old.get("held", {})
    if before == Status.HELD and status == Status.PENDING and by_people:
        must(
            "G2",
            _generation(new) == _generation(old) + 1,
            f"{run} was approved or woken without a new generation",
        )
    if status == Status.DEFERRED and actor.message is not None:
        _postponed(actor, run, old, new)
    if status == Status.PENDING and actor.kind == "reconciler":
        _woken(observer, run, old, now)
    if actor.replays and _generation(new) > _generation(old):
        observer.spent[run] = 0
    if status == Status.DEAD_LETTER and before != Status.DEAD_LETTER:
        _died(observer, run, old, new, now, limit)


def _keyed(observer: Observer, actor: Actor, run: RunName, old: Item, new: Item) -> None:
    added = new.get("key_version", 0) - old.get("key_version", 0)
    chosen = actor.replays and actor.new_keys and added == 1
    must("G4", added == 0 or chosen, f"{run}: {actor.kind} gave it new keys")
    if added:
        observer.renewed[run] = observer.renewed.get(run, 0) + 1


def _listed(run: RunName, new: Item) -> None:
    status, watched = new["status"], "due_bucket" in new
    left = watched or "due_at" in new
    must("G9", watched or status not in OPEN, f"{run} is {status} but not in the due index")
    must("G9", not left or status not in FINISHED, f"{run} is {status} but still in the due index")
    if watched:
        # The reconciler reads one part of the index, a search for dead runs the other.
        dead, among_dead = status == Status.DEAD_LETTER, new["due_at"] >= DEAD_FROM
        must("G9", not dead or among_dead, f"{run} is dead and not listed among the dead runs")
        must("G1", dead or not among_dead, f"{run} is {status} and listed among the dead runs")


def _claimed(observer: Observer, actor: Actor, run: RunName, old: Item) -> None:
    lease, message = old.get("lease_id", ""), actor.message
    live = old.get("status") == Status.PROCESSING and lease in actor.held
    must("G2", not live or lease == actor.lease, f"{run} was leased while another lease was live")
    if message is not None:
        generation = RunMessage.decode(message.body).generation
        # In a FIFO lane the first message of a group represents its run, even if replaced.
        current = generation == _generation(old) or (
            generation < _generation(old) and "ordering_key" in old
        )
        must("G2", current, f"{run} was leased by a replaced message")
        later = to_ms(message.sent_at) > old.get("dead_at", 0)
        dead = old.get("status") == Status.DEAD_LETTER
        must("G3", later or not dead, f"{run} was dead and was leased by an old message")
    observer.spent[run] = observer.spent.get(run, 0) + 1


def _settled(
    observer: Observer, actor: Actor, run: RunName, old: Item, new: Item, now: int
) -> None:
    ours = actor.kind == "processor" and actor.lease == old.get("lease_id")
    over = old.get("claimed_until", 0) < now
    must("G2", ours or over or actor.kind == "late", f"{run}: {actor.kind} ended a live lease")
    must("G2", ours or old.get("lease_id") not in actor.held, f"{run} taken from its worker")
    unspent = new.get("attempt_count", 0) < old.get("attempt_count", 0)
    if new["status"] == Status.DONE and run[2] != SPLIT:
        must("G1", run in observer.succeeded, f"{run} is done but no attempt succeeded")
    # An attempt that was not settled counts, even if its run is deferred afterwards.
    if new["status"] == Status.DEFERRED and ours:
        must("G1", unspent, f"{run} was deferred and an attempt was counted")
    if new["status"] == Status.HELD:
        must("G1", unspent, f"{run} was held and an attempt was counted")
    if unspent:
        observer.spent[run] -= 1


def _postponed(actor: Actor, run: RunName, old: Item, new: Item) -> None:
    """Checks that a worker may defer a run that it has not leased."""
    waits = ("status", "generation", "next_attempt_at")
    settles = old.get("status") == Status.PROCESSING and actor.lease == old.get("lease_id")
    if settles or actor.message is None or all(old.get(name) == new.get(name) for name in waits):
        return
    named = RunMessage.decode(actor.message.body)
    if (named.source, named.event_id, named.handler) != run:
        return
    next_one = _generation(new) == _generation(old) + 1
    must("G2", next_one, f"{run} was deferred without a new generation")
    current = named.generation == _generation(old) or (
        named.generation < _generation(old) and "ordering_key" in new
    )
    must("G2", current, f"{run} was deferred by a replaced message")
    must("G1", old.get("status") != Status.HELD, f"{run} was held and was deferred")
    unspent = all(old.get(name, 0) == new.get(name, 0) for name in ATTEMPTS)
    must("G1", unspent, f"{run} was deferred before its lease and an attempt was counted")


def _woken(observer: Observer, run: RunName, old: Item, now: int) -> None:
    # A pass that began earlier may still run when its handler or tenant is paused again.
    waits_for = old.get("waits_for")
    of_tenant = waits_for == TENANT_RESUMPTION
    name = TENANT_PREFIX + old.get("tenant", "") if of_tenant else run[2]
    resumed = observer.paused.get(name, now) > now - PASS_MS and waits_for in RESUMPTIONS
    early = old.get("parked", False) and old["next_attempt_at"] > now + SKEW_MS and not resumed
    must("G1", not early, f"{run} was parked and was sent before it was due")


def check_turn(observer: Observer, run: RunName, old: Item, new: Item) -> None:
    """Checks that a world without a fault needs no slow check of a run that waits for its turn."""
    checked = old.get("waits_for") == TURN and old["due_at"] - old["last_at"] >= CHECK_MS
    sent = new["status"] == Status.PENDING and new["last_at"] >= old.get("due_at", 0)
    late = checked and sent and not observer.unloadable
    must("G1", not late, f"{run} was not sent when its turn came")


def check_texts(observer: Observer, row: Item) -> None:
    """Checks that no text of a handler has a personal field, or is left after an erasure."""
    texts = [each.get("error", "") for each in row.get("attempts", ())]
    texts += [row.get("last_error", ""), row.get("error", "")]
    source = SOURCES.get(row.get("source", ""))
    masks = source is not None and "customer" in source.personal
    shown = masks and any(CUSTOMER in text for text in texts)
    must("personal", not shown, f"{row['sk']} of {row.get('event_id')} quotes a personal field")
    if (row.get("source"), row.get("event_id")) in observer.cleared:
        quoted = any(REFUSAL in text for text in texts)
        must("erasure", not quoted, f"{row['sk']} of {row['event_id']} quotes an erased payload")


def _died(observer: Observer, run: RunName, old: Item, new: Item, now: int, limit: int) -> None:
    why: str = new["last_error"]
    must("G9", why.partition(":")[0] in REMEDIES, f"{run} died of no known cause: {why}")
    if why.startswith("exhausted"):
        spent = observer.spent.get(run, 0)
        must("G1", spent >= limit, f"{run} is exhausted after {spent} attempts of {limit}")
    if why.startswith("permanent") and "not in this deployment" in why:
        since = old.get("unknown_since", now)
        must("G1", now - since >= ROLLING_MS - SKEW_MS, f"{run} died during a rolling deployment")
    if why.startswith("lost"):
        sent = old.get("resends", 0)
        must("G1", sent >= len(RESENDS), f"{run} was declared lost after {sent} messages")
    observer.spent[run] = 0


def _generation(row: Item) -> int:
    generation: int = row.get("generation", 0)
    return generation
