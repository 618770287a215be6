"""The catalogue of CloudWatch metrics: what the functions emit, with which dimensions, for whom.

A custom metric costs 0.30 dollars a month for every combination of dimension values, and only in
the hours in which it is written, and bytes of the log. So each entry names its use, a count of 0 is
not written, and a dimension has few values: names of the manifest, or members of an enum. A stack
without a dashboard does not write what only a dashboard reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from webhook_inbox.domain.errors import Reason

# The dimension value where a name is not of the manifest: a caller's text makes no metric.
NONE: Final = "none"
# The death of a run from which on it counts as DEAD_AGAIN.
AGAIN: Final = 3
# The dimension sets of a metric without dimensions.
TOTAL: Final = ((),)


class Unit(StrEnum):
    """CloudWatch's name of a unit."""

    COUNT = "Count"
    MILLISECONDS = "Milliseconds"
    SECONDS = "Seconds"


class Use(StrEnum):
    """Where a metric is read."""

    ALARM = "alarm"
    DASHBOARD = "dashboard"
    COMMAND = "command"


class Duplicate(StrEnum):
    """The kind of a delivery that is known; see `ingest.receipt`."""

    RETRY = "retry"
    RESEND = "resend"
    ATTACK = "attack"
    SELF = "self"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: its name in CloudWatch.
        text: what a value states, for the documentation.
        dimensions: its sets of dimensions; `()` is the total.
        unit: its unit.
        used: where it is read.
        watched: the values of dimensions that alarms read, where they do not read all.
    """

    name: str
    text: str
    dimensions: tuple[tuple[str, ...], ...] = TOTAL
    unit: Unit = Unit.COUNT
    used: tuple[Use, ...] = (Use.DASHBOARD,)
    watched: tuple[str, ...] = ()

    def written(
        self, dimensions: Mapping[str, str], *, dashboard: bool
    ) -> tuple[tuple[str, ...], ...]:
        """Returns the sets of dimensions under which something reads a value.

        Args:
            dimensions: the value of each dimension.
            dashboard: whether the stack has a dashboard, which reads all sets.
        """
        if dashboard:
            return self.dimensions
        if self.used == (Use.DASHBOARD,):
            return ()
        return tuple(
            names
            for names in self.dimensions
            if not self.watched or all(dimensions[name] in self.watched for name in names)
        )


_BOTH: Final = (Use.ALARM, Use.DASHBOARD)
_ALARM: Final = (Use.ALARM,)

# Ingest. The processor writes the first five as well, for the items of a batch.
ACCEPTED: Final = Metric("Accepted", "new events; a batch counts by its items", (("source",),))
DUPLICATES: Final = Metric("Duplicates", "deliveries of known content, by kind", (("kind",),))
HELD_IDENTICAL: Final = Metric(
    "HeldIdentical", "new events that are held because their body is known", used=_BOTH
)
HELD_UNCERTAIN: Final = Metric(
    "HeldUncertain",
    "new events that are held because their type cannot be read, or a header contradicts it",
    used=_BOTH,
)
CONFLICTS: Final = Metric("Conflicts", "deliveries of a known id with other content", used=_BOTH)
INGEST_FAILURES: Final = Metric(
    "IngestFailures",
    "requests that ingest could not handle: storage, queue or secrets failed, or a bug",
    used=_ALARM,
)
REJECTED: Final = Metric(
    "Rejected",
    "deliveries that failed verification",
    ((), ("reason",)),
    used=_BOTH,
    watched=(str(Reason.CONTESTED_ENROLMENT),),
)
VERIFIED_WITH_PREVIOUS: Final = Metric(
    "VerifiedWithPrevious",
    "deliveries that only the previous secret verified",
    (("source",),),
    used=(Use.DASHBOARD, Use.COMMAND),
)
ACKNOWLEDGEMENT_TIME: Final = Metric(
    "AcknowledgementTime",
    "ingest's time for a delivery, without a cold start; one value for each delivery",
    unit=Unit.MILLISECONDS,
)

# Processor. The reconciler writes RUNS as well, for the runs that it gives up.
RUNS: Final = Metric(
    "Runs",
    "results of runs: done, skipped, held, failed (will be retried) or dead",
    (("outcome",), ("handler", "outcome")),
    used=_BOTH,
    watched=("dead",),
)
ATTEMPTS: Final = Metric("Attempts", "the number of attempts of a run that ended")
RECEIPT_TO_DONE: Final = Metric(
    "ReceiptToDone",
    "the time from an event's receipt until a run of it is done",
    unit=Unit.SECONDS,
)
DEAD_AGAIN: Final = Metric("DeadAgain", "runs that died the third time or later", used=_ALARM)
REPLAYED_DONE: Final = Metric("ReplayedDone", "replayed runs that are done or skipped")
REPLAYED_DEAD: Final = Metric("ReplayedDead", "replayed runs that are dead again")
EFFECTS_IN_DOUBT: Final = Metric(
    "EffectsInDoubt",
    "runs that were held because it is unknown whether an effect happened",
    used=_BOTH,
)
DESTINATION_REFUSALS: Final = Metric(
    "DestinationRefusals", "runs that died of a destination's 401, 403 or DNS error", used=_ALARM
)
# The reconciler writes it as well.
DEGRADED: Final = Metric(
    "Degraded",
    "steps that were left out or put off: checks of a breaker or limiter that the ledger did not"
    " answer; failed calls of a pass, passes that ended early, runs that were lost on their way",
    used=_BOTH,
)

# Reconciler: counts of a pass, then gauges, one value in each pass.
RUNS_GIVEN_UP: Final = Metric(
    "RunsGivenUp",
    "runs that are dead after six sends, or waited past their event's end",
    used=_ALARM,
)
RUNS_NEAR_EXPIRY: Final = Metric(
    "RunsNearExpiry", "waiting runs whose event ends within 7 days, once a day each", used=_ALARM
)
# CloudWatch's own age leaves out messages that were received three times, as each sweep does.
OLDEST_DEAD_LETTER: Final = Metric(
    "OldestDeadLetter",
    "the time since the oldest message of the DLQs was sent, in a pass that finds one, every hour",
    unit=Unit.SECONDS,
    used=_BOTH,
)
OLDEST_DUE: Final = Metric(
    "OldestDue", "how late the most overdue run is, if one is", unit=Unit.SECONDS, used=_BOTH
)
CIRCUIT_OPEN: Final = Metric(
    "CircuitOpen", "1 in a pass that finds the circuit open", (("destination",),)
)
LIMITER_QUEUE: Final = Metric(
    "LimiterQueue",
    "the wait at a destination's rate limit, in a pass that finds one",
    (("destination",),),
    unit=Unit.SECONDS,
)

# Replay.
REPLAYED_RUNS: Final = Metric("ReplayedRuns", "runs that replays sent: the dead letters out")
REPLAY_INTERRUPTED: Final = Metric(
    "ReplayInterrupted", "replays that the ledger or a queue ended early", used=_ALARM
)

# Metric filters on the API's access log.
THROTTLED: Final = Metric(
    "Throttled",
    "requests for sources and completions that API Gateway answered with 429",
    used=_BOTH,
)
THROTTLED_BY_ROUTE: Final = Metric(
    "ThrottledByRoute", "requests that API Gateway answered with 429, by route", (("route",),)
)

CATALOGUE: Final[Mapping[str, Metric]] = {
    value.name: value for value in tuple(globals().values()) if isinstance(value, Metric)
}


def namespace(stack: str) -> str:
    """Returns the namespace of the metrics of a stack."""
    return f"WebhookInbox/{stack}"


# Metrics that AWS writes at no cost, by namespace.
OF_AWS: Final[Mapping[str, tuple[str, ...]]] = {
    "AWS/ApiGateway": ("Count", "4xx", "5xx", "Latency"),
    "AWS/Lambda": ("Errors", "Throttles", "Duration", "Invocations"),
    "AWS/SQS": (
        "ApproximateAgeOfOldestMessage",
        "ApproximateNumberOfMessagesVisible",
        "NumberOfMessagesSent",
    ),
    "AWS/DynamoDB": (
        "ConsumedReadCapacityUnits",
        "ConsumedWriteCapacityUnits",
        "ThrottledRequests",
    ),
    "AWS/Logs": ("IncomingBytes",),
}
