"""Writes the figures of docs/cost.md and of README.md's lines on cost: `python -m scripts.cost`.

`tests/docs/test_cost_page.py` fails where a page differs from them.
"""

import io
import re
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

from webhook_inbox.ledger.schema import EVENT_LIFE, RUN_LIFE
from webhookctl.__main__ import main
from webhookctl.cost import units
from webhookctl.cost.estimate import CostLine, Estimate, Load, estimate, flood
from webhookctl.cost.shape import Shape
from webhookctl.cost.units import Step

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "cost.md"
README: Final = ROOT / "README.md"
STEPS: Final[Mapping[str, Step]] = {
    "new event": units.NEW,
    "new event of a guarded source, such as GitHub": units.GUARDED,
    "new event with a body of 100 KB": units.LARGE,
    "duplicate": units.DUPLICATE,
    "duplicate of an event younger than 15 minutes": units.DUPLICATE_YOUNG,
    "rejected delivery": units.REJECTED,
    "rejected delivery beyond the share of its minute": units.REJECTED_UNKEPT,
    "run without effects": units.RUN,
    "run with one effect": units.RUN_WITH_EFFECT,
    "reconciler's pass of a minute": units.PASS,
    "the same, for each handler": units.PASS_OF_HANDLER,
}
# Requests, minutes, bytes of a body.
FLOODS: Final[Mapping[str, tuple[int, int, int]]] = {
    "a million requests of 3 KB": (1_000_000, 34, 3 * 1024),
    "a day at the throttle of 500 a second, 3 KB": (500 * 86_400, 1440, 3 * 1024),
    "the same, 6 MB each": (500 * 86_400, 1440, 6 * 1024 * 1024),
}
# Events of a month at a hundred a second.
STEADY: Final = 263_000_000
# Handlers and effects of each, with the goal in dollars a million events.
GOALS: Final[Mapping[str, tuple[int, int, float]]] = {
    "one handler without effects": (1, 0, 6.0),
    "two handlers with one effect each": (2, 1, 13.0),
}
PLACES: Final = ("first", "second")
BATCHES: Final = (1, 10)
# Why each part of the first goal's estimate remains, by the estimate's lines.
REMAINING: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "writes": (
        ("DynamoDB writes",),
        "one unit each: the event and its entry in `by_received`, with which the reconciler finds"
        " it ([G1](guarantees.md)), the lease (G2) and the settlement (G3)",
    ),
    "API Gateway": (("API Gateway",), "an HTTP API has the routes and throttles of the sources"),
    "storage and backups": (
        ("DynamoDB storage", "DynamoDB backups"),
        f"an event's row is kept for {EVENT_LIFE.days} days, in which its id is a duplicate (G5),"
        f" and a run's for {RUN_LIFE.days}; point-in-time recovery is {{backups}} of it",
    ),
    "Lambda": (("Lambda ingest", "Lambda processor"), "the waits for AWS's services, and the CPU"),
    "logs": (("logs",), "one line each of the API, ingest and the processor"),
    "SQS": (("SQS",), "the message is sent alone, and received and deleted with nine others"),
    "reads": (
        ("DynamoDB reads", "secrets"),
        "the event before its run, the reconciler's two looks, pauses and secrets",
    ),
}
_SHOWN: Final = re.compile(r"```sh\n(.*?)```\n\n```text\n.*?```", re.DOTALL)


def rendered(page: str) -> str:
    """Returns the page with its tables and the output of its commands anew."""
    with tempfile.TemporaryDirectory() as outside, chdir(outside):
        page = _SHOWN.sub(lambda found: _block(found[1]), page)
    rates = (
        _rate(name, batch, steady(handlers, effects, batch))
        for name, (handlers, effects, _) in GOALS.items()
        for batch in BATCHES
    )
    page = _table(page, "| load |", rates)
    page = _between(page, "goals", _goals())
    page = _table(page, "| step |", (_step(name, step) for name, step in STEPS.items()))
    new = Shape.new(1)
    floods = {name: flood(n, minutes, new, body=b) for name, (n, minutes, b) in FLOODS.items()}
    return _table(page, "| flood |", (_flood(name, lines) for name, lines in floods.items()))


