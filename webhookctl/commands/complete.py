"""`complete`: records the result of a job that a run waits for."""

from typing import Annotated, Final

import typer

from webhook_inbox.client.runs import JobResult
from webhookctl.commands.secrets import read_value
from webhookctl.display.run_changes import COMPLETIONS, completion_note
from webhookctl.invocation import By, Handler, Invocation, Source, parsed, takes_options

STDIN: Final = "-"


@takes_options
def complete(  # noqa: PLR0913 - one parameter per option
    call: Invocation,
    *,
    event_id: Annotated[
        str | None, typer.Argument(metavar="EVENT_ID", help="The event whose run waits.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Or the job's completion token; `-` reads it from standard input."),
    ] = None,
    source: Source = None,
    handler: Handler = None,
    effect: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the job with this name.")
    ] = None,
    result: Annotated[str | None, typer.Option(metavar="JSON", help="The job's result.")] = None,
    error: Annotated[str | None, typer.Option(metavar="TEXT", help="The job's error.")] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Start another job; with --error.")
    ] = False,
    by: By = None,
) -> None:
    """Record the result of a job, named by the event whose run waits for it or by its token.

    The run continues with the result. With --error it fails permanently; with --retry it starts
    another job.
    """
    if (result is None) == (error is None):
        raise typer.BadParameter("give either --result or --error")
    if retry and error is None:
        raise typer.BadParameter("--retry needs --error")
    value = None if result is None else parsed(result)
    if (token is None) == (event_id is None):
        raise typer.BadParameter("give either EVENT_ID or --token")
    ending, runs = JobResult(value, error, retry), call.client.runs
    if event_id is not None:
        job = runs.complete(
            event_id, ending, source=source, handler=handler, effect=effect, by=call.actor(by)
        )
    else:
        token = read_value("Completion token: ") if token == STDIN else token or ""
        job = runs.complete_by_token(token, ending)
    call.output.result(job, f"{job.effect} of {job.handler}: {COMPLETIONS[job.outcome]}")
    if not call.as_json:
        call.output.note(completion_note(job, call.program))
