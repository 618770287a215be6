"""`handlers`: lists, pauses and resumes handlers without a deployment."""

from typing import Annotated, Final

import typer

from webhook_inbox.client.handlers import HandlerState
from webhookctl.command_tree import CommandTree
from webhookctl.display.pauses import pause_text
from webhookctl.display.table import Column, Fit
from webhookctl.invocation import By, Invocation, Why, takes_options

COLUMNS: Final = (
    Column("HANDLER", Fit.NAME),
    Column("SOURCE", Fit.NAME),
    Column("TYPES", Fit.NAME),
    Column("LANE", Fit.NAME),
    Column("ORDER"),
    Column("WAITING"),
    Column("PAUSED", Fit.NOTE),
)

app: Final = CommandTree(help="List, pause and resume handlers.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The handler, as listed.")]


@app.command("list")
@takes_options
def list_handlers(call: Invocation) -> None:
    """List the handlers, their pauses and their waiting runs."""
    handlers = list(call.client.handlers.list())
    if call.as_json:
        call.output.results(handlers)
        return
    if handlers:
        call.output.table(COLUMNS, [_row(each) for each in handlers])
    if all(each.source is None for each in handlers):
        call.output.note(
            "Only handlers that were ever paused: to list all, deploy again, or request the"
            " permission cloudformation:GetTemplateSummary."
        )


def _row(each: HandlerState) -> tuple[object, ...]:
    about = (each.handler, each.source or "-", ", ".join(each.types or "-"))
    runs = (each.lane or "-", each.order or "-", each.waiting)
    return (*about, *runs, pause_text(each))


@app.command("pause")
@takes_options
def pause_handler(
    call: Invocation,
    *,
    name: Name,
    reason: Annotated[str, typer.Option(help="Shown with the handler and its runs.")],
    by: By = None,
) -> None:
    """Pause a handler: its runs wait, and none is lost or expires because of the pause.

    Takes effect within 5 seconds; runs in progress finish. Other handlers continue, so that a later
    event, such as a cancellation, can take effect before a paused one. `tenants pause` pauses all
    handlers of one tenant.
    """
    paused = call.client.handlers.pause(name, reason=reason, by=call.actor(by))
    call.output.result(paused, f"{name} is paused")
    again = call.program.command("handlers resume", argument=name)
    call.output.note(f"Takes effect within 5 seconds. Resume it with `{again}`.")


@app.command("resume")
@takes_options
def resume_handler(call: Invocation, *, name: Name, reason: Why = "", by: By = None) -> None:
    """Resume a handler: waiting runs are sent from the next minute on, 20 per second.

    Runs of a serial handler keep their order and continue within 20 minutes.
    """
    resumed = call.client.handlers.resume(name, reason=reason, by=call.actor(by))
    call.output.result(resumed, f"{name} is resumed")
    call.output.note(f"Waiting runs: {resumed.waiting}; sending starts within a minute.")
