"""Estimates the price of an open page of the console."""

from typing import Final

from webhook_inbox.domain import prices

# The seconds between two readings of a list in an open tab; figures are read once a minute.
LIST_SECONDS: Final = 10
HOUR: Final = 3600
# The read units of one list: its events, and the partitions of the index.
LIST_UNITS: Final = 100
# The metrics of the plots without those of sources, and doctor's ages of queues for each lane.
PLOTTED: Final = 5
AGES: Final = 2
# The partitions of the due index that counts and doctor read for a handler, each half a unit.
COUNTED: Final = 50


def hourly(*, sources: int, lanes: int, handlers: int) -> float:
    """Returns the estimated dollars of one open overview of a stack for an hour.

    The reads of DynamoDB, and the metrics; the other calls cost less than a tenth of it.
    """
    metrics = (PLOTTED + sources + AGES * lanes) * 60
    units = LIST_UNITS * HOUR / LIST_SECONDS + COUNTED * handlers / 2 * 60
    return (metrics * prices.METRIC_READS + units * prices.READ_UNITS) / 1_000_000
