"""`handlers`: lists, pauses and resumes handlers without a deployment."""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.ledger.pauses import (
    RESUMPTION,
    Controls,
    Pause,
    PauseRequest,
    Subject,
    controls,
    pause,
    resume,
)
from webhookctl.checkout import known_manifest, require_known
from webhookctl.command_tree import CommandTree
from webhookctl.display.table import Column, Fit
from webhookctl.display.times import iso
from webhookctl.errors import CommandError
from webhookctl.invocation import By, Invocation, takes_options

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
    paused = control if control is not None and control.paused else None
    return {
        "handler": name,
        "source": spec.source if spec else None,
        "types": list(spec.types) if spec else None,
        "lane": spec.lane if spec else None,
        "order": spec.order.kind if spec and spec.order else None,
        "paused": paused is not None,
        "paused_at": iso(paused.at) if paused else None,
        "paused_by": paused.by if paused else None,
        "reason": paused.reason if paused else None,
        "waiting": waiting,
    }


def _row(handler: Mapping[str, Any]) -> tuple[object, ...]:
    paused = ""
    if handler["paused"]:
        paused = f"since {handler['paused_at']} by {handler['paused_by']}: {handler['reason']}"
    named = (handler["handler"], handler["source"] or "-", ", ".join(handler["types"] or "-"))
    return (*named, handler["lane"] or "-", handler["order"] or "-", handler["waiting"], paused)


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

    Takes effect within 5 seconds; runs in progress finish.
    """
    require_known(call.target, source=None, handler=name)
    wish = PauseRequest(name, call.actor(by), reason, call.clock.now())
    again = call.program.command("handlers resume", argument=name)
    before = pause(call.target.table, SystemRandomness(), wish)
    if before is not None:
        raise CommandError(
            f"{name} is already paused since {iso(before.at)} by {before.by}: {before.reason};"
            f" resume it with `{again}`"
        )
    _done(call, name, paused=True)
    call.output.note(f"Takes effect within 5 seconds. Resume it with `{again}`.")


@app.command("resume")
@takes_options
def resume_handler(
    call: Invocation,
    *,
    name: Name,
    reason: Annotated[str, typer.Option(help="Recorded in the audit.")] = "",
    by: By = None,
) -> None:
    """Resume a handler: waiting runs are sent from the next minute on, 20 per second.

    Runs of a serial handler keep their order and continue within 20 minutes.
    """
    target = call.target
    wish = PauseRequest(name, call.actor(by), reason, call.clock.now())
    if not resume(target.table, SystemRandomness(), wish):
        require_known(target, source=None, handler=name)
        listed = call.program.command("handlers list")
        raise CommandError(f"{name} is not paused; see `{listed}`")
    waiting = _waiting(call, controls(target.table))[name]
    _done(call, name, paused=False, waiting=waiting)
    call.output.note(f"Waiting runs: {waiting}; sending starts within a minute.")


def _done(call: Invocation, name: str, *, paused: bool, **more: int) -> None:
    if call.as_json:
        call.output.json({"handler": name, "paused": paused, **more})
    else:
        call.output.line(f"{name} is {'paused' if paused else 'resumed'}")
