"""`handlers`: lists, pauses and resumes handlers without a deployment."""

from collections import Counter
from typing import Annotated, Any, Final

import typer

from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.ledger.pauses import RESUMPTION, Controls, Pause, Subject, controls
from webhookctl.checkout import known_manifest, require_known
from webhookctl.command_tree import CommandTree
from webhookctl.display.table import Column, Fit
from webhookctl.invocation import By, Invocation, Why, takes_options
from webhookctl.pausing import pause_object, pause_subject, pause_text, print_state, resume_subject

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
    said = controls(call.target.table)
    specs = known_manifest(call.target).handlers
    waiting = _waiting(call, said)
    rows = [
        handler_object(name, specs.get(name), said.get((Subject.HANDLER, name)), waiting[name])
        for name in dict.fromkeys((*specs, *_named(said)))
    ]
    if call.as_json:
        for row in rows:
            call.output.json(row)
        return
    if rows:
        call.output.table(COLUMNS, [_row(row) for row in rows])
    if not specs:
        call.output.note(
            "Only handlers that were ever paused: to list all, deploy again, or request the"
            " permission cloudformation:GetTemplateSummary."
        )


def _waiting(call: Invocation, said: Controls) -> Counter[str]:
    """Returns the number of runs that wait for each handler's resumption."""
    if not _named(said):
        return Counter()
    runs = call.target.ledger().due_runs()
    return Counter(run.handler for run in runs if run.waits_for == RESUMPTION)


def _named(said: Controls) -> list[str]:
    return [name for subject, name in said if subject is Subject.HANDLER]


def handler_object(
    name: str, spec: HandlerSpec | None, control: Pause | None, waiting: int
) -> dict[str, Any]:
    """Returns a handler as JSON data; unknown values are null."""
    return {
        "handler": name,
        "source": spec.source if spec else None,
        "types": list(spec.types) if spec else None,
        "lane": spec.lane if spec else None,
        "order": spec.order.kind if spec and spec.order else None,
        **pause_object(control),
        "waiting": waiting,
    }


def _row(handler: dict[str, Any]) -> tuple[object, ...]:
    named = (handler["handler"], handler["source"] or "-", ", ".join(handler["types"] or "-"))
    runs = (handler["lane"] or "-", handler["order"] or "-", handler["waiting"])
    return (*named, *runs, pause_text(handler))


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
    require_known(call.target, source=None, handler=name)
    pause_subject(call, Subject.HANDLER, name, reason, by)


@app.command("resume")
@takes_options
def resume_handler(call: Invocation, *, name: Name, reason: Why = "", by: By = None) -> None:
    """Resume a handler: waiting runs are sent from the next minute on, 20 per second.

    Runs of a serial handler keep their order and continue within 20 minutes.
    """
    resume_subject(call, Subject.HANDLER, name, reason, by)
    waiting = _waiting(call, controls(call.target.table))[name]
    print_state(call, Subject.HANDLER, name, paused=False, waiting=waiting)
    call.output.note(f"Waiting runs: {waiting}; sending starts within a minute.")
