"""The tree of commands."""

from importlib.metadata import version
from typing import Annotated, Final

import typer

from webhookctl.command_tree import CommandTree
from webhookctl.commands import (
    alarms,
    audit,
    check,
    complete,
    completion,
    conformance,
    console,
    cost,
    destinations,
    dev,
    dlq,
    doctor,
    erase,
    export,
    failures,
    handlers,
    hold,
    inbox,
    init,
    listen,
    mcp,
    payload_search,
    preflight,
    rejected,
    replay,
    rotation,
    runbook,
    secrets,
    send,
    skip,
    smoke,
    sources,
    tail,
    tenants,
    verify,
)
from webhookctl.display.output import Output
from webhookctl.invocation import Invocation, takes_options

app: Final = CommandTree(
    name="webhookctl",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it
    if wanted:
        Output(as_json=False).line(f"webhookctl {version('webhook-inbox')}")
        raise typer.Exit


@app.callback()
@takes_options
def webhookctl(
    call: Invocation,
    show_version: Annotated[  # noqa: FBT002 - its callback does it
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Operate a webhook inbox: one on this machine (--local) or in AWS (--stack NAME)."""


app.command("init")(init.init)
app.command("dev")(dev.dev)
app.command("smoke")(smoke.smoke)
secrets.app.command("rotate")(rotation.rotate)
secrets.app.command("revoke")(rotation.revoke)
secrets.app.command("status")(rotation.status)
app.add_typer(secrets.app, name="secrets")
app.command("send")(send.send)
inbox.app.command("tail")(tail.tail)
inbox.app.command("errors")(failures.errors)
inbox.app.command("search")(payload_search.search)
inbox.app.command("export")(export.export)
app.add_typer(inbox.app, name="inbox")
app.command("listen")(listen.listen)
app.add_typer(rejected.app, name="rejected")
app.command("replay")(replay.replay)
app.command("skip")(skip.skip)
app.command("erase")(erase.erase)
app.add_typer(hold.app, name="hold")
app.command("complete")(complete.complete)
app.command("audit")(audit.audit)
app.add_typer(handlers.app, name="handlers")
app.add_typer(tenants.app, name="tenants")
app.add_typer(destinations.app, name="destinations")
app.command("mcp")(mcp.mcp)
app.command("console")(console.console)
app.add_typer(alarms.app, name="alarms")
app.command("check")(check.check)
app.add_typer(dlq.app, name="dlq")
app.command("doctor")(doctor.doctor)
app.command("runbook")(runbook.runbook)
app.command("preflight")(preflight.preflight)
app.command("cost")(cost.cost)
app.command("verify")(verify.verify)
app.command("conformance")(conformance.conformance)
app.add_typer(sources.app, name="sources")
app.command("completion")(completion.completion_of(app))
