"""Pauses and resumes a handler or a tenant by a command."""

from typing import Any

from webhook_inbox.adapters.system import SystemRandomness
from webhook_inbox.ledger.pauses import Pause, PauseRequest, Subject, pause, resume
from webhookctl.checkout import require_known
from webhookctl.display.times import iso
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation


def pause_subject(
    call: Invocation, subject: Subject, name: str, reason: str, by: str | None
) -> None:
    """Pauses a handler or tenant; raises CommandError where it is paused already."""
    wish = PauseRequest(name, call.actor(by), reason, call.clock.now(), subject)
    before = pause(call.target.table, SystemRandomness(), wish)
    again = call.program.command(f"{subject}s resume", argument=name)
    if before is not None:
        raise CommandError(
            f"{name} is already paused since {iso(before.at)} by {before.by}: {before.reason};"
            f" resume it with `{again}`"
        )
    print_state(call, subject, name, paused=True)
    call.output.note(f"Takes effect within 5 seconds. Resume it with `{again}`.")


def resume_subject(
    call: Invocation, subject: Subject, name: str, reason: str, by: str | None
) -> None:
    """Resumes a handler or tenant; raises CommandError where it is not paused."""
    wish = PauseRequest(name, call.actor(by), reason, call.clock.now(), subject)
    if not resume(call.target.table, SystemRandomness(), wish):
        if subject is Subject.HANDLER:
            require_known(call.target, source=None, handler=name)
        listed = call.program.command(f"{subject}s list")
        raise CommandError(f"{name} is not paused; see `{listed}`")


def print_state(
    call: Invocation, subject: Subject, name: str, *, paused: bool, **more: int
) -> None:
    """Prints that a handler or tenant is paused or resumed; `more` is for JSON."""
    if call.as_json:
        call.output.json({str(subject): name, "paused": paused, **more})
    else:
        call.output.line(f"{name} is {'paused' if paused else 'resumed'}")


def pause_object(control: Pause | None) -> dict[str, Any]:
    """Returns the state of a handler or tenant as JSON data; unknown values are null."""
    paused = control if control is not None and control.paused else None
    return {
        "paused": paused is not None,
        "paused_at": iso(paused.at) if paused else None,
        "paused_by": paused.by if paused else None,
        "reason": paused.reason if paused else None,
    }


def pause_text(told: dict[str, Any]) -> str:
    """Returns the cell of a table for `pause_object`, "" where it is not paused."""
    if not told["paused"]:
        return ""
    return f"since {told['paused_at']} by {told['paused_by']}: {told['reason']}"
