"""A deterministic double of every port, in memory.

Each double behaves as AWS does wherever the inbox can observe it; one suite of contract tests runs
against the doubles and the adapters. `docs/doubles.md` lists differences from other AWS doubles.
"""

from webhook_inbox.adapters.memory.event_source_mapping import MemoryMapping
from webhook_inbox.adapters.memory.faults import Fault, Faults, no_faults
from webhook_inbox.adapters.memory.fifo_queue import MemoryFifo
from webhook_inbox.adapters.memory.ports import MemoryPorts, add_lanes, memory_ports
from webhook_inbox.adapters.memory.queue import MemoryQueue
from webhook_inbox.adapters.memory.stores import MemoryBlobs, MemorySecrets
from webhook_inbox.adapters.memory.system import InlineExecutor, ManualClock, SeededRandomness
from webhook_inbox.adapters.memory.table import MemoryTable

__all__ = [
    "Fault",
    "Faults",
    "InlineExecutor",
    "ManualClock",
    "MemoryBlobs",
    "MemoryFifo",
    "MemoryMapping",
    "MemoryPorts",
    "MemoryQueue",
    "MemorySecrets",
    "MemoryTable",
    "SeededRandomness",
    "add_lanes",
    "memory_ports",
    "no_faults",
]
