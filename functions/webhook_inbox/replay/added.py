"""A run that a replay adds to an event which was stored without it.

The event's type gained the handler later, or the event was stored without runs. A serial handler
cannot be added: its ordering key comes from the body, when an event is stored.
"""

from webhook_inbox.domain.manifest import Manifest, matches
from webhook_inbox.domain.model import Overview, Run, Status
from webhook_inbox.ledger.schema import RUN_LIFE


def added_run(overview: Overview, handler: str | None, manifest: Manifest) -> Run | None:
    """Returns the run of a named handler that an event lacks; None if the handler cannot take it.

    The handler takes the event if it is deployed, has its source and wants its type. A held event
    gets no run: a person decides on it first.
    """
    event, spec = overview.event, manifest.handlers.get(handler or "")
    known = {*event.runs, *(run.handler for run in overview.runs)}
    if spec is None or spec.name in known or spec.serial or event.held:
        return None
    if spec.source != event.source or not matches(spec.types, event.type):
        return None
    return Run(
        source=event.source,
        event_id=event.event_id,
        handler=spec.name,
        type=event.type,
        status=Status.PENDING,
        expires_at=event.received_at + RUN_LIFE,
        added=True,
    )
