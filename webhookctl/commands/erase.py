"""`erase`: erases the payload of an event, or of a tenant's events, and keeps the ledger."""

from typing import Annotated

import typer

from webhook_inbox.client.erasing import TenantErasureCounts
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.printable import counted
from webhookctl.display.erasure import erasure_notes
from webhookctl.invocation import By, Invocation, Reason, Source, takes_options

EventId = Annotated[
    str | None, typer.Argument(metavar="EVENT_ID", help="The event's id; or use --tenant.")
]
Tenant = Annotated[
    str | None,
    typer.Option("--tenant", metavar="NAME", help="All stored events of this tenant instead."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Erase; without it, only show what.")]


@takes_options
def erase(
    call: Invocation,
    *,
    event_id: EventId = None,
    tenant: Tenant = None,
    source: Source = None,
    yes: Yes = False,
    reason: Reason,
    by: By = None,
) -> None:
    """Erase an event's body, headers and error texts for good; a dry run without --yes.

    Its identity, runs and effects stay, so a later delivery is still a duplicate. Runs that have
    not begun end as skipped. The answer says what is left, and when to repeat the command. Backups
    keep the payload for up to 35 days. An erasure of a tenant that was interrupted continues when
    the command is repeated.
    """
    if (event_id is None) == (tenant is None):
        raise typer.BadParameter("use either EVENT_ID or --tenant NAME")
    if tenant is not None:
        _erase_tenant(call, tenant, source, yes=yes, reason=reason, by=by)
    elif yes:
        _erase_event(call, event_id or "", source, reason, call.actor(by))
    else:
        _show_event(call, event_id or "", source)


def _show_event(call: Invocation, event_id: str, source: str | None) -> None:
    found = call.client.events.plan_erasure(event_id, source=source)
    if call.as_json:
        about = {"source": found.source, "event_id": found.event_id}
        call.output.json({**about, "erased_at": None})
    else:
        texts = f"the error texts of {counted(found.runs, 'run')}"
        call.output.line(
            f"{found.event_id} of {found.source}: would erase body, headers, and {texts}"
        )
    call.output.note("Nothing was erased. Add --yes to erase them; this cannot be undone.")


def _erase_event(
    call: Invocation, event_id: str, source: str | None, reason: str, by: Actor
) -> None:
    erased = call.client.events.erase(event_id, source=source, reason=reason, by=by)
    call.output.result(erased, f"{erased.event_id} of {erased.source}: erased")
    if not call.as_json:
        for note in erasure_notes(erased):
            call.output.note(note)


def _erase_tenant(
    call: Invocation, tenant: str, source: str | None, *, yes: bool, reason: str, by: str | None
) -> None:
    """Erases the payloads of a tenant's events; only counts them without `yes`."""
    events = call.client.events
    if yes:
        erasure = events.erase_tenant(tenant, source=source, reason=reason, by=call.actor(by))
    else:
        erasure = events.plan_tenant_erasure(tenant, source=source)
    with call.output.progress("Day", erasure.days) as advance:
        for _ in erasure:
            advance(1)
    _print_tenant(call, erasure.erased, yes=yes)


def _print_tenant(call: Invocation, done: TenantErasureCounts, *, yes: bool) -> None:
    output = call.output
    sources = ", ".join(f"{name} {count}" for name, count in sorted(done.by_source.items()))
    output.result(done, f"{done.tenant}: {counted(done.events, 'event')} ({sources})")
    if not yes:
        output.note("Nothing was erased. Add --yes to erase them; this cannot be undone.")
    elif not call.as_json:
        before = f"; {done.unchanged} before, or expired" if done.unchanged else ""
        output.line(f"erased: {done.erased + done.unfinished + done.arriving}{before}")
    if done.unfinished:
        output.note(
            f"Events with runs in progress or held: {done.unfinished}. Erase again when"
            " these have ended, which erases their error texts as well."
        )
    if done.arriving:
        output.note(
            f"Events with deliveries in progress: {done.arriving}. Erase again in 5 minutes."
        )
    if done.batches:
        output.note(f"Items of batches that still have their text: {len(done.batches)} batches")
        for batch in done.batches:
            output.note(f"  {batch}")
    if yes and not call.as_json:
        output.note(f"Not erased: {', '.join(done.not_erased)}.")
