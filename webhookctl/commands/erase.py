"""`erase`: erases the payload of an event and keeps its ledger."""

from typing import Annotated

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.ledger.erasure import ErasureRequest
from webhook_inbox.ledger.erasure import erase as erase_payload
from webhookctl.commands.inbox import the_one
from webhookctl.display.output import counted
from webhookctl.display.times import iso
from webhookctl.errors import CommandError
from webhookctl.invocation import (
    By,
    EventId,
    Invocation,
    Reason,
    Source,
    takes_options,
)

Yes = Annotated[bool, typer.Option("--yes", help="Erase; without it, only show what.")]


@takes_options
def erase(
    call: Invocation,
    *,
    event_id: EventId,
    source: Source = None,
    yes: Yes = False,
    reason: Reason,
    by: By = None,
) -> None:
    """Erase an event's body, headers and error texts for good; a dry run without --yes.

    Its identity, runs and effects stay, so a later delivery is still a duplicate. Runs that have
    not begun end as skipped. Backups keep the payload for up to 35 days.
    """
    event = the_one(call, event_id, source, body=False).event
    named, about = (
        f"{event.event_id} of {event.source}",
        {
            "source": event.source,
            "event_id": event.event_id,
        },
    )
    if not yes:
        if call.as_json:
            call.output.json({**about, "erased_at": None})
        else:
            runs = counted(len(event.runs), "run")
            call.output.line(f"{named}: body, headers, and the error texts of {runs}")
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
