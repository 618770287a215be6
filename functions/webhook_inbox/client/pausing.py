"""Pauses and resumes a handler or a tenant."""

from webhook_inbox.client.errors import Refused
from webhook_inbox.client.names import require_known
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import Actor
from webhook_inbox.ledger.pauses import PauseRequest, Subject, pause, resume


def pause_subject(scope: Scope, subject: Subject, name: str, *, reason: str, by: Actor) -> None:
    """Pauses a handler or tenant; raises Refused where it is paused already."""
    scope.require_write()
    request = PauseRequest(name, by, reason, scope.clock.now(), subject)
    before = pause(scope.table, scope.randomness, request)
    if before is not None:
        again = scope.program.command(f"{subject}s resume", argument=name)
        raise Refused(
            f"{name} is already paused since {iso(before.at)} by {before.by}: {before.reason};"
            f" resume it with `{again}`"
        )


def resume_subject(scope: Scope, subject: Subject, name: str, *, reason: str, by: Actor) -> None:
    """Resumes a handler or tenant; raises Refused where it is not paused."""
    scope.require_write()
    request = PauseRequest(name, by, reason, scope.clock.now(), subject)
    if not resume(scope.table, scope.randomness, request):
        handler = name if subject is Subject.HANDLER else None
        require_known(scope.target, source=None, handler=handler)
        listed = scope.program.command(f"{subject}s list")
        raise Refused(f"{name} is not paused; see `{listed}`")
