"""Pauses and resumes a handler or a tenant."""

from webhook_inbox.client.errors import Refused
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


def resume_subject(scope: Scope, subject: Subject, name: str, *, reason: str, by: Actor) -> bool:
    """Resumes a handler or tenant; returns False where it is not paused."""
    scope.require_write()
    request = PauseRequest(name, by, reason, scope.clock.now(), subject)
    return resume(scope.table, scope.randomness, request)
