"""The alarms on runs: handlers, dead letters, queues and destinations."""

from collections.abc import Iterator
from typing import Final

from webhook_inbox_cdk.alarm_declaration import (
    HOUR,
    MINUTE,
    AlarmDeclaration,
    Severity,
)
from webhook_inbox_cdk.queue import DEAD_RETENTION, FIFO_REACH
from webhook_inbox_cdk.watched import AGE, VISIBLE, Watched, of_function, of_queue, of_table

from webhook_inbox.domain import metrics

DEAD: Final = "dead"
BURST: Final = 5
OLD_DAYS: Final = 10
BACKLOG: Final = 15 * MINUTE


def run_alarms(watched: Watched) -> Iterator[AlarmDeclaration]:
    """Yields the alarms on handlers, lanes and destinations."""
    yield from _deaths(watched)
    yield from _dead_letter_queues(watched)
    yield from _queues(watched)
    yield from _processors(watched)
    yield from _destinations(watched)
    yield _table_throttles(watched)


def _deaths(watched: Watched) -> Iterator[AlarmDeclaration]:
    serial = any(spec.serial for spec in watched.manifest.handlers.values())
    order = " Where its handler is serial, its ordering key may be blocked." if serial else ""
    yield AlarmDeclaration(
        id="DeadLetters",
        series=(watched.own(metrics.RUNS, outcome=DEAD),),
        # Until a quarter of an hour has passed without another one: one notification for a series
        # of them, and another for the next handler.
        periods=3,
        datapoints=1,
        text="A run is dead: its attempts are used up, or retrying cannot help. The first command"
        f" names handler and error.{order}",
        first="inbox errors",
    )
    yield AlarmDeclaration(
        id="DeadLetterBurst",
        severity=Severity.PAGE,
        series=(watched.own(metrics.RUNS, outcome=DEAD),),
        period=10 * MINUTE,
        threshold=BURST,
        text=f"{BURST} runs died within 10 minutes: a deployment, a destination or a payload that"
        " handlers cannot process. Pause the handler that the first command names.",
        first="inbox errors",
    )
    yield AlarmDeclaration(
        id="DeadAgain",
        series=(watched.own(metrics.DEAD_AGAIN),),
        text="A run died for the third time: replaying it did not help. Fix its cause, or close the"
        " run.",
        first="inbox list --status dead_letter",
    )
    yield AlarmDeclaration(
        id="EffectsInDoubt",
        series=(watched.own(metrics.EFFECTS_IN_DOUBT),),
        text="An effect is in doubt: it started, its result is unknown, and its run is held. Ask"
        " the destination whether it happened before you decide.",
        first="hold list",
    )


def _dead_letter_queues(watched: Watched) -> Iterator[AlarmDeclaration]:
    depths = tuple(of_queue(VISIBLE, queue) for queue in watched.dead.values())
    yield AlarmDeclaration(
        id="DlqGrowing",
        severity=Severity.PAGE,
        series=depths,
        combine="SUM",
        expression="DIFF(all)",
        periods=3,
        text="More messages reached the DLQs than left them, in each of three periods of 5"
        " minutes: the cause persists, or a replay dies again.",
        first="inbox errors",
    )
    yield AlarmDeclaration(
        id="DlqAge",
        series=(watched.own(metrics.OLDEST_DEAD_LETTER, "Maximum"),),
        period=HOUR,
        threshold=OLD_DAYS * 24 * HOUR,
        # A sweep begins up to two minutes more than an hour after the one before.
        periods=2,
        datapoints=1,
        text=f"A message of a DLQ was sent {OLD_DAYS} days ago; SQS deletes it after"
        f" {DEAD_RETENTION}. The ledger lists its run until the event expires.",
        first="dlq list",
    )


def _queues(watched: Watched) -> Iterator[AlarmDeclaration]:
    yield AlarmDeclaration(
        id="OldestDue",
        severity=Severity.PAGE,
        series=(watched.own(metrics.OLDEST_DUE, "Maximum"),),
        threshold=HOUR,
        periods=3,
        text="A run is an hour overdue for 15 minutes: messages are lost, or workers and the"
        " reconciler cannot keep up.",
        first="doctor",
    )
    yield AlarmDeclaration(
        id="Backlog",
        series=tuple(of_queue(AGE, queue) for queue in watched.work.values()),
        combine="MAX",
        period=MINUTE,
        threshold=BACKLOG,
        periods=5,
        text="The oldest message of a lane is over 15 minutes old. Raise its workers in"
        " inbox.toml, or move slow handlers to a lane of their own; a serial handler with a busy"
        " ordering key must be faster.",
        first="doctor",
    )
    serial = watched.manifest.serial_lanes
    yield AlarmDeclaration(
        id="QueueReach",
        series=tuple(
            of_queue(VISIBLE, queue) for lane, queue in watched.work.items() if lane in serial
        ),
        combine="MAX",
        period=MINUTE,
        threshold=FIFO_REACH // 2,
        text=f"A serial lane has {FIFO_REACH // 2:,} messages. SQS finds other ordering keys"
        f" only among the first {FIFO_REACH:,}; beyond them only the first keys continue."
        " Its handler is slow.",
        first="inbox list --status pending",
    )


def _processors(watched: Watched) -> Iterator[AlarmDeclaration]:
    # The maximum, not the sum: a crash in each of three lanes is not a lane that cannot start.
    yield AlarmDeclaration(
        id="ProcessorCrashes",
        severity=Severity.PAGE,
        series=tuple(of_function("Errors", function) for function in watched.processors.values()),
        combine="MAX",
        period=15 * MINUTE,
        threshold=3,
        text="A processor crashed three times in 15 minutes: it cannot start, or handlers time"
        " out. Its log has the error.",
        first="doctor",
    )
    yield AlarmDeclaration(
        id="FunctionThrottles",
        series=tuple(
            of_function("Throttles", function) for function in watched.processors.values()
        ),
        combine="SUM",
        periods=3,
        text="Lambda throttled a processor for 15 minutes: the account's concurrency"
        " is used up. Request a higher quota, or lower workers in the inbox.toml of other"
        " stacks.",
        first="alarms list",
    )


def _destinations(watched: Watched) -> Iterator[AlarmDeclaration]:
    yield AlarmDeclaration(
        id="DestinationRefusals",
        severity=Severity.PAGE,
        series=(watched.own(metrics.DESTINATION_REFUSALS),),
        text="A destination rejects its credentials (401, 403) or its host name does not resolve;"
        " retrying will not help, and each run that calls it dies. Its secret or base_url is"
        " wrong.",
        first="inbox errors",
    )


def _table_throttles(watched: Watched) -> AlarmDeclaration:
    # A request counts if the table or one of its indexes throttles it:
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
    return AlarmDeclaration(
        id="TableThrottles",
        series=tuple(
            of_table("ThrottledRequests", watched.table, Operation=operation)
            for operation in ("PutItem", "UpdateItem")
        ),
        combine="SUM",
        periods=3,
        text="DynamoDB throttled writes of the ledger or an index for 15 minutes; deliveries and"
        " runs slow down and are repeated. On-demand capacity doubles within 30 minutes; a hot"
        " key does not.",
        first="alarms list",
    )
