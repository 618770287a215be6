"""What may become of a destination's circuit, write by write."""

from typing import Final

from simulation.invariants.observer import Observer, must
from webhook_inbox.domain.ports import Item, Key

DESTINATION: Final = "destination#"
CIRCUIT: Final = ("open_until", "probe", "paused_until")


def is_circuit(key: Key) -> bool:
    """Tells whether a row is a destination's circuit."""
    return key.pk.startswith(DESTINATION) and key.sk == "breaker"


def changed(observer: Observer, key: Key, old: Item, new: Item, *, now: int, max_skew: int) -> None:
    """Checks one write of a circuit's row, and notes that it has changed.

    Args:
        observer: the world's notes.
        key: whose row.
        old: the row before; empty where there was none.
        new: the row after.
        now: the time, in ms.
        max_skew: how far the workers' clocks are apart, in ms.
    """
    if all(old.get(name) == new.get(name) for name in CIRCUIT):
        return
    probe = new.get("probe")
    if probe and probe != old.get("probe"):
        name = key.pk.removeprefix(DESTINATION)
        free = "probe" not in old or old["probe_until"] < now + max_skew
        must("circuit", free, f"{name}: a second probe beside {old.get('probe')}")
        due = new.get("open_until", 0) <= now + max_skew
        must("circuit", due, f"{name}: a probe before the circuit may be probed")
    number, _ = observer.circuits.get(key.pk, (0, 0))
    observer.circuits[key.pk] = number + 1, now
