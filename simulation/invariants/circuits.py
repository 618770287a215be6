"""Invariants of each write to the circuit of a destination."""

from typing import Final

from simulation.invariants.observer import Truth, must
from webhook_inbox.domain.ports import Item, Key

DESTINATION: Final = "destination#"
CIRCUIT: Final = ("open_until", "probe", "paused_until")


def is_circuit(key: Key) -> bool:
    """Returns whether a row is the circuit of a destination."""
    return key.pk.startswith(DESTINATION) and key.sk == "breaker"


def changed(truth: Truth, key: Key, old: Item, new: Item, *, now: int, apart: int) -> None:
    """Checks one write to the row of a circuit, and records the change.

    Args:
        truth: the notes of the world.
        key: the key of the row.
        old: the row before; empty where there was none.
        new: the row after.
        now: the time, in ms.
        apart: the skew of the clocks of the workers, in ms.
    """
    if all(old.get(name) == new.get(name) for name in CIRCUIT):
        return
    probe = new.get("probe")
    if probe and probe != old.get("probe"):
        name = key.pk.removeprefix(DESTINATION)
        free = "probe" not in old or old["probe_until"] < now + apart
        must("spare", free, f"{name}: a second probe beside {old.get('probe')}")
        due = new.get("open_until", 0) <= now + apart
        must("spare", due, f"{name}: a probe before the circuit may be probed")
    number, _ = truth.circuits.get(key.pk, (0, 0))
    truth.circuits[key.pk] = number + 1, now
