"""Estimates the cost of a replay and of one attempt of each run."""

from dataclasses import dataclass
from math import ceil
from typing import Final

from webhook_inbox.domain.prices import PRICES_OF, READ_UNITS, SQS_REQUESTS, WRITE_UNITS

# Counted by tests/functions/test_billed_units.py, for a dead run whose row has at most 1 KB: the
# reset, the lease and the settlement, and five writes of the due index. Another KB, of a long
# history, adds three.
WRITES: Final = 8
# The run in the search, its copy in the DLQ, its event, and its row where the inbox has
# destinations.
READS: Final = 3.5
# The message and its copy in the DLQ: sent, received twice, deleted twice. SQS bills a batch as one
# request, so this is the most.
MESSAGES: Final = 5


@dataclass(frozen=True, slots=True)
class ReplayCost:
    """The requests of a replay, their price in dollars, and whose prices these are."""

    writes: int
    reads: int
    messages: int
    dollars: float
    prices: str = PRICES_OF


def estimate(runs: int) -> ReplayCost:
    """Returns the requests of so many runs and their price.

    Lambda's time, logs and what the handlers call are not included.
    """
    writes, reads, messages = runs * WRITES, ceil(runs * READS), runs * MESSAGES
    dollars = writes * WRITE_UNITS + reads * READ_UNITS + messages * SQS_REQUESTS
    return ReplayCost(writes, reads, messages, round(dollars / 1_000_000, 6))
