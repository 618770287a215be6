"""The ports of a process over the doubles; every inbox in memory is built on them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from webhook_inbox.adapters.memory.faults import Faults, no_faults
from webhook_inbox.adapters.memory.fifo_queue import MemoryFifo
from webhook_inbox.adapters.memory.queue import MemoryQueue
from webhook_inbox.adapters.memory.stores import MemoryBlobs, MemorySecrets
from webhook_inbox.adapters.memory.system import InlineExecutor, SeededRandomness
from webhook_inbox.adapters.memory.table import MemoryTable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Clock, Ports

# The receives of a message before it moves to the DLQ, by whether its lane is FIFO.
RECEIVES: Final = {False: 5, True: 1000}
DLQ_RETENTION: Final = timedelta(days=14)
RETENTION: Final = {False: timedelta(days=7), True: DLQ_RETENTION}


@dataclass(frozen=True, kw_only=True)
class MemoryPorts(Ports):
    """The ports of a process over the doubles."""

    table: MemoryTable
    blobs: MemoryBlobs
    secret_store: MemorySecrets
    queues: dict[str, MemoryQueue] = field(default_factory=dict)
    dlqs: dict[str, MemoryQueue] = field(default_factory=dict)


def memory_ports(
    *manifests: Manifest,
    clock: Clock,
    seed: int = 0,
    table: MemoryTable | None = None,
    secrets: MemorySecrets | None = None,
    receives: Mapping[bool, int] = RECEIVES,
    faults: Faults = no_faults,
) -> MemoryPorts:
    """Returns the ports of a process of a new inbox.

    Args:
        manifests: their lanes get queues.
        clock: the time.
        seed: of the randomness.
        table: an empty table without faults, unless given.
        secrets: none, unless given.
        receives: see `RECEIVES`.
        faults: the faults of the other doubles.
    """
    ports = MemoryPorts(
        table=MemoryTable(faults=faults) if table is None else table,
        blobs=MemoryBlobs(faults=faults),
        clock=clock,
        randomness=SeededRandomness(seed),
        secret_store=MemorySecrets(faults=faults) if secrets is None else secrets,
        executor=InlineExecutor(clock),
    )
    add_lanes(ports, *manifests, receives=receives, faults=faults)
    return ports


def add_lanes(
    ports: MemoryPorts,
    *manifests: Manifest,
    receives: Mapping[bool, int] = RECEIVES,
    faults: Faults = no_faults,
) -> None:
    """Adds the queues of the manifests' lanes that have none, as a deployment does."""
    serial = {lane for manifest in manifests for lane in manifest.serial_lanes}
    for lane in dict.fromkeys(lane for manifest in manifests for lane in manifest.lanes):
        if lane in ports.queues:
            continue
        fifo = lane in serial
        kind = MemoryFifo if fifo else MemoryQueue
        dlq = kind(ports.clock, name=f"{lane}-dlq", retention=DLQ_RETENTION, faults=faults)
        ports.dlqs[lane] = dlq
        ports.queues[lane] = kind(
            ports.clock,
            name=lane,
            dead_letters=dlq,
            max_receive_count=receives[fifo],
            retention=RETENTION[fifo],
            faults=faults,
        )
