"""Measures what grows with the ledger, and computes what grows with the rate: docs/scale.md.

    python -m bench.scale [--computed]

The ledger is a double whose rows are made when they are read, with 200,000 and with a million
events at one rate, so that the larger one has five times the history. CPU and memory are of the
code that reads; calls are those of DynamoDB's API. The limits are AWS's published ones.
"""

import argparse
import re
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from math import log10
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any, Final

from bench.chart import STYLE, mark
from tests.webhookctl.console.million import HANDLER, SOURCE, Million
from webhook_inbox.adapters.memory import ManualClock, MemoryTable, memory_ports
from webhook_inbox.client.search import EventQuery, find
from webhook_inbox.domain.manifest import HandlerSpec, Manifest, SourceSpec
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.domain.ports import Item, Key, Page, Ports
from webhook_inbox.domain.replay_cost import estimate as replayed
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.ledger.due_handlers import deploy
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import RECEIVED_SHARDS
from webhook_inbox.reconciler.received import CURSORS, FIRST_LOOK, SECOND_LOOK, SECOND_STEP
from webhook_inbox.reconciler.reconciler import Reconciler
from webhookctl.cost import estimate as costs
from webhookctl.cost import units
from webhookctl.cost.shape import Shape

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "scale.md"
IMAGES: Final = ROOT / "docs" / "images"
SIZES: Final = (200_000, 1_000_000)
# Between two events: a million in a day.
STEP: Final = timedelta(days=1) / 1_000_000
ROUNDS: Final = 15
MINUTE: Final = timedelta(minutes=1)
NOW: Final = datetime(2026, 11, 23, 12, tzinfo=UTC)
PAGE_OF: Final = 50  # events of a list
SEARCHED: Final = 1_000  # runs of a replay's first page
MEGABYTE: Final = 1 << 20
MONTH: Final = 30 * 86_400
RATES: Final = (10, 1_000, 10_000)
# The seconds of a delivery and of a run: those of `webhookctl cost` for a new project.
INGEST: Final = costs.delivery_ms(Shape()) / 1000
RUN: Final = costs.batch_ms(costs.Load(events=1), Shape()) / 1000
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
PARTITION: Final = 1_000
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html
NEW_TABLE: Final = 4_000
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
TABLE: Final = 40_000
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
IN_FLIGHT: Final = 120_000
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
EXECUTIONS: Final = 1_000
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
MAPPING: Final = 1_000
# https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
REQUESTS: Final = 10_000
# The send rate of a replay that asks for no other, and the longest page that was measured.
REPLAY: Final = 500
# Runs per second: `python -m scripts.replay_benchmark`, decision 27.
REPLAY_MEASURED: Final = 226
# Seconds of a pass at 1,000 events/s: 12.9 of CPU and 11 of waiting, decision 5.
RECONCILER: Final = 23.9
DEAD: Final = 1_000_000
# The milliseconds that a handler waits, and the runs of an invocation.
WAITS: Final = ((50, 1), (5_000, 1), (5_000, 10))
WAITING_RATE: Final = 100  # events per second


@dataclass(frozen=True, slots=True)
class Reading:
    """One operation on one ledger: seconds of CPU, the most MB of memory, and calls by name."""

    operation: str
    events: int
    cpu: float
    peak: float
    calls: Mapping[str, int]

    @property
    def total(self) -> int:
        """All calls."""
        return sum(self.calls.values())


class Counted(Million):
    """Counts the calls."""

    def __init__(self, events: int) -> None:
        small = MemoryTable()
        deploy(small, [HANDLER], now=NOW)
        looked = {"first": FIRST_LOOK + MINUTE, "second": SECOND_LOOK + SECOND_STEP}
        at = {name: to_ms(NOW - age) for name, age in looked.items()}
        cursors = {name: {str(n): at[name] for n in range(RECEIVED_SHARDS)} for name in looked}
        small.put({**CURSORS._asdict(), **cursors, "lanes": {}})
        super().__init__(small, NOW, events=events, span=STEP * events)
        self.calls: Counter[str] = Counter()

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """See the port."""
        self.calls["GetItem"] += 1
        return super().get(key, consistent=consistent)

    def get_many(self, keys: Sequence[Key], *, only: Sequence[str] = ()) -> list[Item]:
        """See the port."""
        self.calls["BatchGetItem"] += 1
        return super().get_many(keys, only=only)

    def query(self, pk: str, **options: Any) -> Iterator[Item]:
        """See the port."""
        self.calls["Query"] += 1
        return super().query(pk, **options)

    def query_index(self, index: str, value: str, **options: Any) -> Page:
        """See the port."""
        self.calls["Query"] += 1
        return super().query_index(index, value, **options)


