"""Checks every write of a destination's circuit."""

from typing import Final

from simulation.invariants.observer import Observer, must
from webhook_inbox.domain.ports import Item, Key

DESTINATION: Final = "destination#"
CIRCUIT: Final = ("open_until", "probe", "paused_until", "held_since")


def is_circuit(key: object) -> bool:
    """Returns whether a key is that of a destination's circuit."""
    return isinstance(key, Key) and key.pk.startswith(DESTINATION) and key.sk == "breaker"


def check_held(key: Key, old: Item, new: Item, *, by_hand: bool) -> None:
    """Checks that only a person opens a circuit by hand, and only a person closes it then."""
    if by_hand:
        return
    for name in ("held_since", "open_until"):
        same = old.get(name) == new.get(name)
        free = name == "open_until" and "held_since" not in old
        must("circuit", same or free, f"{key.pk}: {name} of a circuit that a person controls")


def changed(observer: Observer, key: Key, old: Item, new: Item, *, now: int, max_skew: int) -> None:
    """Checks one write of a circuit's row and notes the change.

    Args:
        observer: the notes of the world.
        key: the key of the row.
        old: the row before; empty if there was none.
        new: the row after.
        now: the time, in ms.
        max_skew: the largest difference between two clocks, in ms.
    """
    if all(old.get(name) == new.get(name) for name in CIRCUIT):
        return
    probe = new.get("probe")
    if probe and probe != old.get("probe"):
        name = key.pk.removeprefix(DESTINATION)
        free = "probe" not in old or old["probe_until"] < now + max_skew
        must("circuit", free, f"{name}: a second probe while {old.get('probe')} is running")
        due = new.get("open_until", 0) <= now + max_skew
        must("circuit", due, f"{name}: a probe before the circuit may be probed")
    number, _ = observer.circuits.get(key.pk, (0, 0))
    observer.circuits[key.pk] = number + 1, now
