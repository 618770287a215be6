"""The work of a page does not grow with the ledger; docs/scale.md has what the code computes."""

import re
from xml.etree import ElementTree as ET

import pytest

from bench import scale
from bench.scale import Reading, measure

SIZES = (200_000, 1_000_000)


@pytest.fixture(scope="module")
def readings() -> list[Reading]:
    return measure(SIZES, rounds=1)


def test_a_page_makes_the_same_calls_whatever_the_size_of_the_ledger(
    readings: list[Reading],
) -> None:
    by_size = [{r.operation: r.calls for r in readings if r.events == size} for size in SIZES]

    assert len(by_size[0]) == 5
    assert by_size[0] == by_size[1]
    assert all(sum(calls.values()) for calls in by_size[0].values())


def test_a_page_needs_the_same_memory_whatever_the_size_of_the_ledger(
    readings: list[Reading],
) -> None:
    peaks = {(r.operation, r.events): r.peak for r in readings}

    for operation in {r.operation for r in readings}:
        small, large = (peaks[operation, size] for size in SIZES)
        assert large < 1.2 * small + 0.1, operation


@pytest.mark.parametrize(
    ("block", "table"),
    [
        ("limits", scale.limits_table),
        ("rates", scale.rates_table),
        ("waits", scale.waits_table),
        ("replay", scale.replay_table),
    ],
)
def test_the_page_has_what_is_computed_now(block: str, table: object) -> None:
    """`python -m bench.scale --computed` writes it."""
    assert callable(table)
    assert f"<!-- {block} -->\n{table()}\n<!-- /{block} -->\n" in scale.PAGE.read_text()


def test_the_times_of_the_page_are_those_of_the_estimate_of_costs() -> None:
    text = " ".join(scale.PAGE.read_text().split())
    ingest, run = (f"{1000 * seconds:.0f} ms" for seconds in (scale.INGEST, scale.RUN))

    for words in (
        f"a delivery takes {ingest} and a run {run}",
        f"enough for {2 / scale.RUN:.0f} runs of {run} a second",
        f"{scale.REPLAY} runs a second: {scale.REPLAY * scale.RUN:.0f} executions of {run}",
    ):
        assert words in text


def test_the_page_has_measurements_of_both_sizes() -> None:
    found = re.search("<!-- measured -->(.*)<!-- /measured -->", scale.PAGE.read_text(), re.DOTALL)

    assert found is not None
    for operation in scale.operations(scale.Counted(1)):
        for size in SIZES:
            assert f"| {operation} | {size:,} |" in found[1]


def test_the_chart_of_the_limits_is_that_of_the_table() -> None:
    drawn = scale.limits_chart()

    assert (scale.IMAGES / "scale-limits.svg").read_text() == drawn
    ET.fromstring(drawn)
    for limit in scale.limits():
        assert f"{limit.reached_at:,.0f}" in drawn


def test_the_chart_of_the_ledger_is_an_image(readings: list[Reading]) -> None:
    ET.fromstring(scale.flatness_chart(readings))
