"""The alarms on the reconciler and on replays."""

from collections.abc import Iterator

from webhook_inbox_cdk.alarm_declaration import (
    HOUR,
    MINUTE,
    AlarmDeclaration,
    MissingData,
    Severity,
)
from webhook_inbox_cdk.watched import Watched, of_function

from webhook_inbox.domain import metrics


def maintenance_alarms(watched: Watched) -> Iterator[AlarmDeclaration]:
    """Yields the alarms on reconciler and replay."""
    yield from _passes(watched)
    yield from _given_up(watched)
    yield from _replays(watched)


def _passes(watched: Watched) -> Iterator[AlarmDeclaration]:
    # A pass starts each minute. An outage also stops the metric, so its absence is the alarm.
    yield AlarmDeclaration(
        id="ReconcilerLate",
        severity=Severity.PAGE,
        series=(watched.own(metrics.RECONCILER_PASSES),),
        threshold=2,
        at_most=True,
        periods=2,
        missing=MissingData.FIRES,
        text="The reconciler completed at most 2 passes instead of 5 in each of two periods of 5"
        " minutes; parked and lost runs are not resumed. Its schedule is disabled, or it fails. May"
        " fire once after the first deployment.",
        first="doctor",
    )
    yield AlarmDeclaration(
        id="ReconcilerFailing",
        series=(watched.own(metrics.RECONCILER_FAILED), of_function("Errors", watched.reconciler)),
        combine="SUM",
        periods=3,
        text="The reconciler has crashed, or failed on some runs, for 15 minutes. Its log names the"
        " runs and the errors.",
        first="doctor",
        consequence=True,
    )
    yield AlarmDeclaration(
        id="ReconcilerIncomplete",
        series=(watched.own(metrics.RECONCILER_INCOMPLETE),),
        periods=3,
        text="The reconciler has not finished a pass in time for 15 minutes: more runs are due"
        " than it can process. It continues; the time until the last one is late by as much.",
        first="inbox list --status failed",
        consequence=True,
    )
    yield AlarmDeclaration(
        id="ReconcilerFound",
        series=(watched.own(metrics.RECONCILER_FOUND),),
        period=15 * MINUTE,
        threshold=5,
        text="The reconciler found 5 runs in 15 minutes that had no message or whose worker was"
        " lost, and sent them. Ingest or processors stop between two calls: crashes, time-outs or"
        " errors of SQS.",
        first="doctor",
        consequence=True,
    )


def _given_up(watched: Watched) -> Iterator[AlarmDeclaration]:
    yield AlarmDeclaration(
        id="RunsLost",
        series=(watched.own(metrics.RUNS_LOST),),
        text="The reconciler gave up on runs after six sends: no worker received them. The"
        " lane's event source is disabled, or its function cannot start.",
        first="doctor",
    )
    yield AlarmDeclaration(
        id="RunsExpired",
        series=(watched.own(metrics.RUNS_EXPIRED),),
        text="The reconciler gave up on runs that waited until their events expired. Ask the"
        " provider to send the events again.",
        first="inbox list --status dead_letter",
    )
    # Counted once a day for each run: the alarm lasts until a day has passed without one.
    yield AlarmDeclaration(
        id="RunsNearExpiry",
        series=(watched.own(metrics.RUNS_NEAR_EXPIRY),),
        period=HOUR,
        periods=24,
        datapoints=1,
        text="Runs still wait whose events expire within 7 days; they are then given up. A"
        " handler is paused, a request is undecided, or a circuit is open.",
        first="inbox list --status deferred",
    )


def _replays(watched: Watched) -> Iterator[AlarmDeclaration]:
    yield AlarmDeclaration(
        id="ReplayErrors",
        series=(of_function("Errors", watched.replay),),
        text="A replay was rejected or raised an error, which an invocation from the console may"
        " not show. Runs that it sent stay sent.",
        first="audit --action replay",
    )
    yield AlarmDeclaration(
        id="ReplayInterrupted",
        series=(watched.own(metrics.REPLAY_INTERRUPTED),),
        text="The ledger or a queue failed during a replay; its result has the error and a"
        " cursor. Runs that it sent stay sent.",
        first="audit --action replay",
    )