def operations(table: Counted) -> Mapping[str, Callable[[], object]]:
    """Returns what is measured, by name."""
    ledger = Ledger(table=table)

    def listed(status: EventStatus | None) -> Callable[[], object]:
        return lambda: list(islice(find(table, EventQuery(status=status), now=NOW), PAGE_OF))

    return {
        "list: the newest 50 events": listed(None),
        "list: 50 dead letters": listed(EventStatus.DEAD_LETTER),
        "inspect: one event": lambda: ledger.overview(SOURCE, f"evt_{table.events // 2}", now=NOW),
        "replay: find 1,000 dead runs": lambda: list(islice(ledger.dead_runs(), SEARCHED)),
        "reconcile: a pass": lambda: _reconcile(table),
    }


def _reconcile(table: Counted) -> object:
    """Runs a pass that has one new minute to read, and five minutes for the second time."""
    clock = ManualClock(NOW)
    handler = HandlerSpec(HANDLER, "module", "function", SOURCE, ("*",))
    source = SourceSpec(SOURCE, "standard-webhooks", SOURCE, ("*",))
    manifest = Manifest("x", "1", {SOURCE: source}, {HANDLER: handler})
    ports: Ports = memory_ports(manifest, clock=clock)
    reconciler = Reconciler(manifest, replace(ports, table=table))
    return reconciler.run(deadline=NOW + timedelta(minutes=5))


def measure(sizes: Sequence[int] = SIZES, *, rounds: int = ROUNDS) -> list[Reading]:
    """Measures each operation on a ledger of each size."""
    found = []
    for operation in operations(Counted(1)):
        # In turns, since other work on the machine comes and goes.
        times = [[_once(operation, size)[0] for size in sizes] for _ in range(rounds)]
        for size, cpu in zip(sizes, map(median, zip(*times, strict=True)), strict=True):
            tracemalloc.start()
            _, calls = _once(operation, size)
            peak = tracemalloc.get_traced_memory()[1] / MEGABYTE
            tracemalloc.stop()
            found.append(Reading(operation, size, cpu, peak, calls))
    return found


def _once(operation: str, size: int) -> tuple[float, Mapping[str, int]]:
    table = Counted(size)
    work = operations(table)[operation]
    begun = process_time()
    work()
    return process_time() - begun, dict(table.calls)


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, its remedy, and the events per second at which one handler's inbox reaches it."""

    name: str
    value: str
    reached_at: float
    remedy: str

    def used(self, rate: float) -> str:
        """Returns the share that a rate uses."""
        share = 100 * rate / self.reached_at
        return f"{share:.1f} %" if share < 10 else f"{share:,.0f} %"


def limits() -> list[Limit]:
    """Returns the limits, the first one to be reached at the top."""
    load = costs.Load(events=MONTH)
    writes = units.event_writes(load.body) + units.NEW.index_writes
    writes += units.RUN.writes + units.RUN.index_writes
    found = [
        Limit(
            "a new table",
            f"{NEW_TABLE:,} write units/s at once",
            NEW_TABLE / writes,
            "DynamoDB grows with the traffic; warm the table's throughput before a launch",
        ),
        Limit(
            "the table",
            f"{TABLE:,} write units/s",
            TABLE / writes,
            "an AWS quota: ask for more",
        ),
        Limit(
            "hot keys of `by_received`",
            f"{RECEIVED_SHARDS} shards of {PARTITION:,} write units/s",
            RECEIVED_SHARDS * PARTITION / units.NEW.index_writes,
            "`RECEIVED_SHARDS`, see below; or two stacks",
        ),
        Limit(
            "the reconciler",
            "one pass a minute in one processor",
            1_000 * 60 / RECONCILER,
            "divide the sources between two stacks",
        ),
        Limit(
            "executions of ingest and processor",
            f"{EXECUTIONS:,} at the same time",
            EXECUTIONS / (INGEST + RUN),
            "an AWS quota: ask for more; or `runs_per_invocation` of the lane",
        ),
        Limit(
            "executions of one lane",
            f"{MAPPING:,} at the same time",
            MAPPING / RUN,
            "`runs_per_invocation` of the lane, or more lanes",
        ),
        Limit(
            "the API",
            f"{REQUESTS:,} requests/s in an account",
            REQUESTS,
            "an AWS quota: ask for more",
        ),
        Limit(
            "messages in flight",
            f"{IN_FLIGHT:,} of one queue",
            IN_FLIGHT / RUN,
            "more lanes",
        ),
    ]
    return sorted(found, key=lambda limit: limit.reached_at)


