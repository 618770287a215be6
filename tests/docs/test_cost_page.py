"""The page on costs has what the command prints, what is counted, and one price table."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from bench.results import Results
from bench.subjects import INBOX
from scripts.cost import REMAINING, STEADY, in_readme, rendered, steady
from tests.docs.pages import DOCS, README, TEXTS
from webhook_inbox.domain import prices
from webhook_inbox.ledger.schema import EFFECT_LIFE, EVENT_LIFE, RUN_LIFE
from webhookctl.cost import units
from webhookctl.cost.estimate import (
    ACCESS_LOG,
    CALL_MS,
    LINE_OVERHEAD,
    SEND_MS,
    Load,
    estimate,
    flood,
)
from webhookctl.cost.shape import Shape

PAGE = DOCS / "cost.md"
TEXT = TEXTS[PAGE]
FLAT = " ".join(TEXT.split())
NEW = Shape.new(1)


def test_its_tables_and_outputs_are_those_of_today() -> None:
    """Otherwise: `python -m scripts.cost`."""
    assert rendered(TEXT) == TEXT
    assert in_readme(TEXTS[README]) == TEXTS[README]


def test_the_lines_that_remain_are_all_lines_of_the_estimate() -> None:
    explained = {line for lines, _ in REMAINING.values() for line in lines}
    rest = [line for line in steady(1, 0, 10).events if line.name not in explained]
    assert sum(line.dollars for line in rest) * 1_000_000 / STEADY < 0.005


def test_the_numbers_in_its_sentences_are_those_of_the_estimate() -> None:
    second, none = (
        estimate(Load(events=1_000_000, handler_ms=ms), NEW).per_million for ms in (1050, 50)
    )
    kept = flood(500 * 86_400, 1440, NEW)[-1].dollars
    plain, shown = (
        {line.name: line.dollars for line in estimate(Load(events=1_000_000), shape).events}
        for shape in (NEW, replace(NEW, dashboards=1))
    )
    stored, backed_up = plain["DynamoDB storage"], plain["DynamoDB backups"]
    assert backed_up / stored == pytest.approx(0.75, abs=0.05)
    for text in (
        f"alone costs {2 * prices.SQS_REQUESTS:.2f} dollars a million, and its invocation"
        f" {prices.LAMBDA_REQUESTS:.2f}",
        f"waits a second for its destination costs {second - none:.2f} dollars a million runs",
        f"each 10 ms in a processor costs {(second - none) / 100:.2f} dollars a million",
        f"costs {prices.WRITE_UNITS} dollars a million for each further KB",
        f"at most {kept:.2f} dollars a day and source",
        f"compared on {prices.DATE} with",
        f"`-c dashboard=true` adds {prices.DASHBOARD:.2f} dollars a month,"
        f" {prices.METRIC:.2f} for each of its metrics, which are {units.METRICS} and one for each"
        f" source and handler, and {shown['logs'] - plain['logs']:.2f} a million for their bytes",
        f"a line of the access log, {(ACCESS_LOG + LINE_OVERHEAD) / 1000 * prices.LOG_GB:.2f}"
        " dollars a million",
        f"A call to DynamoDB takes {CALL_MS} ms, one to SQS {SEND_MS} ms",
        f"Rows of events are kept for {EVENT_LIFE.days} days, runs {RUN_LIFE.days},"
        f" effects {EFFECT_LIFE.days}, logs {NEW.log_days}",
    ):
        assert text in FLAT


def test_the_least_that_an_event_costs_is_that_of_the_prices() -> None:
    written = units.NEW.writes + units.NEW.index_writes + units.RUN.writes
    least = written * prices.WRITE_UNITS + prices.API_REQUESTS
    least += prices.SQS_REQUESTS + prices.LAMBDA_REQUESTS
    alone = 2 * prices.SQS_REQUESTS + prices.LAMBDA_REQUESTS
    assert written == 4
    assert f"an invocation of ingest cost {least:.2f} dollars a million" in FLAT
    assert f"adds {alone:.2f} for its receive" in FLAT
    assert f"invocation: {least + alone:.2f} before any storage" in FLAT


def test_what_a_retention_saves_is_that_of_the_estimate() -> None:
    def by_line(body: int, days: int) -> Counter[str]:
        load, shape = Load(events=1_000_000, body=body), replace(NEW, retention=days * 86_400)
        return Counter({line.name: line.dollars for line in estimate(load, shape).events})

    kept, erased = by_line(3 * 1024, 0), by_line(3 * 1024, 1)
    assert f"To erase a payload costs {erased['erasure']:.2f} dollars" in FLAT
    freed = sum(kept[name] - erased[name] for name in ("DynamoDB storage", "DynamoDB backups"))
    assert f"frees at most {freed:.2f} of storage" in FLAT
    large = by_line(1024 * 1024, 0).total() - by_line(1024 * 1024, 1).total()
    assert f'`retention = "1d"`, {large:.0f} dollars a million' in FLAT
    for size, saves in ((170, False), (190, True)):
        assert (by_line(size * 1024, 0).total() > by_line(size * 1024, 1).total()) is saves


def test_no_other_page_has_a_price_of_the_table() -> None:
    """It would be forgotten when the table changes."""
    found = [p.name for p, text in TEXTS.items() if p != PAGE and re.search(r"0\.625\b", text)]
    assert found == []


def test_the_cpu_of_a_delivery_is_that_of_the_benchmark() -> None:
    """Of 3 KB, between 1 and 10 KB."""
    found = {step.title: step.time(INBOX).median / 1000 for step in Results.read().warm}
    small, large = found["Stripe, 1 KB"], found["Stripe, 10 KB"]
    assert small + (large - small) * 2 / 9 == pytest.approx(units.DELIVERY_CPU, rel=0.2)
