"""`skip`: closes a dead run and unblocks its ordering key."""

from webhookctl.display.run_changes import skip_note
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
    who = call.actor(by)
    run = call.client.runs.skip(event_id, source=source, handler=handler, reason=reason, by=who)
    call.output.result(run, f"{run.handler} of {run.event_id}: skipped")
    if run.continues and not call.as_json:
        call.output.note(skip_note(run))
