"""Estimates the cost of a replay and of one attempt of each run."""

from typing import Any, Final

from webhook_inbox.domain.prices import PRICES_OF, READ_UNITS, SQS_REQUESTS, WRITE_UNITS

# A run with a row of 2 KB: the reset, the lease and the settlement, each with the due index.
WRITES: Final = 10
# The run's row in the search, and the event's row in the attempt.
READS: Final = 2
# Send, receive and delete; SQS bills a batch as one request, so this is the most.
MESSAGES: Final = 3


def estimate(runs: int) -> dict[str, Any]:
    """Returns the requests of so many runs and their price in dollars.

    Lambda's time, logs and what the handlers call are not included.
    """
    writes, reads, messages = runs * WRITES, runs * READS, runs * MESSAGES
    dollars = writes * WRITE_UNITS + reads * READ_UNITS + messages * SQS_REQUESTS
    return {
        "writes": writes,
        "reads": reads,
        "messages": messages,
        "dollars": round(dollars / 1_000_000, 6),
        "prices": PRICES_OF,
    }
