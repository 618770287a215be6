"""`inbox export`: writes a stored event as a test."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from webhook_inbox.domain.model import Overview, Run, Status
from webhookctl.commands.inbox import the_one
from webhookctl.display.generated_test import INLINE, GeneratedTest, generate, is_inline
from webhookctl.display.output import counted
from webhookctl.errors import CommandError
from webhookctl.invocation import EventId, Handler, Invocation, Source, takes_options

FAILED = frozenset({Status.FAILED, Status.DEAD_LETTER})


class Form(StrEnum):
    """The form of an exported event."""

    PYTEST = "pytest"


@takes_options
def export(
    call: Invocation,
    *,
    event_id: EventId,
    form: Annotated[  # noqa: ARG001 - the only one
        Form, typer.Option("--as", help="The form of the export.")
    ] = Form.PYTEST,
    source: Source = None,
    handler: Handler = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this new file.")
    ] = None,
) -> None:
    """Write an event as a test that fails as its handler did.

    The test needs the project's functions/. It contains the body, and no signature or secret.
    """
    if output is not None and output.suffix != ".py":
        raise typer.BadParameter(
            f"--output {output} is no Python file: give it as in test_event.py"
        )
    overview = the_one(call, event_id, source, body=True)
    test = generate(overview, _chosen(overview, handler), output)
    if output is not None:
        _write(test, output)
    elif not is_inline(overview.event.body):
        raise CommandError(
            f"the body has {len(overview.event.body):,} bytes, and a test contains up to"
            f" {INLINE:,}: use --output FILE, which writes the body to a file beside the test"
        )
    _report(call, overview, test, output)


def _chosen(overview: Overview, handler: str | None) -> list[Run]:
    """Returns the runs to reproduce: of the named handler, or those that failed."""
    runs = overview.runs
    there = ", ".join(f"{run.handler} is {run.status}" for run in runs) or "it has no run yet"
    chosen = [run for run in runs if (run.handler == handler if handler else run.status in FAILED)]
    if not chosen:
        why = f"no run of {handler}" if handler else "no run has failed"
        raise CommandError(f"{overview.event.event_id}: {why} ({there}): choose one with --handler")
    return chosen


def _write(test: GeneratedTest, output: Path) -> None:
    files = {output: test.text.encode()}
    if test.body_file is not None:
        files[test.body_file] = test.body
    for file in files:
        if file.exists():
            raise CommandError(f"{file} exists: choose another --output, or remove it")
    for file, content in files.items():
        file.write_bytes(content)


def _report(call: Invocation, overview: Overview, test: GeneratedTest, output: Path | None) -> None:
    if call.as_json:
        files = [str(file) for file in (output, test.body_file) if file is not None]
        about = {"source": overview.event.source, "event_id": overview.event.event_id}
        about |= {} if output else {"test": test.text}
        call.output.json({**about, "handlers": list(test.handlers), "files": files})
    elif output is None:
        call.output.lines(test.text.rstrip("\n"))
    else:
        call.output.line(f"{output}: {counted(len(test.handlers), 'test')}")
        if test.body_file is not None:
            call.output.line(f"{test.body_file}: the body, {len(test.body):,} bytes")
    call.output.note(
        "The body may contain personal data: read it before you commit or share the test."
    )
