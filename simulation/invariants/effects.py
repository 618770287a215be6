"""Checks every write of an effect's row and every call of its sink (G4).

(no row), failed ─► started ─► committed        by the attempt that performs it
started ─► started                              in doubt, as its policy, a probe or a person decides
started ─► failed                               by the attempt that got the error, if no call was
                                                executed since the last decision

The sink executes an effect once, and once more for each repetition that a person approved.
"""

from collections.abc import Mapping
from typing import Any, Final

from simulation.engine.acting import Behavior
from simulation.invariants.observer import Actor, Observer, RunName, must
from webhook_inbox.domain.ports import Item, Key
from webhook_inbox.ledger.schema import EFFECT_PREFIX, effect_key, shared_effect_key

DOUBT: Final = "doubt:"


def is_effect(key: Key) -> bool:
    """Returns whether a key is that of an effect, of one event or shared."""
    return key.sk.startswith(EFFECT_PREFIX) or key.pk.startswith(EFFECT_PREFIX)


def row_key(run: RunName, behavior: Behavior, name: str) -> Key:
    """Returns the key of a run's effect."""
    return shared_effect_key(name, behavior.shared) if behavior.shared else effect_key(*run, name)


def changed(
    observer: Observer,
    actor: Actor,
    old: Item,
    new: Item,
    *,
    now: int,
    behavior: Behavior,
    approvals: Mapping[str, Any],
    executions: int,
) -> None:
    """Checks one write of an effect's row.

    Args:
        observer: the notes of the world.
        actor: the writer.
        old: the row before; empty if there was none.
        new: the row after.
        now: the time, in ms.
        behavior: the behavior of the effect's handler.
        approvals: the approvals of the run.
        executions: how often the sink has executed it.
    """
    if "status" not in new:
        return  # A reference to a shared effect.
    run = new["source"], new["event_id"], new["handler"]
    alive = old.get("expires_at", 0) * 1000 > now
    before = old.get("status") if alive else None
    if before == "committed":
        same = new["status"] == before and new["result"] == old["result"]
        must("G4", same, f"{run}: a committed effect was changed")
    elif new["status"] == "started":
        _started(observer, run, old if alive else {}, new, now, behavior, approvals)
    elif new["status"] == "failed":
        ours = old.get("lease_id") == actor.lease or actor.kind == "late"
        must("G4", ours, f"{run}: another attempt marked its effect as failed")
        doubtful = old["doubtful_since"] < old["started_at"]
        doubtful = doubtful or executions > _decisions(observer, new["idempotency_key"])
        must("G4", not doubtful, f"{run}: the doubt about its effect was discarded")
    elif new["status"] == "committed" and actor.kind == "processor" and "found_by" not in new:
        began = (run, actor.lease) in observer.begun
        must(
            "G4", began or bool(behavior.shared), f"{run}: an effect was committed but never begun"
        )


def _started(
    observer: Observer,
    run: RunName,
    old: Item,
    new: Item,
    now: int,
    behavior: Behavior,
    approvals: Mapping[str, Any],
) -> None:
    same = all(old.get(name) == new[name] for name in ("source", "event_id", "handler"))
    if same:
        must("G2", new["fence"] >= old["fence"], f"{run}: an attempt that was superseded began")
    if behavior.approve is True:
        approved = f"effect:{new['name']}" in approvals
        must("hold", approved, f"{run}: began its effect without approval")
    since = new["started_at"]
    if old.get("status") == "started":
        since = old["doubtful_since"]
        if old["lease_id"] != new["lease_id"] and _repeated(
            observer, run, old, new, now, behavior, approvals
        ):
            since = new["started_at"]
    same = new["doubtful_since"] == since
    must("G4", same, f"{run}: the start of its effect's doubt was changed")
    observer.begun.add((run, new["lease_id"]))


def _repeated(
    observer: Observer,
    run: RunName,
    old: Item,
    new: Item,
    now: int,
    behavior: Behavior,
    approvals: Mapping[str, Any],
) -> bool:
    """Checks that an effect in doubt may be begun again; returns whether the doubt was decided."""
    asked = approvals.get(f"effect:{new['name']}", {}).get("fingerprint", "")
    # The approval of a doubt with other arguments names them as well.
    approved = asked.split(":")[:2] == [DOUBT[:-1], old["lease_id"]]
    decided = approved or (run, new["lease_id"]) in observer.denied
    young = now - old["doubtful_since"] < behavior.lifetime.total_seconds() * 1000
    may = decided or (behavior.in_doubt == "retry" and young)
    must("G4", may, f"{run}: an effect in doubt was begun again")
    differ = old["arguments"] and new["arguments"] and old["arguments"] != new["arguments"]
    must("G4", decided or not differ, f"{run}: an effect in doubt was begun with other arguments")
    if behavior.shared:
        over = old["busy_until"] < now
        must(
            "G2",
            over or old["event_id"] == new["event_id"],
            f"{run}: two runs began one effect at once",
        )
    return decided


def executed(observer: Observer, key: str, executions: int) -> None:
    """Checks how often the sink has executed an effect."""
    allowed = 1 + _decisions(observer, key)
    must("G4", executions <= allowed, f"the sink executed {key} {executions} times")


def _decisions(observer: Observer, key: str) -> int:
    """Returns the number of approved repetitions of an effect."""
    return sum(n for run, n in observer.repeats.items() if key in observer.keys.get(run, ()))


def posted(observer: Observer, actor: Actor, run: RunName, behavior: Behavior) -> None:
    """Checks that a sink may be called; a sink without keys requires `in_doubt="hold"`."""
    began = (run, actor.lease) in observer.begun
    must("G4", began or actor.kind == "late", f"{run}: its sink was called before the effect began")
    if behavior.in_doubt == "hold":
        calls = observer.posts.get(run, 0)
        allowed = 1 + observer.repeats.get(run, 0) + observer.renewed.get(run, 0)
        must("G4", calls < allowed, f"{run}: called {calls + 1} times in doubt")
