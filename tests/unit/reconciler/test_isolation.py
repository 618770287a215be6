"""Guarantee 8, measured in virtual time: `scripts.isolation_benchmark` on a small scale."""

from scripts.isolation_benchmark import idle_reads, measure


def test_a_backlog_delays_another_handlers_runs_by_less_than_90_seconds() -> None:
    found = measure(3000, 40)
    assert found.median_delay < 90
    assert found.worst_delay < 90


def test_a_destination_drains_at_its_rate() -> None:
    assert measure(6000, 1, rate=100).backlog_per_minute == 6000


def test_an_idle_inbox_is_read_cheaply() -> None:
    assert idle_reads(10) == 10 * 8 + 2 + 5  # the due index, and the first look at events