def measured_table(readings: Sequence[Reading]) -> str:
    """Returns the measurements as Markdown."""
    lines = ["| | events | CPU | peak memory | calls |", "|---|---|---|---|---|"]
    for each in readings:
        calls = ", ".join(f"{number} {name}" for name, number in sorted(each.calls.items()))
        lines.append(
            f"| {each.operation} | {each.events:,} | {1000 * each.cpu:.2f} ms |"
            f" {each.peak:.2f} MB | {calls} |"
        )
    return "\n".join(lines)


def limits_table() -> str:
    """Returns the limits as Markdown."""
    rates = " | ".join(f"at {rate:,}/s" for rate in RATES)
    lines = [f"| limit | value | reached at | {rates} | remedy |", "|---|---|---|---|---|---|---|"]
    for limit in limits():
        used = " | ".join(limit.used(rate) for rate in RATES)
        reached = f"{limit.reached_at:,.0f}/s"
        lines.append(f"| {limit.name} | {limit.value} | {reached} | {used} | {limit.remedy} |")
    return "\n".join(lines)


def rates_table() -> str:
    """Returns what a month of each rate needs and costs, as Markdown."""
    lines = [
        "| events/s | a month | executions | messages in flight | dollars a month |",
        "|---|---|---|---|---|",
    ]
    for rate in RATES:
        cost = costs.estimate(costs.Load(events=rate * MONTH), Shape())
        dollars = cost.of_events + cost.of_idle
        lines.append(
            f"| {rate:,} | {rate * MONTH / 1e6:,.0f} million | {rate * (INGEST + RUN):,.1f} |"
            f" {rate * RUN:,.1f} | {dollars:,.0f} |"
        )
    return "\n".join(lines)


def waits_table() -> str:
    """Returns the executions and the price of handlers that wait, as Markdown."""
    lines = [
        "| the handler waits | runs an invocation | executions | dollars a million events |",
        "|---|---|---|---|",
    ]
    for wait, batch in WAITS:
        load = costs.Load(events=WAITING_RATE * MONTH, handler_ms=wait, batch=batch)
        taken = WAITING_RATE * costs.batch_ms(load, Shape()) / 1000 / batch
        price = costs.estimate(load, Shape()).per_million
        lines.append(f"| {wait / 1000:g} s | {batch} | {taken:,.0f} | {price:.2f} |")
    return "\n".join(lines)


def replay_table() -> str:
    """Returns the replay of a million dead runs, as Markdown."""
    cost = replayed(DEAD)
    pages, batches, sends = DEAD // SEARCHED, DEAD // 100, DEAD // 10
    rows = {
        "time at 500 runs/s, the default rate": f"{DEAD / REPLAY / 60:.0f} min",
        f"time at {REPLAY_MEASURED} runs/s, as measured": f"{DEAD / REPLAY_MEASURED / 60:.0f} min",
        "calls to find them": f"{pages:,} or more Query, {batches:,} BatchGetItem",
        "calls to send them": f"{DEAD:,} UpdateItem, {sends:,} SendMessageBatch",
        "write units, with one attempt of each": f"{cost.writes:,}",
        "read units": f"{cost.reads:,}",
        "SQS requests, at most": f"{cost.messages:,}",
        "dollars, without Lambda and logs": f"{cost.dollars:.2f}",
    }
    return "\n".join(
        ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    )


