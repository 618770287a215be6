"""The page on costs has what the command prints, what is counted, and one price table."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from bench.results import Results
from bench.subjects import INBOX
from scripts.cost import rendered
from tests.docs.pages import DOCS, TEXTS
from webhook_inbox.domain import prices
from webhookctl.cost import units
from webhookctl.cost.estimate import Load, estimate, flood
from webhookctl.cost.shape import Shape

PAGE = DOCS / "cost.md"
TEXT = TEXTS[PAGE]
FLAT = " ".join(TEXT.split())
NEW = Shape.new(1)


def test_its_tables_and_outputs_are_those_of_today() -> None:
    """Otherwise: `python -m scripts.cost`."""
    assert rendered(TEXT) == TEXT


def test_the_numbers_in_its_sentences_are_those_of_the_estimate() -> None:
    second, none = (
        estimate(Load(events=1_000_000, handler_ms=ms), NEW).per_million for ms in (1050, 50)
    )
    kept = flood(500 * 86_400, 1440, NEW)[-1].dollars
    for text in (
        f"alone costs {2 * prices.SQS_REQUESTS:.2f} dollars a million, and its invocation"
        f" {prices.LAMBDA_REQUESTS:.2f}",
        f"waits a second for its destination costs {second - none:.2f} dollars a million runs",
        f"each 10 ms in a processor costs {(second - none) / 100:.2f} dollars a million",
        f"costs {prices.WRITE_UNITS} dollars a million for each further KB",
        f"at most {kept:.2f} dollars a day and source",
        f"compared on {prices.DATE} with",
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
    for size, saves in ((45, False), (55, True)):
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
