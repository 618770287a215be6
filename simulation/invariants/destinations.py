"""Invariants of each call to a destination.

A worker that has read the current circuit calls only if the circuit is closed, or as the probe.
A worker that read it before it changed may call for a second after the change.
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

# How long a worker caches a circuit.
BELIEVED_MS: Final = 1_000
# No window has more calls than the rate times this, and one.
WINDOW_MS: Final = 10_000
EXCESS: Final = 1.05


def is_optional(call: Call) -> bool:
    """Returns whether a worker proceeds if this call fails."""
    named = call.args[0] if call.port == "table" and call.args else None
    return isinstance(named, Key) and (named.pk.startswith(DESTINATION) or named.pk == CONTROL_PK)


def looked(world: World, job: Job, key: Key) -> Job:
    """Records that a worker has just read or written a circuit."""
    return job._replace(looked=world.truth.circuits.get(key.pk, (0, 0))[0])


def called(world: World, job: Job, name: str) -> None:
    """Checks that a handler may begin to call a destination now."""
    spec = world.deployment.manifest.destinations[name]
    if job.overdue or job.blind:
        return  # It was frozen past its deadline, or it failed open.
    _check_circuit(world, job, spec)
    _check_rate(world, spec)


def _check_circuit(world: World, job: Job, spec: DestinationSpec) -> None:
    key, now = breaker_key(spec.name), world.clock.ms + world.apart
    number, changed_at = world.truth.circuits.get(key.pk, (0, 0))
    row = world.aws.table.row(key) or {}
    if job.looked < number:
        lately = changed_at > job.entering - BELIEVED_MS
        must("spare", lately, f"{spec.name} is called by what was read long ago")
        return
    if spec.breaker is not None and "open_until" in row:
        receipt = job.message.receipt if job.message else ""
        ours = str(row.get("probe", "")).startswith(f"{receipt}.")
        must("spare", row["open_until"] <= now, f"{spec.name} is called and its circuit is open")
        must("spare", ours, f"{spec.name} is called beside its probe")
    else:
        paused = row.get("paused_until", 0)
        must("spare", paused <= now, f"{spec.name} is called and it is paused")


def _check_rate(world: World, spec: DestinationSpec) -> None:
    if spec.rate is None:
        return
    now, span = world.clock.ms, WINDOW_MS + world.apart
    recent = [at for at in world.truth.calls.get(spec.name, ()) if at > now - WINDOW_MS]
    world.truth.calls[spec.name] = (*recent, now)
    most = EXCESS * spec.rate * span / 1000 + 1
    must("rate", len(recent) + 1 <= most, f"{spec.name} is called more often than {spec.rate:g}/s")
