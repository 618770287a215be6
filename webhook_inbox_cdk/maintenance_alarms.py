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
    # A pass starts each minute. An outage also stops the metrics, so their absence is the alarm.
    yield AlarmDeclaration(
        id="ReconcilerLate",
        severity=Severity.PAGE,
        series=(
            of_function("Invocations", watched.reconciler),
            of_function("Errors", watched.reconciler),
        ),
        expression="m1 - m2",
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
        id="Degraded",
        series=(watched.own(metrics.DEGRADED),),
        period=15 * MINUTE,
        threshold=5,
        text="Functions did without a step, or put it off, 5 times in 15 minutes: the reconciler"
        " failed on a run, ran out of time, or found runs that had no message or whose worker was"
        " lost; or a circuit breaker or rate limit could not be read, so that requests to"
        " destinations are not limited.",
        first="doctor",
    )


def _given_up(watched: Watched) -> Iterator[AlarmDeclaration]:
    yield AlarmDeclaration(
        id="RunsGivenUp",
        series=(watched.own(metrics.RUNS_GIVEN_UP),),
        text="The reconciler gave up on runs: no worker received them after six sends, because the"
        " lane's event source is disabled or its function cannot start; or they waited until their"
        " events expired.",
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
