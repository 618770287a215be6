"""Estimates a month of an inbox from the counted units, the list prices and a stack's shape."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from math import ceil
from typing import Final

from webhook_inbox.domain import prices
from webhook_inbox.ingest.rejected import PER_MINUTE
from webhook_inbox.ledger.schema import BODY_LIFE, EFFECT_LIFE, EVENT_LIFE, RUN_LIFE
from webhookctl.cost import units
from webhookctl.cost.shape import Shape

MILLION: Final = 1_000_000
GB: Final = 1_000_000_000
GIB: Final = 1024  # MB
MONTH: Final = timedelta(days=365 / 12)
MINUTES: Final = MONTH // timedelta(minutes=1)
API_UNIT: Final = 512 * 1024
# DynamoDB adds so much to each row and each entry of an index in its bill of storage.
ROW_OVERHEAD: Final = 100
# CloudWatch counts so much for each line.
LINE_OVERHEAD: Final = 26
# The share of stored logs that is left after CloudWatch's compression.
COMPRESSED: Final = 0.15
# The access log's line of a delivery.
ACCESS_LOG: Final = 179
# Lambda's own lines of an invocation (platform.start, platform.report), as a published log of
# October 2026 has them.
SYSTEM_LOG: Final = (2, 450)
# Lambda polls an idle queue with five connections, each for 20 seconds.
IDLE_POLLS: Final = 5 * MONTH / timedelta(seconds=20)
# SQS takes so many messages in a request.
SENT_TOGETHER: Final = 10
# The mean time of a call to DynamoDB and to SQS, in milliseconds, as bench/budget.py has them by
# median and p99: AWS publishes single-digit milliseconds for DynamoDB, and none for SQS.
CALL_MS: Final = 5.6
SEND_MS: Final = 9.4
# The CPU of the start of the reconciler's pass, in milliseconds: an assumption.
PASS_MS: Final = 20
# The memory with which Lambda gives a function one vCPU.
ONE_CPU: Final = 1769
# How long a worker caches whether a handler is paused.
PAUSE_CACHE: Final = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The events of a month.

    Attributes:
        events: how many.
        body: the bytes of a body.
        handlers: the handlers that run for each event.
        effects: the effects of each run.
        handler_ms: the time that a handler waits, in milliseconds.
        batch: the messages of an invocation of a processor, whose runs are made at the same time.
    """

    events: int
    body: int = 3 * 1024
    handlers: int = 1
    effects: int = 0
    handler_ms: float = 50
    batch: int = 1

    @property
    def rate(self) -> float:
        """The events of a second, if they are spread evenly."""
        return self.events / MONTH.total_seconds()


@dataclass(frozen=True, slots=True)
class CostLine:
    """One line of an estimate: what is billed, and its dollars a month."""

    name: str
    billed: str
    dollars: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """The lines of a month: of events, and those that do not depend on them."""

    load: Load
    events: tuple[CostLine, ...]
    idle: tuple[CostLine, ...]

    @property
    def per_million(self) -> float:
        """The dollars of a million events, without what is idle."""
        return _sum(self.events) * MILLION / self.load.events

    @property
    def of_events(self) -> float:
        """The dollars of the month's events."""
        return _sum(self.events)

    @property
    def of_idle(self) -> float:
        """The dollars of a month without events."""
        return _sum(self.idle)


def figure(amount: float, digits: int = 3) -> str:
    """Returns an amount with so many significant digits, and without an exponent."""
    return f"{Decimal(f'{amount:.{digits}g}'):,f}"


def delivery_ms(shape: Shape) -> float:
    """Returns the billed time of a delivery, in milliseconds."""
    return CALL_MS + SEND_MS + units.DELIVERY_CPU * ONE_CPU / shape.ingest


def batch_ms(load: Load, shape: Shape) -> float:
    """Returns the billed time of a processor's invocation: its runs wait together."""
    effect = units.RUN_WITH_EFFECT_CPU - units.RUN_CPU
    cpu = (units.RUN_CPU + load.effects * effect) * ONE_CPU / shape.processor
    calls = len(units.RUN_WITH_EFFECT.calls) - len(units.RUN.calls)
    waits = (len(units.RUN.calls) + load.effects * calls) * CALL_MS + load.handler_ms
    return waits + load.batch * cpu


def estimate(load: Load, shape: Shape) -> Estimate:
    """Returns the estimate of a month."""
    return Estimate(load, tuple(_of_events(load, shape)), tuple(_idle(shape)))


def flood(requests: int, minutes: int, shape: Shape, *, body: int = 3 * 1024) -> list[CostLine]:
    """Returns the lines of a flood of forged deliveries to one source.

    Args:
        requests: how many pass the source's throttle.
        minutes: how long it lasts; a source stores up to 120 rejected deliveries in a minute.
        shape: the stack.
        body: the bytes of each body.
    """
    load = Load(events=requests, body=body)
    kept = min(requests, 2 * PER_MINUTE * minutes)
    system = SYSTEM_LOG if shape.system_log else (0, 0)
    size = sum(map(_logged, (units.REJECTED_LOG, system, (1, ACCESS_LOG))))
    return [
        _line("API Gateway", ceil(body / API_UNIT), "request", prices.API_REQUESTS, load),
        _compute("ingest", 1, delivery_ms(shape), shape.ingest, load),
        _log_line(size * requests, f"{figure(size / 1000)} KB a request", shape),
        CostLine(
            "DynamoDB writes",
            f"{kept:,} deliveries kept",
            kept * units.REJECTED.writes * prices.WRITE_UNITS / MILLION,
        ),
    ]


