"""Estimates the cost of a replay and of one attempt of each run."""

from typing import Any, Final

# Dollars per million, on demand in us-east-1: unverified list prices, as in docs/deploy.md#prices.
WRITE_PRICE: Final = 0.625
READ_PRICE: Final = 0.125
MESSAGE_PRICE: Final = 0.40
PRICES_OF: Final = "list prices in us-east-1"
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
    dollars = writes * WRITE_PRICE + reads * READ_PRICE + messages * MESSAGE_PRICE
    return {
        "writes": writes,
        "reads": reads,
        "messages": messages,
        "dollars": round(dollars / 1_000_000, 6),
        "prices": PRICES_OF,
    }
