"""`skip`: ends a dead run that nobody is going to repeat."""

from typing import Annotated

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.ledger.schema import dedupe_key
from webhook_inbox.replay.skip import skip as skip_run
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, caller, takes_options
from webhookctl.naming import require_known


@takes_options
def skip(
    call: Invocation,
    *,
    event_id: Annotated[str, typer.Argument(metavar="EVENT_ID", help="The provider's id.")],
    source: Annotated[str | None, typer.Option(help="Of this source only.")] = None,
    handler: Annotated[str | None, typer.Option(help="Of this handler only.")] = None,
    reason: Annotated[str, typer.Option("--reason", help="Kept with the run and in the audit.")],
    by: Annotated[str | None, typer.Option("--by", help="Who decides; you by default.")] = None,
) -> None:
    """End a dead run as skipped, where a replay would not help.

    What of its ordering key waits for it goes on.
    """
    run = _the_one(call, event_id, source=source, handler=handler)
    target, now = call.target, call.clock.now()
    who = by or caller(target)
    if not skip_run(target.table, SystemRandomness(), run, by=who, reason=reason, now=now):
        raise CommandError(f"somebody was faster: {run.handler} of {event_id} is not dead any more")
    if call.as_json:
        about = {"source": run.source, "event_id": run.event_id, "handler": run.handler}
        call.output.json({**about, "status": str(Status.SKIPPED)})
        return
    call.output.line(f"{run.handler} of {run.event_id}: finished as skipped")
    if run.blocking:
        call.output.note(f"The later events of {run.ordering_key} go on within 20 minutes.")


def _the_one(call: Invocation, event_id: str, *, source: str | None, handler: str | None) -> Run:
    """Returns the dead run that is meant; raises CommandError where that is none, or not clear."""
    now, key, ledger = call.clock.now(), dedupe_key(event_id), call.target.ledger()
    names = [source] if source else list(call.target.urls)
    overviews = (ledger.overview(name, key, now=now) for name in names)
    runs = [run for overview in overviews if overview for run in overview.runs]
    runs = [run for run in runs if handler in {None, run.handler}]
    dead = [run for run in runs if run.status is Status.DEAD_LETTER]
    if len(dead) == 1:
        return dead[0]
    if not runs:
        require_known(call.target, source=source, handler=handler)
    there = "; ".join(f"{run.handler} of {run.source} is {run.status}" for run in runs)
    if dead:
        raise CommandError(f"{there}: choose one with --handler or --source")
    what = there or f"no run of an event {event_id}"
    raise CommandError(
        call.pasteable(f"{what}: nothing to skip; see `webhookctl inbox list --status dead_letter`")
    )
