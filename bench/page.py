"""Renders the results: tables on the terminal, docs/benchmarks.md, its chart, README's table."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bench import budget
from bench.chart import draw
from bench.deliveries import ROOT
from bench.results import Results, Spread, Step
from bench.subjects import BARE

PAGE: Final = ROOT / "docs" / "benchmarks.md"
CHART: Final = ROOT / "docs" / "images" / "benchmarks.svg"
README: Final = ROOT / "README.md"
BLOCK: Final = re.compile(r"<!-- bench -->\n.*?<!-- /bench -->\n", re.DOTALL)
TEMPLATE: Final = ROOT / "bench" / "page.md"

# A ratio's median, least and greatest, for 80 columns and for a page.
NARROW: Final = "{0.median:.2f} {0.low:.2f}-{0.high:.2f}"
WIDE: Final = "{0.median:.2f} ({0.low:.2f} to {0.high:.2f})"

Table = Sequence[Sequence[str]]


def ratios(results: Results, form: str) -> Table:
    """Returns each handler's CPU as a ratio to the bare handler's, in a form for `Spread`."""
    names = [name for name in results.handlers if name != BARE]
    rows = [
        [step.title, *(form.format(step.ratio(name)) for name in names)] for step in results.steps
    ]
    return [["", *names], *rows]


def times(results: Results) -> Table:
    """Returns each handler's CPU for one event."""
    rows = [
        [step.title, *(_time(step.time(name)) for name in results.handlers)]
        for step in results.steps
    ]
    wall = [_time(results.cold.time(name, wall=True)) for name in results.handlers]
    return [["", *results.handlers], *rows, ["cold, wall", *wall]]


def calls(results: Results) -> Table:
    """Returns each handler's AWS calls for one event."""
    rows = [
        [step.title, *(f"{step.calls[name]:g}" for name in results.handlers)]
        for step in results.steps
    ]
    return [["", *results.handlers], *rows]


def terminal(results: Results) -> str:
    """Returns two tables of at most 80 columns."""
    warm, cold = results.rounds
    return (
        f"{results.machine}\nPython {results.python};"
        f" medians of {warm} processes, cold of {cold} (least-greatest)\n\n"
        f"CPU as a ratio to the {BARE} handler\n{_aligned(ratios(results, NARROW))}\n"
        f"CPU of one event, \u00b5s; of a cold start, ms (\u00b1 half of the range)\n"
        f"{_aligned(times(results))}\n"
    )


def page(results: Results) -> str:
    """Returns docs/benchmarks.md."""
    warm, cold = results.rounds
    parts = {
        "DATE": results.date,
        "MACHINE": results.machine,
        "PYTHON": results.python,
        "LIBRARIES": ", ".join(f"{name} {v}" for name, v in results.libraries.items()),
        "WARM": str(warm),
        "COLD": str(cold),
        "RATIOS": _markdown(ratios(results, WIDE)),
        "TIMES": _markdown(times(results)),
        "CALLS": _markdown(calls(results)),
        "BUDGET": _markdown(_budget(results)),
        **{name: f"{dollars:.2f}" for name, dollars in budget.snapstart(results).items()},
        "BASES": "\n".join(f"- {s.step}: {s.basis}." for s in budget.SERVICES),
    }
    return _filled(TEMPLATE.read_text(encoding="utf-8"), parts)


def summary(results: Results) -> str:
    """Returns README's block."""
    steps: Sequence[Step] = [s for s in results.steps if "1 KB" in s.title or s is results.cold]
    rows = [[s.title, *(f"{s.ratio(n).median:.2f}" for n in results.handlers)] for s in steps]
    table = _markdown([["CPU of one event, bare boto3 handler = 1", *results.handlers], *rows])
    return f"<!-- bench -->\n{table}<!-- /bench -->\n"


def readme(results: Results) -> str:
    """Returns README.md with its block."""
    return BLOCK.sub(lambda _: summary(results), README.read_text(encoding="utf-8"))


def write(results: Results) -> Iterable[Path]:
    """Writes the pages; returns their paths."""
    rendered = {PAGE: page, CHART: draw, README: readme}
    for path, render in rendered.items():
        path.write_text(render(results), encoding="utf-8")
    return rendered.keys()


def _budget(results: Results) -> Table:
    head = [f"{memory:,} MB {name}" for memory in budget.MEMORIES for name in budget.SHARES]
    found = [budget.budget(results, memory) for memory in budget.MEMORIES]
    cold = {s.step for s in budget.SERVICES if s.cold} | {budget.CPU_COLD}
    names = sorted(found[0], key=lambda name: (name == budget.EVERY, name in cold))
    rows = [
        [name, *(f"{each[name][share]:.0f}" for each in found for share in budget.SHARES)]
        for name in names
    ]
    return [["ms", *head], *rows]


def _time(spread: Spread) -> str:
    half = (spread.high - spread.low) / 2 / spread.median
    return f"{spread.median:,.0f} \u00b1{half:.0%}"


def _aligned(table: Table) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() + "\n"
        for row in table
    )


def _markdown(table: Table) -> str:
    head, *rows = table
    marks = ["---", *["---:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, marks, *rows))


def _filled(text: str, parts: Mapping[str, str]) -> str:
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part.rstrip("\n"))
    return text
