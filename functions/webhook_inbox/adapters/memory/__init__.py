"""A double of every port, in memory: exact, deterministic, and cheap enough to simulate with.

Each double behaves as AWS does where the inbox can notice; one suite of contract tests runs
over the doubles and over the adapters. `docs/doubles.md` lists where that is not what other
doubles of AWS do.
"""

from webhook_inbox.adapters.memory.blobs import MemoryBlobs
from webhook_inbox.adapters.memory.event_source_mapping import MemoryMapping
from webhook_inbox.adapters.memory.faults import Fault, Faults, no_faults
from webhook_inbox.adapters.memory.fifo_queue import MemoryFifo
from webhook_inbox.adapters.memory.queue import MemoryQueue
from webhook_inbox.adapters.memory.secrets import MemorySecrets
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
    "MemoryQueue",
    "MemorySecrets",
    "MemoryTable",
    "SeededRandomness",
    "no_faults",
]
