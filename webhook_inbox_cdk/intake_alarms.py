"""The alarms on deliveries: what providers are answered, and how fast."""

from collections.abc import Iterator
from typing import Final

from webhook_inbox_cdk.alarm_declaration import (
    MINUTE,
    AlarmDeclaration,
    Severity,
)
from webhook_inbox_cdk.watched import Watched

from webhook_inbox import providers
from webhook_inbox.domain import metrics
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.manifest import HOLD

# A share of the strictest limit; the rest is the network's, which ingest does not measure.
NEAR_LIMIT: Final = 0.7
REJECTED_AT_LEAST: Final = 20
REJECTED_PERCENT: Final = 10


def intake_alarms(watched: Watched) -> Iterator[AlarmDeclaration]:
    """Yields the alarms on API and ingest."""
    yield from _answers(watched)
    yield from _verification(watched)
    yield from _bodies(watched)


def _answers(watched: Watched) -> Iterator[AlarmDeclaration]:
    yield AlarmDeclaration(
        id="IntakeFailing",
        severity=Severity.PAGE,
        series=(watched.of_api("5xx"),),
        period=MINUTE,
        periods=10,
        datapoints=3,
        text="The API returned 5xx in 3 of the last 10 minutes: deliveries are not stored, and"
        " providers retry for a limited time. Read ingest's log for the outcome: no-secret needs"
        " `webhookctl secrets set NAME`; unavailable is DynamoDB or SQS; broken is a fault of the"
        " code: deploy the version before.",
        first="doctor",
    )
    # One 5xx can lose a delivery: GitHub does not retry. A crash of ingest is a 5xx too.
    yield AlarmDeclaration(
        id="ApiErrors",
        series=(watched.of_api("5xx"),),
        period=MINUTE,
        text="The API returned a 5xx response, and the provider retries; GitHub does not. Read"
        " ingest's log. Find missing events of GitHub:"
        " `webhookctl sources reconcile github --hook HOOK --since 1h`.",
        first="inbox list --since 1h",
    )
    yield AlarmDeclaration(
        id="IngestFaults",
        series=(watched.own(metrics.INGEST_FAULTS),),
        text="Ingest failed on a delivery because of a bug, and the provider retries. Its log has"
        " the source and the traceback. Deploy a fix, then check that the event arrived.",
        first="inbox list --since 1h",
    )
    limit = watched.answer_limit
    yield AlarmDeclaration(
        id="IngestSlow",
        series=(watched.own(metrics.ACKNOWLEDGEMENT_TIME, "p99"),),
        threshold=round(1_000 * limit * NEAR_LIMIT),
        periods=3,
        text=f"The slowest 1 % of deliveries took over {NEAR_LIMIT:.0%} of {limit} s, the strictest"
        " answer limit of the configured providers, for 15 minutes. Beyond it the provider counts"
        " a failure and sends again. See cold starts, DynamoDB's and SQS's latency in the"
        " dashboard; raise ingest's memory.",
        first="alarms list",
        consequence=True,
    )
    yield AlarmDeclaration(
        id="Throttled",
        series=(watched.own(metrics.THROTTLED),),
        period=MINUTE,
        text="API Gateway answered 429: a source, or the completions, exceed their throttle, and"
        f" the deliveries are not stored. The metric {metrics.THROTTLED_BY_ROUTE.name} names the"
        " route. Raise its throttle in inbox.toml and deploy. GitHub does not retry.",
        first="sources reconcile github --hook HOOK --since 1d",
    )


def _verification(watched: Watched) -> Iterator[AlarmDeclaration]:
    deliveries = watched.own(metrics.ACKNOWLEDGEMENT_TIME, "SampleCount")
    yield AlarmDeclaration(
        id="RejectedRate",
        series=(watched.own(metrics.REJECTED), deliveries),
        expression=f"IF(m1 >= {REJECTED_AT_LEAST}, 100 * m1 / m2, 0)",
        period=15 * MINUTE,
        threshold=REJECTED_PERCENT,
        text=f"{REJECTED_PERCENT} % of the deliveries of 15 minutes, and at least"
        f" {REJECTED_AT_LEAST}, failed verification: a wrong or rotated secret, or forgeries."
        " Rejected deliveries are kept 7 days. Correct the secret:"
        " `webhookctl secrets set NAME`; then `webhookctl rejected release --yes`.",
        first="rejected list --since 1h",
    )
    offering = [n for n, s in watched.manifest.sources.items() if providers.load(s).offer]
    if offering:
        yield AlarmDeclaration(
            id="ContestedEnrolments",
            series=(watched.own(metrics.REJECTED, reason=str(Reason.CONTESTED_ENROLMENT)),),
            text="Two different secrets were offered in one enrolment, so at least one was not"
            " the provider's. None is accepted; deliveries are answered 503 and kept. Ingest's log"
            " names the source. Delete the webhook at the provider, enrol again, and create one"
            " webhook.",
            first=f"secrets enrol {offering[0] if len(offering) == 1 else 'SOURCE'}",
        )


def _bodies(watched: Watched) -> Iterator[AlarmDeclaration]:
    yield AlarmDeclaration(
        id="Conflicts",
        series=(watched.own(metrics.CONFLICTS),),
        text="A known event id arrived with different content; the delivery was refused and"
        " stored. Ingest's log names source and id; compare both contents with the provider's log.",
        first="inbox inspect EVENT_ID",
    )
    if any(
        spec.identical_body == HOLD and providers.load(spec).guard is not None
        for spec in watched.manifest.sources.values()
    ):
        yield AlarmDeclaration(
            id="HeldIdentical",
            series=(watched.own(metrics.HELD_IDENTICAL),),
            text="An event has the body of an earlier one: a second event, or a captured delivery."
            " It is stored and its runs are held. Compare with the provider's log, then"
            " `webhookctl hold approve EVENT_ID --reason TEXT`, or deny.",
            first="hold list --subject identical-body",
        )
