"""`skip`: closes a dead run and unblocks its ordering key."""

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.replay.skip import skip as skip_run
from webhookctl.errors import CommandError
from webhookctl.invocation import By, EventId, Handler, Invocation, Reason, Source, takes_options


@takes_options
def skip(
    call: Invocation,
    *,
    event_id: EventId,
    source: Source = None,
    handler: Handler = None,
    reason: Reason,
    by: By = None,
) -> None:
    """Close a dead run as skipped, for a run that a replay would not fix.

    Later events of its ordering key continue.
    """
    run = _the_one(call, event_id, source=source, handler=handler)
    target, now = call.target, call.clock.now()
    who = call.actor(by)
    if not skip_run(target.table, SystemRandomness(), run, by=who, reason=reason, now=now):
        raise CommandError(f"{run.handler} of {event_id} is no longer dead: it changed meanwhile")
    if call.as_json:
        about = {"source": run.source, "event_id": run.event_id, "handler": run.handler}
        call.output.json({**about, "status": str(Status.SKIPPED)})
        return
    call.output.line(f"{run.handler} of {run.event_id}: skipped")
    if run.blocking:
        call.output.note(f"Later events of {run.ordering_key} continue within two minutes.")


def _the_one(call: Invocation, event_id: str, *, source: str | None, handler: str | None) -> Run:
    """Returns the dead run; raises CommandError unless there is exactly one."""
    runs = call.runs(event_id, source, handler)
    dead = [run for run in runs if run.status is Status.DEAD_LETTER]
    if len(dead) == 1:
        return dead[0]
    there = "; ".join(f"{run.handler} of {run.source} is {run.status}" for run in runs)
    if dead:
        raise CommandError(f"{there}: choose one with --handler or --source")
    what = there or f"no run of an event {event_id}"
    held = any(run.status is Status.HELD for run in runs)
    dead_letters = call.program.command("inbox list", "--status", "dead_letter")
    listed = call.program.command("hold list") if held else dead_letters
    raise CommandError(f"{what}: nothing to skip; see `{listed}`")
