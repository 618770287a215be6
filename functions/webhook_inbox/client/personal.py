"""Masks the personal fields of bodies."""

from dataclasses import replace

from webhook_inbox.client.scope import Scope
from webhook_inbox.domain.audit import Actor, AuditedAction, EventName
from webhook_inbox.domain.model import StoredEvent
from webhook_inbox.domain.personal import masked
from webhook_inbox.ledger import audit


class Masks:
    """The masks of the deployed sources; none for an actor who sees personal fields.

    Args:
        scope: the inbox.
        show_to: who sees personal fields; an audit row is written before anything is read. None
            masks them.
        command: the operation, for the audit.
        event: the one event that is shown.
        request: what else is read, for the audit.

    Raises:
        Refused: the client only reads, and the audit cannot be written.
    """

    def __init__(
        self,
        scope: Scope,
        *,
        show_to: Actor | None,
        command: str,
        event: EventName | None = None,
        **request: str | None,
    ) -> None:
        self.show = show_to is not None
        self._sources = {} if self.show else scope.target.manifest.sources
        if show_to is not None:
            scope.require_write()
            audit.record(
                scope.table,
                scope.randomness,
                action=AuditedAction.SHOW_PERSONAL,
                by=show_to,
                reason="",
                request={"command": command, **{k: v for k, v in request.items() if v}},
                event=event,
                now=scope.clock.now(),
            ).conclude({})

    def body(self, source: str, body: bytes) -> bytes:
        """Returns a body of a source as it may be shown."""
        spec = self._sources.get(source)
        return masked(body, spec.personal) if spec else body

    def event(self, event: StoredEvent) -> StoredEvent:
        """Returns an event as it may be shown."""
        return replace(event, body=self.body(event.source, event.body))
