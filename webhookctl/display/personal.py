"""Masks the personal fields of bodies in the output of commands."""

from dataclasses import replace
from typing import Annotated

import typer

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.domain.audit import AuditedAction, EventName
from webhook_inbox.domain.model import StoredEvent
from webhook_inbox.domain.personal import masked
from webhook_inbox.ledger import audit
from webhookctl.invocation import Invocation

ShowPersonal = Annotated[
    bool,
    typer.Option(
        "--show-personal", help="Do not mask personal fields; recorded in the audit first."
    ),
]


class Masks:
    """The masks of the deployed sources; with `show`, none.

    Args:
        call: the invocation, whose caller the audit names.
        show: whether to show personal fields, which writes an audit row before anything is read.
        command: the command, for the audit.
        event: the one event that is shown.
    """

    def __init__(
        self,
        call: Invocation,
        *,
        show: bool,
        command: str,
        event: EventName | None = None,
        **request: str | None,
    ) -> None:
        self.show = show
        self._sources = {} if show else call.target.manifest.sources
        if show:
            audit.record(
                call.target.table,
                SystemRandomness(),
                action=AuditedAction.SHOW_PERSONAL,
                by=call.actor(None),
                reason="",
                request={"command": command, **{k: v for k, v in request.items() if v}},
                event=event,
                now=call.clock.now(),
            ).conclude({})

    def body(self, source: str, body: bytes) -> bytes:
        """Returns a body of a source as it may be shown."""
        spec = self._sources.get(source)
        return masked(body, spec.personal) if spec else body

    def event(self, event: StoredEvent) -> StoredEvent:
        """Returns an event as it may be shown."""
        return replace(event, body=self.body(event.source, event.body))
