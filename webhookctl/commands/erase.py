"""`erase`: erases the payload of an event, or of a tenant's events, and keeps the ledger."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Annotated, Final

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.domain.quotas import token
from webhook_inbox.domain.timestamps import MILLISECOND
from webhook_inbox.ledger.audit import AuditedAction
from webhook_inbox.ledger.erasure import Erasure, ErasureRequest, erase_of_tenant
from webhook_inbox.ledger.erasure import erase as erase_payload
from webhook_inbox.ledger.schema import EVENT_LIFE
from webhookctl.commands.inbox import the_one
from webhookctl.display.output import counted
from webhookctl.display.times import iso
from webhookctl.errors import CommandError
from webhookctl.invocation import By, Invocation, Reason, Source, takes_options

WORKERS: Final = 8
HOUR: Final = timedelta(hours=1)

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
    not begun end as skipped. Backups keep the payload for up to 35 days. An erasure of a tenant
    that was interrupted continues when the command is repeated.
    """
    if (event_id is None) == (tenant is None):
        raise typer.BadParameter("use either EVENT_ID or --tenant NAME")
    if tenant is not None:
        return _erase_tenant(call, token(tenant), source, yes=yes, reason=reason, by=by)
    return _erase_event(call, event_id or "", source, yes=yes, reason=reason, by=by)


def _erase_event(
    call: Invocation, event_id: str, source: str | None, *, yes: bool, reason: str, by: str | None
) -> None:
    event = the_one(call, event_id, source, body=False).event
    named, about = (
        f"{event.event_id} of {event.source}",
        {"source": event.source, "event_id": event.event_id},
    )
    if not yes:
        if call.as_json:
            call.output.json({**about, "erased_at": None})
        else:
            runs = counted(len(event.runs), "run")
            call.output.line(f"{named}: would erase body, headers, and the error texts of {runs}")
        call.output.note("Nothing was erased. Add --yes to erase them; this cannot be undone.")
        return
    who, now = call.actor(by), call.clock.now()
    request = ErasureRequest(event.source, event.event_id, who, reason, now)
    found = erase_payload(call.target.table, call.target.blobs, SystemRandomness(), request)
    if found is None:
        raise CommandError(f"{named} has expired meanwhile: nothing to erase")
    if call.as_json:
        told = {"erased_at": iso(found.erased_at), "unfinished": list(found.unfinished)}
        call.output.json({**about, **told})
        return
    call.output.line(f"{named}: erased")
    if found.unfinished:
        call.output.note(
            f"In progress or held: {', '.join(found.unfinished)}. Erase it again when they have"
            " ended, which erases their error texts as well."
        )


def _erase_tenant(
    call: Invocation, tenant: str, source: str | None, *, yes: bool, reason: str, by: str | None
) -> None:
    """Erases the payloads of a tenant's events; only counts them without `yes`."""
    found = TenantErasure(call, tenant, source, yes=yes)
    if yes:
        with call.audited(
            AuditedAction.ERASE, by, reason=reason, tenant=tenant, source=source
        ) as outcomes:
            found.read()
            outcomes.update(found.outcomes)
    else:
        found.read()
    if not found.sources:
        raise CommandError(f"no stored event has the tenant {tenant}: nothing to erase")
    found.show()


class TenantErasure:
    """Reads the events of the retention hour by hour, and erases those of a tenant."""

    def __init__(self, call: Invocation, tenant: str, source: str | None, *, yes: bool) -> None:
        self._call = call
        self._tenant = tenant
        self._source = source
        self._yes = yes
        self._now = call.clock.now()
        self.sources = Counter[str]()
        self.outcomes = Counter[str]()

    def read(self) -> None:
        """Counts or erases the events; the index may miss one of the last seconds.

        Raises:
            Unavailable: storage failed; a repeated call continues.
        """
        days = EVENT_LIFE.days + 1
        with (
            ThreadPoolExecutor(WORKERS) as pool,
            self._call.output.progress("Day", days) as advance,
        ):
            for day in range(days):
                begin = self._now - timedelta(days=days - day)
                hours = (begin + hour * HOUR for hour in range(1, 25))
                for sources, outcomes in pool.map(self._hour, hours):
                    self.sources.update(sources)
                    self.outcomes.update(outcomes)
                advance(1)

    def _hour(self, begin: datetime) -> tuple[Counter[str], Counter[str]]:
        """Returns the events of an hour by source and by outcome: erased, unfinished, unchanged."""
        target = self._call.target
        sources, outcomes = Counter[str](), Counter[str]()
        for event in target.ledger().received(begin, begin + HOUR - MILLISECOND):
            if event.tenant == self._tenant and self._source in {None, event.source}:
                sources[event.source] += 1
                if self._yes:
                    erased = erase_of_tenant(target.table, target.blobs, event, now=self._now)
                    outcomes[_outcome(erased)] += 1
        return sources, outcomes

    def show(self) -> None:
        """Shows the counts."""
        output, done, total = self._call.output, self.outcomes, self.sources.total()
        if self._call.as_json:
            found = {"tenant": self._tenant, "events": total, "by_source": dict(self.sources)}
            output.json({**found, "erased": done["erased"], "unfinished": done["unfinished"]})
        else:
            sources = ", ".join(f"{name} {count}" for name, count in sorted(self.sources.items()))
            output.line(f"{self._tenant}: {counted(total, 'event')} ({sources})")
        if not self._yes:
            output.note("Nothing was erased. Add --yes to erase them; this cannot be undone.")
        elif not self._call.as_json:
            before = f"; {done['unchanged']} before, or expired" if done["unchanged"] else ""
            output.line(f"erased: {done['erased'] + done['unfinished']}{before}")
        if done["unfinished"]:
            output.note(
                f"Events with runs in progress or held: {done['unfinished']}. Erase again when"
                " these have ended, which erases their error texts as well."
            )


def _outcome(found: Erasure | None) -> str:
    if found is None:
        return "unchanged"
    return "unfinished" if found.unfinished else "erased"