def in_readme(page: str) -> str:
    """Returns README with its lines on cost anew."""
    found = estimate(Load(events=1_000_000), Shape.new(1))
    text = (
        "`webhookctl cost` estimates a month in AWS, line by line:"
        f" {found.per_million:.2f} dollars for a million events\nof 3 KB with one handler without"
        f" effects, and {found.of_idle:.2f} dollars for an idle stack. [Cost](docs/cost.md) has the"
        "\nassumptions, and the prices of hosted receivers. No bill has confirmed it."
    )
    return _between(page, "cost", text)


def steady(handlers: int, effects: int, batch: int) -> Estimate:
    """Returns the estimate of a hundred events a second in a new project."""
    load = Load(events=STEADY, handlers=handlers, effects=effects, batch=batch)
    return estimate(load, Shape.new(handlers))


def _rate(name: str, batch: int, found: Estimate) -> str:
    month = found.of_events + found.of_idle
    return f"| {name} | {batch} | {found.per_million:,.2f} | {month:,.0f} |"


def _goals() -> str:
    goals = ", and ".join(
        f"{goal:.0f} dollars a million for {name}" for name, (*_, goal) in GOALS.items()
    )
    found = [
        _against(goal, steady(handlers, effects, BATCHES[-1]))
        for handlers, effects, goal in GOALS.values()
    ]
    met = " and ".join(f"the {place} is {how}" for place, how in zip(PLACES, found, strict=True))
    alone, together = (steady(1, 0, batch) for batch in BATCHES)
    return "\n".join(
        [
            f"The goals were {goals}.",
            f"With ten runs an invocation, {met}. These lines of the first remain:",
            "",
            "| line | dollars a million | why it remains |",
            "|---|---|---|",
            *_remaining(together),
            "",
            f"With one run an invocation, {alone.per_million - together.per_million:.2f} dollars a"
            " million are added: each message is received,\ndeleted and invoked alone, and each"
            " handler waits alone.",
        ]
    )


def _against(goal: float, found: Estimate) -> str:
    over = found.per_million - goal
    return f"missed by {over:.2f}" if over > 0 else "reached"


def _remaining(found: Estimate) -> Iterator[str]:
    dollars = {line.name: line.dollars * 1_000_000 / STEADY for line in found.events}
    for name, (lines, why) in REMAINING.items():
        reason = why.format(backups=f"{dollars['DynamoDB backups']:.2f}")
        yield f"| {name} | {sum(dollars[line] for line in lines):.2f} | {reason} |"


def _between(page: str, name: str, text: str) -> str:
    begin, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end.lstrip())
    if not (found and ended):
        raise RuntimeError(f"no block {name}")
    return before + begin + text + end + after


def _block(commands: str) -> str:
    output = "\n".join(map(_printed, commands.splitlines()))
    return f"```sh\n{commands}```\n\n```text\n{output}```"


def _printed(command: str) -> str:
    text, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(text), redirect_stderr(errors):
        try:
            main(shlex.split(command)[1:])
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(f"{command}: {errors.getvalue()}") from ended
    return text.getvalue()


def _table(page: str, head: str, rows: Iterable[str]) -> str:
    before, _, rest = page.partition(f"\n{head}")
    table, _, after = rest.partition("\n\n")
    first, line, *_ = table.splitlines()
    return "\n".join([before, head + first, line, *rows, "", after])


def _step(name: str, step: Step) -> str:
    calls = Counter(call.partition(":")[2] for call in step.calls)
    named = ", ".join(f"{count} {call}" for call, count in calls.items()) or "none"
    return f"| {name} | {named} | {step.writes} | {step.index_writes} | {step.reads:g} |"


def _flood(name: str, lines: list[CostLine]) -> str:
    amounts = [*(line.dollars for line in lines), sum(line.dollars for line in lines)]
    return f"| {name} | " + " | ".join(f"{amount:,.2f}" for amount in amounts) + " |"


if __name__ == "__main__":
    for path, render in ((PAGE, rendered), (README, in_readme)):
        path.write_text(render(path.read_text(encoding="utf-8")), encoding="utf-8")
