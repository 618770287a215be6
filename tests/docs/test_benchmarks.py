"""The pages on benchmarks, the chart and README's table are those of the last run's results."""

import re
from functools import cache
from xml.etree import ElementTree as ET

import pytest

from bench import budget, page
from bench.chart import draw
from bench.results import Results
from bench.subjects import BARE, INBOX


@cache
def results() -> Results:
    return Results.read()


@cache
def whole_page() -> str:
    return page.page(results())


@pytest.mark.parametrize(
    ("path", "render"),
    [
        (page.PAGE, whole_page),
        (page.CHART, lambda: draw(results())),
        (page.README, lambda: page.readme(results())),
    ],
    ids=["page", "chart", "README"],
)
def test_a_page_is_fresh(path, render) -> None:
    assert path.read_text(encoding="utf-8") == render(), "run: python -m bench --render"


def test_a_run_has_enough_processes() -> None:
    warm, cold = results().rounds
    assert warm >= 5
    assert cold >= 5
    assert len(results().steps) == 9


def test_the_tables_fit_a_terminal_of_80_columns() -> None:
    assert max(map(len, page.terminal(results()).splitlines())) <= 80


def test_no_placeholder_is_left() -> None:
    assert re.findall(r"@[A-Z]+@", whole_page()) == []


def test_the_chart_has_every_ratio_of_the_inbox() -> None:
    texts = {element.text for element in ET.fromstring(draw(results())).iter()}
    for step in results().steps:
        assert {step.title, f"{step.ratio(INBOX).median:.2f}"} <= texts


def test_a_ratio_is_of_two_processes_of_one_round() -> None:
    step = results().warm[0]
    pairs = zip(step.cpu[INBOX], step.cpu[BARE], strict=True)
    assert step.ratio(INBOX).high == max(a / b for a, b in pairs)


def test_the_budget_is_the_same_each_time_and_more_memory_takes_less_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "DELIVERIES", 20_000)
    small, large = (budget.budget(results(), memory) for memory in (512, budget.ONE_CPU))
    assert small == budget.budget(results(), 512)
    for share in budget.SHARES:
        assert large[budget.EVERY][share] < small[budget.EVERY][share]
    cpu = results().warm[0].time(INBOX).median / 1e3
    assert large[budget.CPU_WARM]["p50"] == pytest.approx(cpu, rel=0.2)
