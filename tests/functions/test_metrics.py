"""The catalogue of metrics and what the functions emit are one list.

`Output.read` compares every line of every test with the catalogue; here, every entry is emitted.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ingest.telemetry import measure as measure_delivery
from processor.telemetry import measure as measure_run
from reconciler.telemetry import measure as measure_pass
from reconciler.telemetry import measure_destinations
from replay.telemetry import measure as measure_replay
from tests.functions.embedded_metrics import NAMESPACE, Point, points
from tests.functions.faults import Fault, Faults
from tests.functions.inbox import Inbox
from tests.functions.invocations import http_event
from webhook_inbox.adapters.aws.embedded_metrics import MetricLines
from webhook_inbox.adapters.memory import MemoryTable
from webhook_inbox.destinations.circuit import breaker_key, limit_key
from webhook_inbox.destinations.rate_limiter import RESERVATION, microseconds
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.manifest import (
    BreakerSpec,
    DestinationSpec,
    HandlerSpec,
    Manifest,
    SourceSpec,
)
from webhook_inbox.domain.metrics import CATALOGUE, THROTTLED, THROTTLED_BY_ROUTE, Duplicate
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import RunOutcome, RunResult
from webhook_inbox.reconciler.report import Action, ReconcilerReport
from webhook_inbox.replay.replay import ReplayOutcome, ReplayReport

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SLOW = timedelta(milliseconds=31)
# Metric filters write them; see tests/infra.
OF_THE_ACCESS_LOG = {THROTTLED.name, THROTTLED_BY_ROUTE.name}
MANIFEST = Manifest(
    sources={"shop": SourceSpec("shop", "stripe", "shop")},
    handlers={"shop.pay": HandlerSpec("shop.pay", "m", "pay", "shop", ("*",))},
    destinations={
        "erp": DestinationSpec("erp", "https://erp.example", breaker=BreakerSpec(5, 60)),
        "crm": DestinationSpec("crm", "https://crm.example", rate=1.0),
        "sms": DestinationSpec("sms", "https://sms.example", breaker=BreakerSpec(5, 60)),
    },
)
PAY = RunMessage("shop", "e1", "shop.pay")

Emit = Callable[[MetricLines], None]


def emitted(emit: Emit) -> list[Point]:
    """Returns the metrics that a call adds, of a stack with a dashboard."""
    lines: list[str] = []
    metrics = MetricLines(NAMESPACE, dashboard=True, write=lines.append)
    emit(metrics)
    metrics.flush(NOW)
    return [point for line in lines for point in points(json.loads(line))]


def delivery(outcome: IngestOutcome, **details: Any) -> list[Point]:
    receipt = Receipt(outcome, 200, source="shop", **details)
    return emitted(lambda metrics: measure_delivery(metrics, receipt, taken=SLOW))


def run(outcome: RunOutcome, **details: Any) -> list[Point]:
    result = RunResult(outcome, details.pop("reference", PAY), 2, **details)
    return emitted(lambda metrics: measure_run(metrics, result, MANIFEST, now=NOW))


def passed(report: ReconcilerReport) -> list[Point]:
    return emitted(lambda metrics: measure_pass(metrics, report, MANIFEST, now=NOW))


def dead_run(handler: str = "shop.pay", deaths: int = 0) -> Run:
    replays = ({"at": 0},)
    return Run("shop", "e1", handler, "paid", Status.FAILED, deaths=deaths, replays=replays)


def whole_pass() -> ReconcilerReport:
    report = ReconcilerReport(complete=False, oldest_due=timedelta(seconds=90))
    for action in Action:
        report.add(action, 2)
    report.dead.append(dead_run(deaths=2))
    report.oldest_dead_letter = NOW - timedelta(days=10)
    return report


def destinations() -> list[Point]:
    table = MemoryTable()
    for name, down in (("erp", True), ("sms", False)):
        until = to_ms(NOW) + 5_000 if down else 0
        table.put({**breaker_key(name)._asdict(), "failures": 5, "open_until": until})
    ahead = microseconds(NOW + timedelta(seconds=42))
    table.put({**limit_key("crm")._asdict(), RESERVATION: ahead})
    return emitted(lambda metrics: measure_destinations(metrics, table, MANIFEST, now=NOW))


def everything() -> Iterator[Point]:
    """Yields what the four functions emit for every outcome that they know."""
    for outcome in IngestOutcome:
        yield from delivery(outcome, secret=1)
    for reason in Reason:
        yield from delivery(IngestOutcome.REJECTED, reason=str(reason))
    for kind in Duplicate:
        yield from delivery(IngestOutcome.DUPLICATE, duplicate=kind)
    for result in RunOutcome:
        yield from run(
            result,
            received_at=NOW - timedelta(seconds=3),
            deaths=3,
            replayed=True,
            page=True,
            doubtful=True,
            degraded=("erp: no answer",),
            items={str(outcome): 2 for outcome in IngestOutcome},
        )
    yield from passed(whole_pass())
    yield from destinations()
    replayed = ReplayReport(False, counts={ReplayOutcome.REPLAYED: 3}, failed="SQS")
    yield from emitted(lambda metrics: measure_replay(metrics, replayed))


def test_the_age_of_a_dead_letter_is_written_in_passes_that_find_one() -> None:
    found = {point.name: point.values for point in passed(whole_pass())}
    assert found["OldestDeadLetter"] == [10 * 86_400]
    assert "OldestDeadLetter" not in {point.name for point in passed(ReconcilerReport())}


def test_every_metric_of_the_catalogue_is_emitted_and_no_other() -> None:
    # `points` has compared dimensions and units.
    assert {point.name for point in everything()} == CATALOGUE.keys() - OF_THE_ACCESS_LOG


def test_a_dimension_is_a_name_of_the_manifest_or_of_an_enum() -> None:
    allowed = {
        "source": {"shop"},
        "kind": set(map(str, Duplicate)),
        "reason": set(map(str, Reason)),
        "outcome": {"done", "skipped", "held", "failed", "dead"},
        "handler": {"shop.pay"},
        "destination": {"erp", "crm"},
    }
    for point in everything():
        for name, value in point.dimensions.items():
            assert value in allowed[name], point


@pytest.mark.parametrize(
    "hostile",
    [RunMessage("x" * 300, "e1", "y" * 300), RunMessage("", "", "'; DROP"), None],
    ids=["long", "odd", "unreadable"],
)
def test_a_message_that_names_no_handler_makes_no_metric_of_its_own(
    hostile: RunMessage | None,
) -> None:
    counted = run(RunOutcome.DEAD, reference=hostile, items={"accepted": 1})

    values = {value for point in counted for value in point.dimensions.values()}
    assert values == {"none", "dead"}


def test_a_given_up_run_of_a_handler_that_is_gone_is_counted_without_its_name() -> None:
    counted = passed(ReconcilerReport(dead=[dead_run("gone.handler")]))

    assert ("Runs", [1], {"handler": "none", "outcome": "dead"}) in counted
    assert "DeadAgain" not in {point.name for point in counted}


def test_a_hostile_delivery_is_counted_by_names_of_the_manifest(inbox: Inbox) -> None:
    """`Output.read` compares each line with the catalogue."""
    inbox.deliver("lab.fine" + "x" * 300, event_id="'; DROP TABLE")
    for path in ("/webhooks/" + "a" * 200, "/completions/" + "b" * 200):
        inbox.request(http_event(path, headers={"x-source": "evil"}, body=b"\xff"))
    inbox.work()

    sources = {point.dimensions.get("source", "acme") for point in inbox.output.points()}
    assert sources == {"acme"}


# -- values


@pytest.mark.parametrize(
    ("deaths", "again"), [(1, False), (2, False), (3, True), (4, True)], ids=str
)
def test_the_third_death_of_a_run_is_one_too_many(deaths: int, again: bool) -> None:
    counted = run(RunOutcome.DEAD, deaths=deaths)

    assert (("DeadAgain", [1], {}) in counted) is again


@pytest.mark.parametrize(
    ("outcome", "name"),
    [
        (RunOutcome.DONE, "ReplayedDone"),
        (RunOutcome.SKIPPED, "ReplayedDone"),
        (RunOutcome.DEAD, "ReplayedDead"),
        (RunOutcome.FAILED, None),
    ],
)
def test_a_replayed_run_is_counted_when_it_ends(outcome: RunOutcome, name: str | None) -> None:
    first = {point.name for point in run(outcome)}
    replayed = {point.name for point in run(outcome, replayed=True)}

    assert replayed - first == ({name} if name else set())


def test_the_time_from_receipt_to_done_is_in_seconds() -> None:
    counted = run(RunOutcome.DONE, received_at=NOW - timedelta(seconds=1.5))

    assert ("ReceiptToDone", [1.5], {}) in counted


def test_the_acknowledgement_time_is_in_milliseconds() -> None:
    assert ("AcknowledgementTime", [31.0], {}) in delivery(IngestOutcome.ACCEPTED)


def test_only_destinations_that_are_down_or_have_a_queue_are_measured() -> None:
    assert destinations() == [
        ("CircuitOpen", [1], {"destination": "erp"}),
        ("LimiterQueue", [42.0], {"destination": "crm"}),
    ]


def test_a_pass_is_counted_although_the_destinations_cannot_be_read(
    inbox: Inbox, faults: Faults
) -> None:
    faults.set("BatchGetItem", Fault.DOWN)

    inbox.invoke("reconciler", {}, remaining=300)

    assert inbox.output.points() == []
