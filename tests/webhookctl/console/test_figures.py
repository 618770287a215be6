"""The figures of the plots: of CloudWatch's metrics, and of the ledger."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.webhookctl.commands.stage import Cli, Inbox
from tests.webhookctl.console.browsing import console_of
from webhook_inbox.adapters.aws.reader import Unread
from webhook_inbox.client import stats as module
from webhook_inbox.client.stats import WINDOWS, Figures, StatsWindow
from webhook_inbox.domain.errors import Permanent
from webhookctl.console.inbox import ConsoleInbox
from webhookctl.console.plots import nice, number, path, plots

NOW = datetime(2026, 1, 1, 0, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize("name", WINDOWS)
def test_the_last_step_of_a_window_contains_now(name: str) -> None:
    window = WINDOWS[name]
    start = window.start(NOW)
    assert start + (window.count - 1) * window.step <= NOW < start + window.count * window.step
    # CloudWatch aligns values with multiples of the period.
    assert start.timestamp() % window.step.total_seconds() == 0


def figures(shown: ConsoleInbox, window: StatsWindow) -> Figures:
    return shown.reading(None).stats.read(window)


class CloudWatch:
    """Answers with the same value at each of the first two steps."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []

    def get_metric_data(self, **values: Any) -> dict[str, Any]:
        self.asked.append(values)
        start = values["StartTime"]
        at = [start, start + timedelta(minutes=1)]
        return {
            "MetricDataResults": [
                {"Id": each["Id"], "Timestamps": at, "Values": [3.0, 4.0]}
                for each in values["MetricDataQueries"]
                if each["MetricStat"]["Stat"] != "p95"
            ]
        }


@pytest.fixture
def cloudwatch(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> CloudWatch:
    """The stack's metrics."""
    double = CloudWatch()
    others = cli._client
    monkeypatch.setattr(
        cli, "_client", lambda service: double if service == "cloudwatch" else others(service)
    )
    return double


def test_the_metrics_of_a_stack_are_read_in_one_call(cli: Cli, cloudwatch: CloudWatch) -> None:
    shown = console_of(cli)
    found = figures(shown, WINDOWS["1h"])
    [asked] = cloudwatch.asked
    stats = [each["MetricStat"] for each in asked["MetricDataQueries"]]
    assert [each["Metric"]["MetricName"] for each in stats] == [
        *["Accepted"] * 3,
        "Runs",
        "ReceiptToDone",
        "ReceiptToDone",
        "Runs",
        "Runs",
    ]
    assert {each["Metric"]["Namespace"] for each in stats} == {"WebhookInbox/WebhookInbox-test"}
    assert {each["Period"] for each in stats} == {60}
    # Three sources, added up; no count is 0, and no time is none.
    assert found.series["accepted"][:3] == [9.0, 12.0, 0.0]
    assert found.series["dead"][:3] == [3.0, 4.0, 0.0]
    assert found.series["p50"][:3] == [3.0, 4.0, None]
    assert set(found.series["p95"]) == {None}
    assert shown.dollars == pytest.approx(8 * 0.01 / 1000)


def test_a_refused_call_names_the_right(
    cli: Cli, cloudwatch: CloudWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        error = {"Code": "AccessDenied", "Message": "no"}
        raise ClientError({"Error": error}, "GetMetricData")

    monkeypatch.setattr(cloudwatch, "get_metric_data", refuse)
    with pytest.raises(Unread, match="request the right cloudwatch:GetMetricData"):
        figures(console_of(cli), WINDOWS["1h"])


def test_a_sum_of_many_sources_is_bounded(cli: Cli, cloudwatch: CloudWatch) -> None:
    cli.urls = {f"source-{number}": "https://x" for number in range(60)}
    found = figures(console_of(cli), WINDOWS["1h"])
    assert len(cloudwatch.asked[0]["MetricDataQueries"]) == 55
    assert "Accepted events are those of 50 of 60 sources." in found.basis


def test_the_local_ledger_counts_what_happened_when_it_happened(cli: Cli, inbox: Inbox) -> None:
    cli.local = True
    inbox.script("acme.fulfil", Permanent("no"))
    inbox.deliver("dead")
    inbox.deliver("done")
    inbox.work()
    found = figures(console_of(cli), WINDOWS["1h"])
    assert (found.series["accepted"][-1], found.series["dead"][-1]) == (2.0, 1.0)
    assert sum(value or 0 for value in found.series["failed"]) == 0
    assert found.series["done"][-1] == 3.0
    assert found.series["p95"][-1] is not None
    assert found.basis == "Of the 2 events received in this window, read from the local ledger."


def test_a_stack_without_a_dashboard_is_read_from_its_ledger(
    cli: Cli, inbox: Inbox, cloudwatch: CloudWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes only the runs that died."""
    all_of_them = cloudwatch.get_metric_data

    def only_dead(**values: Any) -> dict[str, Any]:
        asked = values["MetricDataQueries"]
        return all_of_them(**{**values, "MetricDataQueries": asked[-1:]})

    monkeypatch.setattr(cloudwatch, "get_metric_data", only_dead)
    inbox.deliver("done")
    inbox.work()

    found = figures(console_of(cli), WINDOWS["1h"])

    assert (found.series["accepted"][-1], sum(v or 0 for v in found.series["done"])) == (1.0, 2.0)
    assert found.basis == "Of the 1 event received in this window, read from the ledger."


def test_the_local_ledger_is_read_within_a_bound(
    cli: Cli, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVENTS", 3)
    cli.local = True
    for number_ in range(5):
        inbox.deliver(f"evt-{number_}")
    found = figures(console_of(cli), WINDOWS["1h"])
    assert sum(value or 0 for value in found.series["accepted"]) == 3
    assert found.basis.startswith("Of the newest 3 events in the local ledger, back to 2026-01-01")


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.004, 0.01), (0.3, 0.5), (1, 1), (3, 5), (11, 20), (501, 1000)]
)
def test_an_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert nice(value) == top


def test_a_line_has_gaps_where_there_is_no_value() -> None:
    assert path([0, None, 1, 2], 2) == "M75.0 120.0h0M375.0 60.0h0L525.0 0.0"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (0.1234, "0.123"), (12.3, "12.3"), (1234.5, "1,234")],
)
def test_a_value_has_three_digits(value: float | None, text: str) -> None:
    assert number(value) == text


def test_a_table_leaves_out_steps_without_values(cli: Cli, cloudwatch: CloudWatch) -> None:
    drawn = plots(figures(console_of(cli), WINDOWS["1h"]))
    assert [plot.title for plot in drawn] == ["Throughput", "Time to done", "Failures"]
    assert [cells for _, cells in drawn[0].rows] == [["12", "4"], ["9", "3"]]
    assert drawn[0].ticks == ("20", "10", "0")
    assert "events accepted: at most 12" in drawn[0].summary