def _sum(lines: tuple[CostLine, ...]) -> float:
    return sum(line.dollars for line in lines)


def _of_events(load: Load, shape: Shape) -> Iterator[CostLine]:
    runs = load.handlers
    yield _line("API Gateway", ceil(load.body / API_UNIT), "request", prices.API_REQUESTS, load)
    yield _compute("ingest", 1, delivery_ms(shape), shape.ingest, load)
    taken = batch_ms(load, shape)
    yield _compute("processor", runs / load.batch, taken, shape.processor, load)
    yield _line("DynamoDB writes", _writes(load), "unit", prices.WRITE_UNITS, load)
    yield _line("DynamoDB reads", _reads(load, shape), "unit", prices.READ_UNITS, load)
    yield from _storage(load, shape)
    # Sent ten at a time; received and deleted with its batch.
    requests = ceil(runs / SENT_TOGETHER) + 2 * runs / load.batch
    yield _line("SQS", requests, "request", prices.SQS_REQUESTS, load)
    yield from _large_body(load, shape)
    yield from _erasure(load, shape)
    yield from _logs(load, shape)
    found = units.METRICS + units.METRICS_OF_SOURCE * shape.sources
    found += units.METRICS_OF_HANDLER * shape.handlers
    found = found if shape.dashboards else 0
    yield CostLine("metrics", f"{found} a month", found * prices.METRIC)
    # Every environment once a minute; at a low rate, each event has a new minute.
    environments = ceil(load.rate * delivery_ms(shape) / 1000)
    read = min(load.events, MINUTES * environments)
    dollars = read * prices.SECRET_READS / MILLION
    yield CostLine("secrets", f"{read:,.0f} reads a month", dollars)


def _line(name: str, billed: float, unit: str, price: float, load: Load) -> CostLine:
    """Returns a line of so many units of each event; `price` is of a million."""
    text = f"{figure(billed, 4)} {unit}{'' if billed == 1 else 's'} an event"
    return CostLine(name, text, billed * load.events * price / MILLION)


def _compute(name: str, invocations: float, ms: float, memory: int, load: Load) -> CostLine:
    gb_seconds = ms / 1000 * memory / GIB
    each = prices.LAMBDA_REQUESTS / MILLION + gb_seconds * prices.LAMBDA_GB_SECOND
    text = f"{figure(invocations, 4)} x {figure(ms, 4)} ms of {memory:,} MB an event"
    return CostLine(f"Lambda {name}", text, invocations * each * load.events)


def _writes(load: Load) -> int:
    effect = units.RUN_WITH_EFFECT.writes - units.RUN.writes
    run = units.RUN.writes + units.RUN.index_writes + load.effects * effect
    return (
        units.event_writes(load.body, load.handlers) + units.NEW.index_writes + load.handlers * run
    )


def _reads(load: Load, shape: Shape) -> float:
    row = units.RUN.reads * ceil(units.row_bytes(load.body, load.handlers) / units.READ_UNIT)
    looks = units.LOOKS * (units.LOOK_AT_RUN + units.ENTRY_BYTES / units.READ_UNIT / 2)
    large = units.LARGE.reads if units.packed(load.body).blob_key else 0.0
    # One environment, which is idle longer than it caches the answer, asks for each run.
    busy = ceil(load.rate * load.handlers / load.batch * batch_ms(load, shape) / 1000)
    pauses = min(1.0, busy * load.batch / (load.rate * PAUSE_CACHE.total_seconds()))
    return large + load.handlers * (row + looks + pauses * units.PAUSE.reads)


def _storage(load: Load, shape: Shape) -> Iterator[CostLine]:
    """Yields the storage of a steady state: each row for its whole life."""
    body = units.row_bytes(load.body, load.handlers) - units.EVENT_BYTES
    event = (units.EVENT_BYTES + ROW_OVERHEAD) * (EVENT_LIFE / MONTH)
    event += body * (_kept(EVENT_LIFE, shape) / MONTH)
    run = (units.RUN_BYTES + ROW_OVERHEAD) * (RUN_LIFE / MONTH)
    effect = (units.EFFECT_BYTES + ROW_OVERHEAD) * (EFFECT_LIFE / MONTH)
    table = event + load.handlers * (run + load.effects * effect)
    entry = (units.ENTRY_BYTES + ROW_OVERHEAD) * (EVENT_LIFE / MONTH)
    stored, backed_up = (size * load.events / GB for size in (table + entry, table))
    yield CostLine("DynamoDB storage", f"{figure(stored)} GB", stored * prices.TABLE_GB_MONTH)
    recovery = backed_up * prices.RECOVERY_GB_MONTH
    yield CostLine("DynamoDB backups", f"{figure(backed_up)} GB", recovery)


