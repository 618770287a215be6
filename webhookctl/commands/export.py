"""`inbox export`: writes a stored event as a test, as a curl command, or as one JSON object."""

import json
from pathlib import Path
from typing import Annotated

import typer

from webhook_inbox.client.event_state import EventState
from webhook_inbox.client.exporting import ExportedEvent
from webhook_inbox.domain.model import StoredEvent
from webhook_inbox.domain.printable import counted
from webhookctl.display.copies import PERSONAL, Form, local_url, test_of, unsigned
from webhookctl.display.event import export_object
from webhookctl.display.generated_curl import curl
from webhookctl.display.generated_test import GeneratedTest
from webhookctl.display.times import moment
from webhookctl.errors import CommandError
from webhookctl.invocation import (
    Handler,
    Invocation,
    ShowPersonal,
    Since,
    Source,
    Until,
    takes_options,
)


@takes_options
def export(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    event_id: Annotated[
        str | None,
        typer.Argument(metavar="[EVENT_ID]", help="The event's id at the provider; or use --to."),
    ] = None,
    form: Annotated[
        Form, typer.Option("--as", help="A test, a curl command, or one JSON object.")
    ] = Form.TEST,
    source: Source = None,
    handler: Handler = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where curl posts; by default the inbox on this machine."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this new file.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Write all events of --since to a directory or s3://BUCKET/PREFIX.",
        ),
    ] = None,
    since: Since = None,
    until: Until = None,
    show_personal: ShowPersonal = False,
) -> None:
    """Write an event as a test that fails as its handler did, as a curl command, or as JSON.

    The test needs the project's functions/. No form contains a signature or secret.

    With --to, write all events of whole hours as compressed JSON lines, a file per hour. Files that
    are there are skipped, so the same command continues an interrupted export.
    """
    if to is not None:
        if event_id is not None or since is None or handler or url or output:
            raise typer.BadParameter("--to goes with --since, --until and --source only")
        _export_hours(call, to, since, until, source, show_personal=show_personal)
        return
    if event_id is None or since is not None or until is not None:
        raise typer.BadParameter("give one EVENT_ID, or --to with --since")
    if handler is not None and form is not Form.TEST:
        raise typer.BadParameter(f"--handler chooses what a test reproduces, not --as {form}")
    if url is not None and form is not Form.CURL:
        raise typer.BadParameter(f"--url is where curl posts, and not of --as {form}")
    _export_event(call, event_id, form, source, handler, url, output, show_personal=show_personal)


def _export_hours(
    call: Invocation,
    to: str,
    since: str,
    until: str | None,
    source: str | None,
    *,
    show_personal: bool,
) -> None:
    now = call.clock.now()
    export = call.client.events.export_hours(
        to,
        since=moment(since, now),
        until=moment(until, now) if until else None,
        source=source,
        personal_to=call.personal_reader(show=show_personal),
        form=lambda event: json.dumps(export_object(event), ensure_ascii=False),
    )
    for written in export:
        number = written.events
        events = "is there already" if number is None else counted(number, "event")
        call.output.result(written, f"{written.file}: {events}")
    hours = counted(len(export.hours), "whole hour")
    call.output.note(f"Wrote {counted(export.counts['events'], 'event')} of {hours}.")


def _export_event(
    call: Invocation,
    event_id: str,
    form: Form,
    source: str | None,
    handler: str | None,
    url: str | None,
    output: Path | None,
    *,
    show_personal: bool,
) -> None:
    if form is Form.TEST:
        _require_python(output)
    reader = call.personal_reader(show=show_personal)
    state = call.client.events.export(event_id, source=source, personal_to=reader)
    if form is Form.TEST:
        _export_test(call, state, handler, output)
        return
    if form is Form.CURL:
        _export_curl(call, state.event, url or local_url(call.target, state.event.source), output)
    else:
        _export_json(call, state, output)
    call.output.note(f"{PERSONAL} it.")


def _require_python(output: Path | None) -> None:
    if output is not None and output.suffix != ".py":
        raise typer.BadParameter(
            f"--output {output} is no Python file: give it as in test_event.py"
        )


def _export_test(
    call: Invocation, state: EventState, handler: str | None, output: Path | None
) -> None:
    test = test_of(state, handler, output)
    if output is not None:
        files = {output: test.text.encode()}
        _write(files if test.body_file is None else {**files, test.body_file: test.body})
    _report(call, state.event, test, output)


def _export_curl(call: Invocation, event: StoredEvent, url: str, output: Path | None) -> None:
    command = curl(event, url)
    if output is not None:
        _write({output: f"#!/bin/sh\n{command}\n".encode()})
    if call.as_json:
        about = {"source": event.source, "event_id": event.event_id, "url": url}
        call.output.json({**about, **({"file": str(output)} if output else {"command": command})})
    else:
        call.output.lines(f"{output}: a curl command" if output else command)
    call.output.note(unsigned(event))


def _export_json(call: Invocation, state: EventState, output: Path | None) -> None:
    data = export_object(ExportedEvent(state))
    if output is None:
        call.output.json(data)
        return
    _write({output: f"{json.dumps(data, indent=2)}\n".encode()})
    if call.as_json:
        event = state.event
        about = {"source": event.source, "event_id": event.event_id}
        call.output.json({**about, "file": str(output)})
    else:
        call.output.line(f"{output}: the event as JSON")


def _write(files: dict[Path, bytes]) -> None:
    for file in files:
        if file.exists():
            raise CommandError(f"{file} exists: choose another --output, or remove it")
    for file, content in files.items():
        file.write_bytes(content)


def _report(call: Invocation, event: StoredEvent, test: GeneratedTest, output: Path | None) -> None:
    if call.as_json:
        files = [str(file) for file in (output, test.body_file) if file is not None]
        about = {"source": event.source, "event_id": event.event_id}
        about |= {} if output else {"test": test.text}
        call.output.json({**about, "handlers": list(test.handlers), "files": files})
    elif output is None:
        call.output.lines(test.text.rstrip("\n"))
    else:
        call.output.line(f"{output}: {counted(len(test.handlers), 'test')}")
        if test.body_file is not None:
            call.output.line(f"{test.body_file}: the body, {len(test.body):,} bytes")
    call.output.note(f"{PERSONAL} the test.")
