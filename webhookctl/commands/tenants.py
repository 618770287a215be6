"""`tenants`: lists the paused tenants, and pauses and resumes tenants without a deployment."""

from collections import Counter
from typing import Annotated, Any, Final

import typer

from webhook_inbox.domain.model import Run
from webhook_inbox.domain.quotas import token
from webhook_inbox.ledger.pauses import TENANT_RESUMPTION, TENANTS, Pause, Subject, controls
from webhookctl.checkout import known_manifest
from webhookctl.command_tree import CommandTree
from webhookctl.display.output import counted
from webhookctl.display.table import Column, Fit
from webhookctl.errors import CommandError
from webhookctl.invocation import By, Invocation, Why, takes_options
from webhookctl.pausing import pause_object, pause_subject, pause_text, print_state, resume_subject
from webhookctl.waiting import waiting_runs

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
    paused = _paused(call)
    waiting = waiting_runs(call.target.ledger(), _waits) if paused else None
    counts = Counter(run.tenant for run in waiting.runs) if waiting else Counter[str]()
    complete = waiting is None or waiting.complete
    rows = [tenant_object(each, counts[each.name], complete=complete) for each in paused]
    if call.as_json:
        for row in rows:
            call.output.json(row)
    elif rows:
        call.output.table(COLUMNS, [_row(row) for row in rows])
    if not rows:
        call.output.note("No tenant is paused. `inbox list --tenant NAME` lists a tenant's events.")


def _waits(run: Run) -> bool:
    return run.waits_for == TENANT_RESUMPTION


def _paused(call: Invocation) -> list[Pause]:
    found = controls(call.target.table).values()
    return [each for each in found if each.subject is Subject.TENANT and each.paused]


def tenant_object(control: Pause, waiting: int, *, complete: bool) -> dict[str, Any]:
    """Returns a paused tenant as JSON data."""
    return {
        "tenant": control.name,
        **pause_object(control),
        "waiting": waiting,
        "waiting_is_complete": complete,
    }


def _row(tenant: dict[str, Any]) -> tuple[object, ...]:
    least = "" if tenant["waiting_is_complete"] else "at least "
    return tenant["tenant"], f"{least}{tenant['waiting']}", pause_text(tenant)


@app.command("pause")
@takes_options
def pause_tenant(call: Invocation, *, name: Name, reason: Why, by: By = None) -> None:
    """Pause a tenant: its runs wait, and none is lost or expires because of the pause.

    Takes effect within 5 seconds; runs in progress finish, and its deliveries are still stored. A
    serial handler's run that waits blocks its ordering key.
    """
    named = token(name)
    if len(_paused(call)) >= TENANTS:
        listed = call.program.command("tenants list")
        raise CommandError(f"{TENANTS} tenants are paused; resume one of `{listed}` first")
    pause_subject(call, Subject.TENANT, named, reason, by)
    sources = known_manifest(call.target).sources.values()
    if sources and not any(source.tenant for source in sources):
        call.output.note("No source has tenants: `tenant = { json = … }` in inbox.toml sets one.")


@app.command("resume")
@takes_options
def resume_tenant(call: Invocation, *, name: Name, reason: Why = "", by: By = None) -> None:
    """Resume a tenant: waiting runs are sent from the next minute on, 20 per second and handler."""
    named = token(name)
    resume_subject(call, Subject.TENANT, named, reason, by)
    found = waiting_runs(call.target.ledger(), _waits)
    waiting = sum(run.tenant == named for run in found.runs)
    more = {"waiting": waiting, "waiting_is_complete": found.complete}
    print_state(call, Subject.TENANT, named, paused=False, **more)
    least = "" if found.complete else "at least "
    call.output.note(f"Waiting: {least}{counted(waiting, 'run')}; sending starts within a minute.")