def flatness_chart(readings: Sequence[Reading]) -> str:
    """Returns an SVG: each operation on the larger ledger as a ratio to the smaller one."""
    names = list(dict.fromkeys(each.operation for each in readings))
    left, width, scale, top = 260, 840, 220.0, 92
    parts = [*_title("A ledger of a million events, as a ratio to one of 200,000"), *_legend()]
    bottom = top + 40 * len(names)
    for tick in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5):
        x, kind = left + tick * scale, "bare" if tick == 1 else "grid"
        parts.append(f'<line class="{kind}" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 20, f"{tick:g}", 'class="quiet" text-anchor="middle"'))
    for row, name in enumerate(names):
        small, large = (each for each in readings if each.operation == name)
        y = top + 40 * row + 20
        parts.append(_text(16, y + 4, name))
        ratios = (large.cpu / small.cpu, large.peak / small.peak, large.total / small.total)
        for number, ratio in enumerate(ratios):
            x = left + min(ratio, 2.5) * scale
            parts.append(mark(number, x, y + 9 * (number - 1)))
    label = "CPU, memory and calls of each operation do not grow with the ledger"
    return _svg(parts, width, bottom + 34, label)


def limits_chart() -> str:
    """Returns an SVG: the events per second at which each limit is reached, on a log scale."""
    found = limits()
    left, width, top = 260, 840, 70
    powers = 7  # from 1 to ten millions
    scale = (width - left - 120) / powers

    def place(rate: float) -> float:
        return left + log10(rate) * scale

    bottom = top + 30 * len(found)
    parts = [*_title("Events per second at which an inbox with one handler reaches a limit")]
    parts.append(_text(16, 46, "dashed: the rates of the table", 'class="quiet"'))
    for power in range(powers + 1):
        x, rate = place(10**power), 10**power
        kind = "bare" if rate in RATES else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 20, f"{rate:,}", 'class="quiet" text-anchor="middle"'))
    for row, limit in enumerate(found):
        y, x = top + 30 * row + 15, place(limit.reached_at)
        parts.append(_text(16, y + 4, limit.name.replace("`", "")))
        parts.append(
            f'<line x1="{left}" y1="{y}" x2="{x:.1f}" y2="{y}"'
            ' style="stroke: var(--c0); stroke-width: 3"/>'
        )
        parts.append(mark(0, x, y))
        value = f"{limit.reached_at:,.0f}"
        parts.append(_text(width - 16, y + 4, value, 'class="value" text-anchor="end"'))
    label = "; ".join(f"{limit.name} {limit.reached_at:,.0f}/s" for limit in found)
    return _svg(parts, width, bottom + 34, label.replace("`", ""))


def _title(text: str) -> list[str]:
    return [_text(16, 26, text, 'class="title"')]


def _legend() -> Iterator[str]:
    for number, name in enumerate(("CPU", "peak memory", "calls")):
        yield mark(number, 22 + 130 * number, 58)
        yield _text(36 + 130 * number, 62, name)


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{text}</text>'


def _svg(parts: Sequence[str], width: int, height: float, label: str) -> str:
    inner = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" role="img"'
        f' aria-label="{label}">\n<style>\n{STYLE}</style>\n'
        f'<rect class="page" width="{width}" height="{height:.0f}" rx="6"/>\n{inner}\n</svg>\n'
    )


def main() -> None:
    """Measures unless told not to, and writes the page's tables and its charts."""
    parser = argparse.ArgumentParser(description="Write docs/scale.md.")
    parser.add_argument("--computed", action="store_true", help="keep what was measured")
    tables = {
        "limits": limits_table(),
        "rates": rates_table(),
        "waits": waits_table(),
        "replay": replay_table(),
    }
    if not parser.parse_args().computed:
        readings = measure()
        tables["measured"] = measured_table(readings)
        (IMAGES / "scale-ledger.svg").write_text(flatness_chart(readings))
    text = PAGE.read_text()
    for name, table in tables.items():
        block = re.compile(rf"<!-- {name} -->\n.*?<!-- /{name} -->\n", re.DOTALL)
        text, count = block.subn(f"<!-- {name} -->\n{table}\n<!-- /{name} -->\n", text)
        if count != 1:
            raise SystemExit(f"{PAGE} has {count} blocks {name}")
    PAGE.write_text(text)
    (IMAGES / "scale-limits.svg").write_text(limits_chart())
    sys.stdout.write("\n\n".join(tables.values()) + "\n")


if __name__ == "__main__":
    main()
