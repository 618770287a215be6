"""Plots as SVG of fixed units; the labels are text of the page, so that they keep their size."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from webhook_inbox.client.stats import Figures, Values

# The drawing area, in the units of the SVG's viewBox.
WIDTH: Final = 600
HEIGHT: Final = 120
# The tops of an axis: a power of ten times one of these.
STEPS: Final = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True)
class Curve:
    """One series of a plot.

    Attributes:
        name: its name in the legend and the table.
        style: the class of its colour and dashes.
        values: its values.
        path: the path of its line, with gaps where there is no value.
    """

    name: str
    style: str
    values: Values
    path: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot with its axes.

    Attributes:
        title: what it shows.
        unit: the unit of its values, for a step.
        top: the value at the upper end of its axis.
        curves: its series.
        times: the start of each step.
        summary: its text alternative in one sentence.
    """

    title: str
    unit: str
    top: float
    curves: Sequence[Curve]
    times: Sequence[datetime]
    summary: str

    @property
    def rows(self) -> list[tuple[datetime, list[str]]]:
        """The steps with any value but 0, newest first, for a table."""
        found = [
            (at, values)
            for at, *values in zip(self.times, *(c.values for c in self.curves), strict=True)
            if any(values)
        ]
        return [(at, [number(v) for v in values]) for at, values in reversed(found)]

    @property
    def ticks(self) -> tuple[str, str, str]:
        """The labels of the axis, from above."""
        return number(self.top), number(self.top / 2), "0"


def plots(figures: Figures) -> list[Plot]:
    """Returns the plots of a window."""
    per = f"per {figures.window.word}"
    return [
        _plot(
            figures,
            "Throughput",
            f"number {per}",
            (("accepted", "events accepted", "info"), ("done", "runs done", "good")),
        ),
        _plot(
            figures,
            "Time to done",
            "seconds from receipt",
            (("p50", "p50", "info"), ("p95", "p95", "wait")),
        ),
        _plot(
            figures,
            "Failures",
            f"number {per}",
            (("failed", "attempts that will be retried", "wait"), ("dead", "runs dead", "bad")),
        ),
    ]


def _plot(figures: Figures, title: str, unit: str, named: Sequence[tuple[str, str, str]]) -> Plot:
    window = figures.window
    every = {key: figures.series[key] for key, _, _ in named}
    top = nice(max((v for values in every.values() for v in values if v is not None), default=0.0))
    curves = [
        Curve(name, f"curve-{place} curve-{colour}", every[key], path(every[key], top))
        for place, (key, name, colour) in enumerate(named, start=1)
    ]
    times = [figures.start + step * window.step for step in range(window.count)]
    return Plot(title, unit, top, curves, times, _summary(title, unit, curves, window.name))


def _summary(title: str, unit: str, curves: Sequence[Curve], window: str) -> str:
    told = []
    for curve in curves:
        known = [value for value in curve.values if value is not None]
        most = f"at most {number(max(known))}" if known else "no value"
        told.append(f"{curve.name}: {most}")
    return f"{title} of {window}, {unit}; {'; '.join(told)}. The table below has the values."


def path(values: Values, top: float) -> str:
    """Returns the path of a line through the middles of the steps."""
    width = WIDTH / len(values)
    parts, drawing = [], False
    for step, value in enumerate(values):
        if value is None:
            drawing = False
            continue
        x, y = (step + 0.5) * width, HEIGHT - value / top * HEIGHT
        # A single value is a line of no length, which its round ends make a dot.
        parts.append(f"{'L' if drawing else 'M'}{x:.1f} {y:.1f}{'' if drawing else 'h0'}")
        drawing = True
    return "".join(parts)


def nice(value: float) -> float:
    """Returns the top of an axis: the least of 1, 2 or 5 times a power of ten above the value."""
    if not value:
        return 1.0
    power = 0.01
    while power * 10 < value:
        power *= 10
    return next(round(power * step, 2) for step in STEPS if power * step >= value)


def number(value: float | None) -> str:
    """Returns a value for a reader: three digits, `-` for none."""
    if value is None:
        return "-"
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
