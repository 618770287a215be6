"""`tenants`: lists the paused tenants, and pauses and resumes tenants without a deployment."""

from typing import Annotated, Final

import typer

from webhook_inbox.client.tenants import TenantState
from webhook_inbox.domain.printable import counted
from webhookctl.command_tree import CommandTree
from webhookctl.display.pauses import pause_text
from webhookctl.display.table import Column, Fit
from webhookctl.invocation import By, Invocation, Why, takes_options

COLUMNS: Final = (Column("TENANT", Fit.NAME), Column("WAITING"), Column("PAUSED", Fit.NOTE))

app: Final = CommandTree(help="List, pause and resume tenants.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The tenant, as in the deliveries.")]


@app.command("list")
@takes_options
def list_tenants(call: Invocation) -> None:
    """List the paused tenants and their waiting runs.

    Reads at most 200 open runs per handler and shard of the due index. Where there are more, the
    numbers are the least.
    """
    tenants = list(call.client.tenants.list())
    if call.as_json:
        call.output.results(tenants)
    elif tenants:
        call.output.table(COLUMNS, [_row(each) for each in tenants])
    if not tenants:
        call.output.note("No tenant is paused. `inbox list --tenant NAME` lists a tenant's events.")


def _row(each: TenantState) -> tuple[object, ...]:
    least = "" if each.waiting_is_complete else "at least "
    return each.tenant, f"{least}{each.waiting}", pause_text(each)


@app.command("pause")
@takes_options
def pause_tenant(call: Invocation, *, name: Name, reason: Why, by: By = None) -> None:
    """Pause a tenant: its runs wait, and none is lost or expires because of the pause.

    Takes effect within 5 seconds; runs in progress finish, and its deliveries are still stored. A
    serial handler's run that waits blocks its ordering key.
    """
    paused = call.client.tenants.pause(name, reason=reason, by=call.actor(by))
    call.output.result(paused, f"{paused.tenant} is paused")
    again = call.program.command("tenants resume", argument=paused.tenant)
    call.output.note(f"Takes effect within 5 seconds. Resume it with `{again}`.")
    if not call.client.tenants.are_declared:
        call.output.note("No source has tenants: `tenant = { json = … }` in inbox.toml sets one.")


@app.command("resume")
@takes_options
def resume_tenant(call: Invocation, *, name: Name, reason: Why = "", by: By = None) -> None:
    """Resume a tenant: waiting runs are sent from the next minute on, 20 per second and handler."""
    resumed = call.client.tenants.resume(name, reason=reason, by=call.actor(by))
    call.output.result(resumed, f"{resumed.tenant} is resumed")
    least = "" if resumed.waiting_is_complete else "at least "
    runs = counted(resumed.waiting, "run")
    call.output.note(f"Waiting: {least}{runs}; sending starts within a minute.")