def _kept(life: timedelta, shape: Shape) -> timedelta:
    """Returns how long a payload is kept, of a row or an object with this life."""
    return min(life, timedelta(seconds=shape.retention)) if shape.retention else life


def _erasure(load: Load, shape: Shape) -> Iterator[CostLine]:
    if not shape.retention or timedelta(seconds=shape.retention) >= EVENT_LIFE:
        return
    # The event's row is read once, and billed by its size before.
    written = units.event_writes(load.body, load.handlers) + units.ERASED.index_writes
    read = (
        units.ERASED.reads - 1 + ceil(units.row_bytes(load.body, load.handlers) / units.READ_UNIT)
    )
    # S3 bills a list as a put.
    each = written * prices.WRITE_UNITS + read * prices.READ_UNITS + prices.S3_PUTS
    text = f"{written} write units, {read:g} read units, 1 list an event"
    yield CostLine("erasure", text, each * load.events / MILLION)


def _large_body(load: Load, shape: Shape) -> Iterator[CostLine]:
    packed = units.packed(load.body)
    if packed.blob_key:
        each = (prices.S3_PUTS + load.handlers * prices.S3_GETS) / MILLION
        stored = len(packed.blob) * (_kept(BODY_LIFE, shape) / MONTH) / GB * prices.S3_GB_MONTH
        text = f"1 put, {load.handlers} gets, {len(packed.blob):,} bytes an event"
        yield CostLine("S3", text, load.events * (each + stored))


def _logs(load: Load, shape: Shape) -> Iterator[CostLine]:
    system = SYSTEM_LOG if shape.system_log else (0, 0)
    delivery = sum(map(_logged, (units.DELIVERY_LOG, system, (1, ACCESS_LOG))))
    run = _logged(units.RUN_LOG) + _logged(system) / load.batch
    if shape.dashboards:
        delivery += units.DELIVERY_METRICS
        run += units.RUN_METRICS
    size = delivery + load.handlers * run
    yield _log_line(size * load.events, f"{figure(size / 1000)} KB an event", shape)


def _logged(lines: tuple[int, int]) -> int:
    return lines[1] + lines[0] * LINE_OVERHEAD


def _log_line(size: float, text: str, shape: Shape) -> CostLine:
    kept = COMPRESSED * prices.LOG_GB_MONTH * timedelta(days=shape.log_days) / MONTH
    return CostLine("logs", text, size / GB * (prices.LOG_GB + kept))


def _idle(shape: Shape) -> Iterator[CostLine]:
    alarms = shape.alarm_metrics * prices.ALARM_METRIC + shape.composites * prices.COMPOSITE_ALARM
    yield CostLine("alarms", f"{shape.alarm_metrics} metrics, {shape.composites} composite", alarms)
    yield CostLine("dashboard", f"{shape.dashboards}", shape.dashboards * prices.DASHBOARD)
    yield CostLine("secrets", f"{shape.secrets}", shape.secrets * prices.SECRET)
    passes = units.METRICS_OF_PASS
    yield CostLine("metrics", f"{passes} of an idle pass", passes * prices.METRIC)
    yield from _passes(shape)
    polls = IDLE_POLLS * shape.lanes
    yield CostLine("SQS", f"{polls:,.0f} polls", polls * prices.SQS_REQUESTS / MILLION)


def _passes(shape: Shape) -> Iterator[CostLine]:
    handler, fifth = units.PASS_OF_HANDLER, units.FIFTH_PASS
    calls = len(units.PASS.calls) + shape.handlers * len(handler.calls) + len(fifth.calls) / 5
    reads = units.PASS.reads + shape.handlers * handler.reads + fifth.reads / 5
    ms = PASS_MS * ONE_CPU / shape.reconciler + CALL_MS * calls
    seconds = MINUTES * ms / 1000 * shape.reconciler / GIB
    compute = MINUTES * prices.LAMBDA_REQUESTS / MILLION + seconds * prices.LAMBDA_GB_SECOND
    text = f"{MINUTES:,} x {ms:.0f} ms of {shape.reconciler:,} MB"
    yield CostLine("Lambda reconciler", text, compute)
    used = reads * prices.READ_UNITS + units.PASS.writes * prices.WRITE_UNITS
    text = f"{figure(reads, 4)} reads, {units.PASS.writes} writes a minute"
    yield CostLine("DynamoDB", text, MINUTES * used / MILLION)
    metric = shape.lanes / 5 * prices.METRIC_READS + shape.lanes / 5 * prices.SQS_REQUESTS
    yield CostLine("queue depths", "every 5 minutes", MINUTES * metric / MILLION)
    system = SYSTEM_LOG if shape.system_log else (0, 0)
    size = MINUTES * (_logged(units.PASS_LOG) + _logged(system))
    yield _log_line(size, f"{size / GB:.2g} GB", shape)
