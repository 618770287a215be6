"""The alarms on deliveries: what providers are answered, and how fast."""

from collections.abc import Iterator
from typing import Final

from webhook_inbox_cdk.alarm_declaration import (
    MINUTE,
    AlarmDeclaration,
    Severity,
)
from webhook_inbox_cdk.watched import Watched, of_function

from webhook_inbox import providers
from webhook_inbox.domain import metrics
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.manifest import HOLD

# A share of the strictest limit; the rest is the network's, which ingest does not measure.
NEAR_LIMIT: Final = 0.7
REJECTED_AT_LEAST: Final = 20
REJECTED_PERCENT: Final = 10
# In an inbox with few deliveries: half of them.
FEW_AT_LEAST: Final = 5
FEW_PERCENT: Final = 50


def intake_alarms(watched: Watched) -> Iterator[AlarmDeclaration]:
    """Yields the alarms on API and ingest."""
    yield from _answers(watched)
    yield from _verification(watched)
    yield from _bodies(watched)


def _answers(watched: Watched) -> Iterator[AlarmDeclaration]:
    # Not the API's 5xx, which any sender can cause: by a body over 6 MB, by a key whose server does
    # not answer, or at a source without a secret.
    yield AlarmDeclaration(
        id="IntakeFailing",
        severity=Severity.PAGE,
        series=(
            watched.own(metrics.INGEST_FAILURES),
            of_function("Errors", watched.ingest),
            of_function("Throttles", watched.ingest),
        ),
        combine="SUM",
        period=MINUTE,
        periods=10,
        datapoints=3,
        text="Ingest failed in 3 of the last 10 minutes: deliveries are not stored, and providers"
        " retry for a limited time. DynamoDB, SQS or Secrets Manager is unavailable or denies"
        " access, the code has a fault, or Lambda cannot start the function or throttles it.",
        first="doctor",
    )
    # One 5xx can lose a delivery: some providers do not retry. A crash of ingest is a 5xx too.
    yield AlarmDeclaration(
        id="ApiErrors",
        series=(watched.of_api("5xx"),),
        period=MINUTE,
        text="The API returned a 5xx response: a delivery was not acknowledged. Ingest failed or"
        " could not be invoked, a source has no secret, a provider's key could not be fetched, or"
        f" a body is too large; a forged delivery can cause the last three. {_retries(watched)}",
        first="doctor",
    )
    limit = watched.answer_limit
    yield AlarmDeclaration(
        id="IngestSlow",
        # API Gateway's time has what ingest cannot measure: its own cold start, and its time-outs.
        series=(watched.of_api("Latency", "p99"),),
        threshold=round(1_000 * limit * NEAR_LIMIT),
        periods=3,
        text=f"The slowest 1 % of requests took over {NEAR_LIMIT:.0%} of {limit} s, the strictest"
        " answer limit of the configured providers, for 15 minutes. Beyond it the provider counts"
        " a failure and sends again. Cold starts, DynamoDB or SQS are slow.",
        first="alarms list",
    )
    yield AlarmDeclaration(
        id="Throttled",
        series=(watched.own(metrics.THROTTLED),),
        period=MINUTE,
        text="API Gateway answered 429: a source, or the completions, exceed their throttle, and"
        f" the deliveries are not stored. The API's access log names the route."
        f" {_retries(watched)}",
        first="inbox list --since 1h",
    )


def _retries(watched: Watched) -> str:
    """Returns what follows a failed delivery at the providers of the stack's sources."""
    specs = watched.manifest.sources.items()
    never = sorted(name for name, spec in specs if not providers.load(spec).retries)
    most = "Its provider sends it again for a limited time"
    return f"{most}, except for {', '.join(never)}." if never else f"{most}."


def _verification(watched: Watched) -> Iterator[AlarmDeclaration]:
    # Each is one delivery, or one of few other requests. API Gateway's count has those that it
    # throttles as well, with which anyone could make the share small.
    deliveries = of_function("Invocations", watched.ingest)
    # Scaled, since an alarm has one threshold.
    few = f"IF(m1 >= {FEW_AT_LEAST}, {100 * REJECTED_PERCENT // FEW_PERCENT} * m1 / m2, 0)"
    yield AlarmDeclaration(
        id="RejectedRate",
        series=(watched.own(metrics.REJECTED), deliveries),
        expression=f"IF(m1 >= {REJECTED_AT_LEAST}, 100 * m1 / m2, {few})",
        period=15 * MINUTE,
        threshold=REJECTED_PERCENT,
        text=f"{REJECTED_PERCENT} % of the deliveries of 15 minutes, and at least"
        f" {REJECTED_AT_LEAST}, or {FEW_PERCENT} %, and at least {FEW_AT_LEAST}, failed"
        " verification: a wrong or rotated secret, a proxy that changes bodies, or forgeries."
        " Rejected deliveries are kept for 7 days; genuine ones can be accepted later.",
        first="rejected list --since 1h",
    )
    if any(providers.load(spec).offer for spec in watched.manifest.sources.values()):
        yield AlarmDeclaration(
            id="ContestedEnrolments",
            series=(watched.own(metrics.REJECTED, reason=str(Reason.CONTESTED_ENROLMENT)),),
            text="Two different secrets were offered in one enrolment, so at least one was not"
            " the provider's. None is accepted; deliveries are answered 503 and kept.",
            first="rejected list --since 1h",
        )


def _bodies(watched: Watched) -> Iterator[AlarmDeclaration]:
    yield AlarmDeclaration(
        id="Conflicts",
        series=(watched.own(metrics.CONFLICTS),),
        text="A known event id arrived with different content; the delivery was stored, and does"
        " not run. Ingest's log has its source and id.",
        first="doctor",
    )
    yield AlarmDeclaration(
        id="HeldUncertain",
        series=(watched.own(metrics.HELD_UNCERTAIN),),
        text="The type of a verified event cannot be read from its body, or a header contradicts"
        " it. The event is stored, and the runs of all handlers of its source are held until they"
        " are approved or denied.",
        first="hold list",
    )
    if any(
        spec.identical_body == HOLD and providers.load(spec).guard is not None
        for spec in watched.manifest.sources.values()
    ):
        yield AlarmDeclaration(
            id="HeldIdentical",
            series=(watched.own(metrics.HELD_IDENTICAL),),
            text="An event has the body of an earlier one: a second event, or a captured delivery."
            " It is stored, and its runs are held until they are approved or denied.",
            first="hold list --subject identical-body",
        )
