"""Checks every call of a destination.

A worker that has read the current circuit calls only if the circuit is closed or if its call is the
probe. A worker that read the circuit before its last change may call for a short time after it.
"""

from typing import Final

from simulation.engine.jobs import Job
from simulation.engine.stepping import Call
from simulation.engine.world import World
from simulation.invariants.circuits import DESTINATION
from simulation.invariants.observer import must
from webhook_inbox.destinations.circuit import breaker_key
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Key
from webhook_inbox.ledger.pauses import CONTROL_PK

# The time for which a worker caches a circuit.
BELIEVED_MS: Final = 1_000
# In any window the calls may exceed the rate by this factor, and by one call.
WINDOW_MS: Final = 10_000
EXCESS: Final = 1.05


def is_optional(call: Call) -> bool:
    """Returns whether a worker continues if this call fails."""
    named = call.args[0] if call.port == "table" and call.args else None
    if not isinstance(named, Key):
        return named == CONTROL_PK  # a query, for the pauses of tenants
    return named.pk.startswith(DESTINATION) or named.pk == CONTROL_PK


def note_circuit_read(world: World, job: Job, key: Key) -> Job:
    """Notes that a worker has just read or written a circuit."""
    return job._replace(circuit_seen=world.observer.circuits.get(key.pk, (0, 0))[0])


def called(world: World, job: Job, name: str) -> None:
    """Checks that a handler may call a destination now."""
    spec = world.deployment.manifest.destinations[name]
    if job.overdue or job.blind:
        return  # A thawed worker cannot know; one that cannot read the circuit may call.
    _check_circuit(world, job, spec)
    _check_rate(world, spec)


def _check_circuit(world: World, job: Job, spec: DestinationSpec) -> None:
    key, now = breaker_key(spec.name), world.clock.ms + world.max_skew
    number, changed_at = world.observer.circuits.get(key.pk, (0, 0))
    row = world.aws.table.row(key) or {}
    if job.circuit_seen < number:
        lately = changed_at > job.entering - BELIEVED_MS
        must("circuit", lately, f"{spec.name} is called on an outdated read of its circuit")
        return
    # Without a breaker only a person opens the circuit.
    if "open_until" in row and (spec.breaker is not None or "held_since" in row):
        receipt = job.message.receipt if job.message else ""
        ours = str(row.get("probe", "")).startswith(f"{receipt}.")
        must(
            "circuit",
            row["open_until"] <= now,
            f"{spec.name} is called although its circuit is open",
        )
        must("circuit", ours, f"{spec.name} is called in addition to its probe")
    else:
        paused = row.get("paused_until", 0)
        must("circuit", paused <= now, f"{spec.name} is called although it is paused")


def _check_rate(world: World, spec: DestinationSpec) -> None:
    if spec.rate is None:
        return
    now, span = world.clock.ms, WINDOW_MS + world.max_skew
    recent = [at for at in world.observer.calls.get(spec.name, ()) if at > now - WINDOW_MS]
    world.observer.calls[spec.name] = (*recent, now)
    most = EXCESS * spec.rate * span / 1000 + 1
    must("rate", len(recent) + 1 <= most, f"{spec.name} is called more often than {spec.rate:g}/s")
