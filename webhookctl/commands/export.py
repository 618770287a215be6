"""`inbox export`: writes a stored event as a test, as a curl command, or as one JSON object."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from webhook_inbox.client.names import require_known
from webhook_inbox.client.suggestions import quoted
from webhook_inbox.domain.model import Overview, Run, Status
from webhookctl.commands.bulk_export import INDEX_LAG, Export, export_hours, hours, place_of
from webhookctl.commands.inbox import the_one_shown
from webhookctl.display.event import body_object, event_object
from webhookctl.display.generated_curl import curl, sent_headers
from webhookctl.display.generated_test import INLINE, GeneratedTest, generate, is_inline
from webhookctl.display.output import counted
from webhookctl.display.personal import Masks, ShowPersonal
from webhookctl.display.times import moment
from webhookctl.errors import CommandError
from webhookctl.invocation import Handler, Invocation, Since, Source, Until, takes_options
from webhookctl.local.http.server import DEFAULT_PORT

FAILED = frozenset({Status.FAILED, Status.DEAD_LETTER})
PERSONAL = "The body may contain personal data: read it before you commit or share"


class Form(StrEnum):
    """The form of an exported event."""

    TEST = "test"
    CURL = "curl"
    JSON = "json"


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
    high = moment(until, now) if until else now
    wanted = hours(moment(since, now), min(high, now - INDEX_LAG))
    if not wanted:
        raise CommandError(
            "no whole hour has ended in this time: give an earlier --since, or a later --until"
        )
    require_known(call.target, source=source, handler=None)
    masks = Masks(call, show=show_personal, command="inbox export", to=to, source=source)
    export_hours(call, Export(call, place_of(call, to), masks, source), wanted)


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
    overview = the_one_shown(call, event_id, source, show=show_personal, command="inbox export")
    if form is Form.TEST:
        _export_test(call, overview, handler, output)
        return
    if form is Form.CURL:
        _export_curl(call, overview, url or _local_url(call, overview.event.source), output)
    else:
        _export_json(call, overview, output)
    call.output.note(f"{PERSONAL} it.")


def _require_python(output: Path | None) -> None:
    if output is not None and output.suffix != ".py":
        raise typer.BadParameter(
            f"--output {output} is no Python file: give it as in test_event.py"
        )


def _export_test(
    call: Invocation, overview: Overview, handler: str | None, output: Path | None
) -> None:
    test = generate(overview, _chosen(overview, handler), output)
    if output is not None:
        files = {output: test.text.encode()}
        _write(files if test.body_file is None else {**files, test.body_file: test.body})
    elif not is_inline(overview.event.body):
        raise CommandError(
            f"the body has {len(overview.event.body):,} bytes, and a test contains up to"
            f" {INLINE:,}: use --output FILE, which writes the body to a file beside the test"
        )
    _report(call, overview, test, output)


def _export_curl(call: Invocation, overview: Overview, url: str, output: Path | None) -> None:
    event = overview.event
    command = curl(event, url)
    if output is not None:
        _write({output: f"#!/bin/sh\n{command}\n".encode()})
    if call.as_json:
        about = {"source": event.source, "event_id": event.event_id, "url": url}
        call.output.json({**about, **({"file": str(output)} if output else {"command": command})})
    else:
        call.output.lines(f"{output}: a curl command" if output else command)
    named = ("--source", event.source, "--type", event.type, "--id", event.event_id)
    words = map(quoted, ("webhookctl", "--local", "send", "body", *named))
    call.output.note(
        "It has no signature, since none is stored, so an inbox rejects it. To send the event"
        " signed with the local secret, write the field `body` of --as json to the file `body`,"
        f" and run `{' '.join(words)}` in the repository."
    )


def _export_json(call: Invocation, overview: Overview, output: Path | None) -> None:
    data: dict[str, Any] = event_object(overview, now=call.clock.now(), program=call.program)
    headers = sent_headers(overview.event.headers)
    data |= {"headers": headers, **body_object(overview.event.body)}
    if output is None:
        call.output.json(data)
        return
    _write({output: f"{json.dumps(data, indent=2)}\n".encode()})
    if call.as_json:
        event = overview.event
        about = {"source": event.source, "event_id": event.event_id}
        call.output.json({**about, "file": str(output)})
    else:
        call.output.line(f"{output}: the event as JSON")


def _local_url(call: Invocation, source: str) -> str:
    if call.target.local and source in call.target.urls:
        return call.target.urls[source]
    return f"http://localhost:{DEFAULT_PORT}/webhooks/{source}"


def _chosen(overview: Overview, handler: str | None) -> list[Run]:
    """Returns the runs to reproduce: of the named handler, or those that failed."""
    runs = overview.runs
    there = ", ".join(f"{run.handler} is {run.status}" for run in runs) or "it has no run yet"
    chosen = [run for run in runs if (run.handler == handler if handler else run.status in FAILED)]
    if not chosen:
        why = f"no run of {handler}" if handler else "no run has failed"
        raise CommandError(f"{overview.event.event_id}: {why} ({there}): choose one with --handler")
    return chosen


def _write(files: dict[Path, bytes]) -> None:
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
    call.output.note(f"{PERSONAL} the test.")
