"""Writes docs/screens.md from the output of the real commands: `python -m scripts.screens`.

The commands run over the in-memory inbox of the tests, at a fixed time, on a terminal of 80 and of
140 columns.
"""

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from aws_lambda_powertools import Logger

from processor.telemetry import observe
from tests.unit.support.holding import effect, hold
from tests.unit.support.world import ACME, GITHUB, World, handler
from tests.webhookctl.commands.stage import Lambda, MemoryTarget
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.suggestions import Program
from webhook_inbox.client.target import Target
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.manifest import DestinationSpec, Manifest
from webhook_inbox.ingest.receipt import Receipt
from webhook_inbox.queue.outcomes import RunOutcome, RunResult
from webhookctl.__main__ import main as run_command
from webhookctl.invocation import World as Outside
from webhookctl.local.banner import banner
from webhookctl.local.deployment.synth import Project
from webhookctl.local.http.gateway import as_json
from webhookctl.local.http.messages import Request
from webhookctl.local.http.server import delivery_line
from webhookctl.local.logs import rendered
from webhookctl.local.runtime import Runtime, Settings

ROOT: Final = Path(__file__).resolve().parents[1]
FILE: Final = ROOT / "docs" / "screens.md"
WIDTHS: Final = (80, 140)
ANSI: Final = re.compile(r"\x1b\[[0-9;]*m")
INTRO: Final = """\
# Screens

For reading before you install: the output of the commands on a terminal of 80 and of 140 columns.
`python -m scripts.screens` generates this page from the real commands; a test checks that it is
current and that no line is wider than its terminal.

In a pipe, ids and texts are complete, times are in ISO 8601, and every record is one line. `--json`
has every field.
"""

CONSOLE: Final = "http://127.0.0.1:40123/?token=0123456789abcdef0123456789abcdef"
NUMBERS: Final = count()
DONE: Final = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
RETRYING: Final = "evt_1NG8Du2eZvKYlo2CUI79vXWy"
DEAD: Final = "evt_1NG8Du2eZvKYlo2C9Bq4LmTz"
IN_DOUBT: Final = "evt_1NG9Xa2eZvKYlo2CtR6pWkQe"
MANIFEST: Final = Manifest(
    stage="local",
    sources={"github": GITHUB, "shop": replace(ACME, name="shop")},
    handlers={
        "github.announce": handler("github.announce", "issues*", source="github"),
        "shop.fulfil": handler("shop.fulfil", "order.paid", source="shop", max_attempts=5),
        "shop.refund": handler("shop.refund", "order.refunded", source="shop"),
    },
    destinations={"sink": DestinationSpec("sink", "sink")},
)
# The user's handlers, compiled under the path that they have in Lambda.
ORDERS: Final = """
def fulfil(event, ctx):
    order = event.json()
    ship(order)


def ship(order):
    return order["address"]


def refuse(event, ctx):
    raise Permanent("the ERP answered 422: customer c-9 does not exist")
"""


class Terminal(io.StringIO):
    """A terminal that keeps its text."""

    def isatty(self) -> bool:
        """Returns True."""
        return True


class Stage:
    """A short session: an event that is done, one that is retried, one dead, one in doubt."""

    def __init__(self) -> None:
        self.world = World(MANIFEST)
        self.log: list[str] = []
        self._user = _compiled()
        self._session()

    def _session(self) -> None:
        world = self.world
        self._deliver(DONE, source="github", type_="issues.opened")
        world.clock.advance(minutes=95)
        request = hold(world, IN_DOUBT, source="shop", type_="order.refunded", **REFUND)
        effect(world, request.run, error="ReadTimeout: no answer within 10 s", in_doubt="hold")
        world.clock.advance(minutes=48)
        world.behaviours["shop.fulfil"] = self._user["refuse"]
        self._deliver(DEAD, source="shop", type_="order.paid")
        world.clock.advance(minutes=4)
        world.behaviours["shop.fulfil"] = self._user["fulfil"]
        self._deliver(RETRYING, source="shop", type_="order.paid")
        self._say(world.deliver(RETRYING, source="shop", type_="order.paid"))
        self._say(world.deliver("evt_forged", source="shop", secret="another"))  # noqa: S106
        world.clock.advance(seconds=2)

    def _deliver(self, event_id: str, **parts: str) -> None:
        self._say(self.world.deliver(event_id, **parts))
        self.world.clock.advance(seconds=0.4)
        # The message of a dead run returns until SQS moves it to the DLQ.
        while result := self.world.work_once():
            if result.outcome is not RunOutcome.TO_DLQ:
                self._observe(result)

    def _say(self, receipt: Receipt) -> None:
        """Logs a delivery as the local API does."""
        answer = {"status": str(receipt.outcome), "event_id": receipt.event_id}
        source = receipt.source.encode()
        request = Request(b"POST", b"/webhooks/" + source, ())
        response = as_json(receipt.status, {**answer, "reason": receipt.reason})
        self._line(f"{delivery_line(request, response)} ({receipt.status}, 31 ms)")

    def _observe(self, result: RunResult) -> None:
        """Logs a run as the processor does and the session's log follower shows it."""
        stream = io.StringIO()
        # Loggers of one name share their first stream.
        logger = Logger(service=f"screens-{next(NUMBERS)}", stream=stream)
        observe(logger, result, redact=str, metrics=lambda _: {})
        entry = json.loads(stream.getvalue())
        entry["timestamp"] = self.world.now.isoformat()
        text = json.dumps(entry).replace("/var/task/", "functions/")
        self._line(rendered("processor", text))

    def _line(self, text: str) -> None:
        self.log.append(f"{self.world.now:%H:%M:%S} {text}")


