"""The section on metrics is that of the catalogue, and its cost that of this repository's app."""

import re
from functools import cache

import pytest

from scripts import metrics
from tests.docs.pages import RUNBOOK
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.metrics import ACCEPTED, CATALOGUE, REJECTED, RUNS, Metric, Use
from webhook_inbox.ingest.deduplication import PROMPT
from webhook_inbox.queue.outcomes import RunOutcome


@cache
def app() -> Manifest:
    """Returns the manifest of this repository's app."""
    return compile_manifest(metrics.ROOT / "functions", stage="prod")


def test_the_section_is_fresh() -> None:
    section = metrics.SECTION.search(metrics.FILE.read_text(encoding="utf-8"))

    assert section is not None
    assert section[0] == metrics.render(), "run: python -m scripts.metrics"


def test_the_kinds_of_duplicates_name_the_time_that_they_are_told_apart_by() -> None:
    assert f"{PROMPT.total_seconds():g} seconds" in metrics.KINDS[metrics.Duplicate.SELF]


@pytest.mark.parametrize(
    ("metric", "number"),
    [(ACCEPTED, 2), (REJECTED, 1 + len(Reason)), (RUNS, 5 + 5 * 3)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_metric_costs_every_combination_of_its_dimensions(metric: Metric, number: int) -> None:
    small = Manifest(
        sources=dict(list(app().sources.items())[:2]),
        handlers=dict(list(app().handlers.items())[:3]),
    )

    assert metrics.combinations(metric, small) == number


def test_every_dimension_has_a_known_number_of_values() -> None:
    assert all(metrics.combinations(metric, app()) > 0 for metric in CATALOGUE.values())


def test_the_outcomes_of_runs_are_counted_whole() -> None:
    named = {RunOutcome.DONE, RunOutcome.SKIPPED, RunOutcome.HELD, RunOutcome.FAILED}

    assert len({*named, RunOutcome.DEAD}) == metrics.OUTCOMES


def test_the_runbook_reads_no_metric_that_a_stack_without_a_dashboard_does_not_write() -> None:
    named = set(re.findall(r"`(\w+)`", RUNBOOK.read_text(encoding="utf-8")))
    of_dashboards = {each.name for each in CATALOGUE.values() if each.used == (Use.DASHBOARD,)}

    assert named.isdisjoint(of_dashboards)
    assert "Latency" in named
