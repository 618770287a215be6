"""Throughput, time to done and failures over a window: of CloudWatch, or of the ledger."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from time import monotonic
from typing import Final

from webhook_inbox.adapters.aws.cloudwatch import MetricStatistic, read_metrics
from webhook_inbox.adapters.aws.reader import Reader
from webhook_inbox.client.budget import BoundedTable
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.search import EventQuery, find
from webhook_inbox.client.target import Target
from webhook_inbox.domain import metrics
from webhook_inbox.domain.metrics import Metric, namespace
from webhook_inbox.domain.model import Overview, Run
from webhook_inbox.domain.printable import counted
from webhook_inbox.queue.outcomes import RunOutcome

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The sources whose events are added up: each is a metric, and a metric has a price.
SOURCES: Final = 50
# The events of the ledger that a plot is made of, and the time for it, which is in the background.
EVENTS: Final = 2000
SECONDS: Final = 3.0
FAILED: Final = frozenset({"failed", "dead_letter"})

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class StatsWindow:
    """A window of time up to now, in steps.

    Attributes:
        name: its name in the URL.
        step: the length of one value.
        word: the name of a step in a sentence.
    """

    name: str
    length: timedelta
    step: timedelta
    word: str

    @property
    def count(self) -> int:
        """The number of its steps."""
        return self.length // self.step

    def start(self, now: datetime) -> datetime:
        """Returns the start of its first step; the last one contains `now`."""
        last = now - (now - EPOCH) % self.step
        return last - (self.count - 1) * self.step


WINDOWS: Final = {
    each.name: each
    for each in (
        StatsWindow("1h", timedelta(hours=1), timedelta(minutes=1), "minute"),
        StatsWindow("24h", timedelta(hours=24), timedelta(minutes=30), "30 minutes"),
        StatsWindow("7d", timedelta(days=7), timedelta(hours=3), "3 hours"),
    )
}


@dataclass(frozen=True, slots=True)
class Figures:
    """The values of a window, one for each step.

    Attributes:
        series: the values by name; None where there is none.
        basis: what they were computed from.
    """

    window: StatsWindow
    start: datetime
    series: Mapping[str, Values]
    basis: str


class Stats:
    """The figures of an inbox."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def read(self, window: StatsWindow) -> Figures:
        """Returns the figures of a window: of CloudWatch's metrics, or of the newest events.

        An inbox on this machine has no metrics, and a stack without a dashboard writes neither
        accepted events nor runs that are done; their events are read for some seconds at most.

        Raises:
            Unread: CloudWatch failed, or refused the call.
        """
        scope, now = self._scope, self._scope.clock.now()
        if not scope.target.local:
            figures = _of_metrics(scope.target, window, now)
            if any(figures.series["accepted"]) or any(figures.series["done"]):
                return figures
        return _of_ledger(scope, window, now)


def _statistics(target: Target, step: timedelta) -> Iterator[tuple[str, MetricStatistic]]:
    """Yields the metrics of a stack, with the series of each; each is read once a minute."""

    def of(metric: Metric, statistic: str = "Sum", **dimensions: str) -> MetricStatistic:
        return MetricStatistic(namespace(target.stack), metric.name, dimensions, statistic, step)

    for name in sorted(target.urls)[:SOURCES]:
        yield "accepted", of(metrics.ACCEPTED, source=name)
    yield "done", of(metrics.RUNS, outcome=str(RunOutcome.DONE))
    yield "p50", of(metrics.RECEIPT_TO_DONE, "p50")
    yield "p95", of(metrics.RECEIPT_TO_DONE, "p95")
    yield "failed", of(metrics.RUNS, outcome=str(RunOutcome.FAILED))
    yield "dead", of(metrics.RUNS, outcome=str(RunOutcome.DEAD))


def _of_metrics(target: Target, window: StatsWindow, now: datetime) -> Figures:
    every = {f"m{n}": each for n, each in enumerate(_statistics(target, window.step))}
    start = window.start(now)
    values = read_metrics(
        Reader(target.client),
        {id_: statistic for id_, (_, statistic) in every.items()},
        start=start,
        end=start + window.count * window.step,
    )
    totals: dict[str, dict[int, float]] = defaultdict(dict)
    for id_, (series, _) in every.items():
        for at, value in values.get(id_, ()):
            step = (at - start) // window.step
            totals[series][step] = totals[series].get(step, 0.0) + value
    basis = f"Of the stack's CloudWatch metrics, {len(every)} of them, read once a minute."
    if len(target.urls) > SOURCES:
        basis += f" Accepted events are those of {SOURCES} of {len(target.urls)} sources."
    return Figures(window, start, _filled(totals, window), basis)


def _filled(totals: Mapping[str, Mapping[int, float]], window: StatsWindow) -> dict[str, Values]:
    """Returns a value for each step: no count is 0, no time is none."""
    return {
        name: [
            totals.get(name, {}).get(step, None if name.startswith("p") else 0.0)
            for step in range(window.count)
        ]
        for name in ("accepted", "done", "p50", "p95", "failed", "dead")
    }


def _of_ledger(scope: Scope, window: StatsWindow, now: datetime) -> Figures:
    """Counts the newest events of the window, for a bounded time."""
    start, ends = window.start(now), monotonic() + SECONDS
    table = BoundedTable(scope.table, seconds=SECONDS)
    counts: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    times: dict[int, list[float]] = defaultdict(list)
    read, oldest, complete = 0, now, True
    for overview in islice(find(table, EventQuery(since=start), now=now), EVENTS + 1):
        if read == EVENTS or monotonic() > ends:
            complete = False
            break
        read, oldest = read + 1, overview.event.received_at
        for series, at, seconds in _happened(overview):
            step = (at - start) // window.step
            counts[series][step] += 1
            if series == "done":
                times[step].append(seconds)
    for step, values in times.items():
        counts["p50"][step], counts["p95"][step] = (_quantile(values, q) for q in (0.5, 0.95))
    events = counted(read, "event")
    ledger = "local ledger" if scope.target.local else "ledger"
    basis = f"Of the {events} received in this window, read from the {ledger}."
    if not complete or table.cut:
        basis = (
            f"Of the newest {events} in the {ledger}, back to {oldest:%Y-%m-%d %H:%M:%S} UTC:"
            " one page reads no more, so earlier steps are empty."
        )
    return Figures(window, start, _filled(counts, window), basis)


def _happened(overview: Overview) -> Iterator[tuple[str, datetime, float]]:
    """Yields what happened to an event: the series, the time, and the seconds since its receipt."""
    received_at = overview.event.received_at
    yield "accepted", received_at, 0.0
    for run in overview.runs:
        for series, at in _of_run(run):
            yield series, at, (at - received_at).total_seconds()


def _of_run(run: Run) -> Iterator[tuple[str, datetime]]:
    if run.done_at is not None:
        yield "done", run.done_at
    if run.dead_at is not None:
        yield "dead", run.dead_at
    for attempt in run.attempts:
        if attempt.outcome in FAILED and attempt.ended_at != run.dead_at:
            yield "failed", attempt.ended_at


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