REFUND: Final = {
    "subject": "effect:refund",
    "reason": "refund started and did not commit (last error: ReadTimeout: no answer within 10 s)",
    "shows": '{"charge": "ch_3NG8", "amount": 4200}',
}


def render() -> str:
    """Returns the page."""
    stage = Stage()
    screens: list[tuple[str, Callable[[int], str]]] = [
        ("`webhookctl dev`", lambda _: _dev(stage)),
        _screen(stage, "inbox", "list"),
        _screen(stage, "inbox", "inspect", DONE),
        _screen(stage, "inbox", "inspect", RETRYING),
        _screen(stage, "inbox", "inspect", DEAD),
        _screen(stage, "inbox", "inspect", IN_DOUBT),
        _screen(stage, "hold", "list"),
        _screen(stage, "replay", "--source", "shop"),
    ]
    parts = [INTRO]
    for title, show in screens:
        parts.append(f"## {title}\n")
        shown: dict[int | str, str] = {width: show(width) for width in WIDTHS}
        if len(set(shown.values())) == 1:
            shown = {"80 and 140": shown[WIDTHS[0]]}
        parts += [f"{width} columns:\n\n```text\n{text}\n```\n" for width, text in shown.items()]
    return "\n".join(parts)


def _screen(stage: Stage, *words: str) -> tuple[str, Callable[[int], str]]:
    def show(width: int) -> str:
        outside = Outside(lambda selection: _target(stage.world, selection), stage.world.clock)
        outside.program = Program(("webhookctl",))
        with _terminal(width) as terminal:
            try:
                run_command(("--local", *words), world=outside)
            except SystemExit as ended:
                if ended.code:
                    raise RuntimeError(terminal.getvalue()) from ended
        return ANSI.sub("", terminal.getvalue()).rstrip()

    return f"`webhookctl {' '.join(words)}`", show


@contextmanager
def _terminal(width: int) -> Iterator[Terminal]:
    terminal = Terminal()
    environment = {"COLUMNS": str(width), "NO_COLOR": "1", "TERM": "xterm"}
    with patch.dict(os.environ, environment), redirect_stdout(terminal), redirect_stderr(terminal):
        yield terminal


def _target(world: World, selection: Selection) -> Target:
    doubles: dict[str, Any] = {
        "lambda": Lambda(world),
        "table": world.table,
        "blobs": world.blobs,
        "queues": world.queues,
    }
    return MemoryTarget(
        name="local",
        api_url="http://127.0.0.1:8787",
        local=selection.local,
        stage="local",
        table_name="ledger",
        bucket_name="bodies",
        secret_prefix="",
        replay_function="replay-function",
        urls={name: f"http://127.0.0.1:8787/webhooks/{name}" for name in MANIFEST.sources},
        client=doubles.__getitem__,
        queue_urls=dict.fromkeys(world.queues, ""),
        read_manifest=lambda: MANIFEST,
    )


def _dev(stage: Stage) -> str:
    """Returns the banner of a session and its log, which fit into 80 columns."""
    project = Project(ROOT, ROOT / "functions", ROOT / ".local")
    runtime = Runtime(project, Settings(8787, 8788), print)
    runtime.manifest = MANIFEST
    runtime.secrets = {"github": "dev-only-github-5f0c", "acme": "dev-only-shop-91d4"}
    # The port is another one in each session.
    shown = banner(runtime, seconds=4.2, console=CONSOLE)
    head = re.sub(r"(AWS on this machine: \S+:)\d+", r"\g<1>42301", shown)
    return "\n".join([head.strip("\n"), "", *stage.log])


def _compiled() -> dict[str, Any]:
    path = "/var/task/handlers/orders.py"
    names: dict[str, Any] = {"__name__": "handlers.orders", "Permanent": Permanent}
    exec(compile(ORDERS, path, "exec"), names)  # noqa: S102 - the text above
    return names


def main() -> int:
    """Writes the page; returns the exit status."""
    FILE.write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
