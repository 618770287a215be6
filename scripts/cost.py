"""Writes the tables and the output of commands into docs/cost.md: `python -m scripts.cost`.

`tests/docs/test_cost_page.py` fails where the page differs from them.
"""

import io
import re
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

from webhookctl.__main__ import main
from webhookctl.cost import units
from webhookctl.cost.estimate import CostLine, flood
from webhookctl.cost.shape import Shape
from webhookctl.cost.units import Step

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "cost.md"
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
_SHOWN: Final = re.compile(r"```sh\n(.*?)```\n\n```text\n.*?```", re.DOTALL)


def rendered(page: str) -> str:
    """Returns the page with its tables and the output of its commands anew."""
    with tempfile.TemporaryDirectory() as outside, chdir(outside):
        page = _SHOWN.sub(lambda found: _block(found[1]), page)
    page = _table(page, "| step |", (_step(name, step) for name, step in STEPS.items()))
    new = Shape.new(1)
    floods = {name: flood(n, minutes, new, body=b) for name, (n, minutes, b) in FLOODS.items()}
    return _table(page, "| flood |", (_flood(name, lines) for name, lines in floods.items()))


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
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
