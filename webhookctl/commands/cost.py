"""`cost`: estimates a month of an inbox, line by line."""

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from webhook_inbox.domain import prices
from webhookctl.checkout import Checkout
from webhookctl.cost.estimate import (
    ACCESS_LOG,
    MILLION,
    CostLine,
    Estimate,
    Load,
    batch_ms,
    delivery_ms,
    estimate,
    figure,
)
from webhookctl.cost.shape import Shape
from webhookctl.display.table import Column, Fit
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, Stage, offline
from webhookctl.local.deployment.assembly import STACK, artifacts
from webhookctl.local.deployment.synth import run_app

_SIZE: Final = re.compile(r"([0-9]{1,9})(B|KB|MB)?", re.ASCII | re.IGNORECASE)
_SIZES: Final = {"": 1, "B": 1, "KB": 1024, "MB": 1024 * 1024}
SMALLEST: Final = 500
# Lambda's limit for an invocation's payload.
LARGEST: Final = 6 * 1024 * 1024
DAY: Final = 86_400  # seconds
# More than the providers of the world send to one account.
MOST_EVENTS: Final = 10**12
COLUMNS: Final = (
    Column("LINE", Fit.NAME),
    Column("DOLLARS"),
    Column("PER_MILLION"),
    Column("BILLED", Fit.NOTE),
)
IDLE_COLUMNS: Final = tuple(column for column in COLUMNS if column.title != "PER_MILLION")


def size_of(text: str) -> int:
    """Reads `800B`, `3KB`, `1MB` or a number of bytes; raises BadParameter for any other text."""
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _SIZES[(match[2] or "").upper()] if match else 0
    if not SMALLEST <= size <= LARGEST:
        raise typer.BadParameter(f"{text!r} is not a size from {SMALLEST}B to 6MB, such as 3KB")
    return size


@offline
def cost(
    call: Invocation,
    *,
    events: Annotated[
        int,
        typer.Option("--events-per-month", metavar="NUMBER", help="New events in a month, evenly."),
    ] = 1_000_000,
    body: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="The size of a body, such as 800B, 3KB or 1MB; 1KB is 1,024 bytes."
        ),
    ] = "3KB",
    handlers: Annotated[
        int, typer.Option(min=1, max=100, help="The handlers that run for each event.")
    ] = 1,
    effects: Annotated[int, typer.Option(min=0, max=100, help="The effects of each run.")] = 0,
    handler_ms: Annotated[
        float, typer.Option(min=0, max=55_000, help="The milliseconds that a handler waits.")
    ] = 50,
    batch: Annotated[
        int,
        typer.Option(
            min=1, max=10, help="The runs that an invocation makes, as `runs_per_invocation`."
        ),
    ] = 1,
    stage: Stage = "dev",
) -> None:
    """Estimate what a month costs in AWS, line by line; reads the project's stack if in one.

    It counts neither the free tier nor taxes, and nothing that handlers call.
    """
    if not 1 <= events <= MOST_EVENTS:
        raise typer.BadParameter(f"'{events}': --events-per-month is from 1 to {MOST_EVENTS:,}")
    load = Load(
        events=events,
        body=size_of(body),
        handlers=handlers,
        effects=effects,
        handler_ms=handler_ms,
        batch=batch,
    )
    shape, of = _shape(call, load, stage)
    found = estimate(load, shape)
    if call.as_json:
        call.output.json(_data(found, shape))
        return
    _print(call, found)
    call.output.line()
    for text in _assumptions(load, shape, of):
        call.output.text(f"- {text}", hanging="  ")


def _shape(call: Invocation, load: Load, stage: str) -> tuple[Shape, str]:
    try:
        root = Checkout.required().functions.parent
    except CommandError:
        return Shape.new(load.handlers), "a new project"
    call.output.note("Synthesizing the template.")
    with tempfile.TemporaryDirectory(prefix="webhookctl-cost-") as directory:
        run_app(root, Path(directory), {"stage": stage})
        return Shape.of(_template(Path(directory))), f"this project, stage {stage}"


def _template(directory: Path) -> Mapping[str, Any]:
    for artifact in artifacts(directory).values():
        if artifact["type"] == STACK:
            name = artifact["properties"]["templateFile"]
            template: dict[str, Any] = json.loads((directory / name).read_text())
            if template.get("Metadata"):
                return template
    raise CommandError("app.py synthesizes no inbox")


def _print(call: Invocation, found: Estimate) -> None:
    events = found.load.events
    total = CostLine("events together", f"{events:,} a month", found.of_events)
    shares = [
        [line.name, _dollars(line.dollars), _dollars(line.dollars * MILLION / events), line.billed]
        for line in (*found.events, total)
    ]
    call.output.table(COLUMNS, shares)
    call.output.line()
    total = CostLine("idle together", "a month", found.of_idle)
    idle = [[line.name, _dollars(line.dollars), line.billed] for line in (*found.idle, total)]
    call.output.table(IDLE_COLUMNS, idle)
    call.output.line()
    call.output.line(f"A month: {_dollars(found.of_events + found.of_idle)} dollars.")


def _dollars(amount: float) -> str:
    return f"{amount:,.2f}"


def _runs(load: Load) -> str:
    return "run an invocation" if load.batch == 1 else "runs at the same time in each invocation"


def _assumptions(load: Load, shape: Shape, of: str) -> list[str]:
    return [
        f"Prices: {prices.PRICES_OF} of {prices.DATE}, without the free tier; see docs/cost.md.",
        f"Stack: {of}, with {shape.ingest:,} MB for ingest and {shape.processor:,} MB for"
        " processors.",
        f"Times: {figure(delivery_ms(shape))} ms a delivery; {figure(batch_ms(load, shape))} ms an"
        f" invocation of a processor, of which its handlers wait {load.handler_ms:g} ms"
        " (--handler-ms).",
        f"Rate: {figure(load.rate)} events a second, evenly; {load.batch} {_runs(load)} (--batch).",
        "Bodies compress like a charge of Stripe. Rows are kept for 35 to 49 days"
        + (f", payloads for {shape.retention / DAY:g}." if shape.retention else "."),
        f"Logs: the functions' lines, an access log of {ACCESS_LOG} bytes, kept"
        f" {shape.log_days} days.",
        "Every delivery is genuine, new, and done at the first attempt.",
    ]


def _data(found: Estimate, shape: Shape) -> dict[str, Any]:
    def lines(group: tuple[CostLine, ...]) -> list[dict[str, Any]]:
        return [{"line": x.name, "billed": x.billed, "dollars": round(x.dollars, 6)} for x in group]

    load = found.load
    return {
        "prices": {"region": prices.REGION, "date": prices.DATE},
        "load": {name: getattr(load, name) for name in Load.__dataclass_fields__},
        "stack": {name: getattr(shape, name) for name in Shape.__dataclass_fields__},
        "events": lines(found.events),
        "idle": lines(found.idle),
        "dollars": {
            "events": round(found.of_events, 6),
            "idle": round(found.of_idle, 6),
            "per_million": round(found.per_million, 6),
        },
    }
