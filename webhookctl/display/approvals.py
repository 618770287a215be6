"""What a run is held for, and what people have approved of it, as people and programs see it."""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.approvals import ApprovalRequest
from webhookctl.display.times import iso


def hold_object(run: Run) -> dict[str, Any]:
    """Returns what a run is held for as JSON data."""
    hold = ApprovalRequest(run)
    return {
        "hold": hold.id,
        "subject": hold.subject,
        "reason": hold.reason,
        "shows": hold.shows or None,
        "fingerprint": hold.fingerprint or None,
        "held_at": iso(hold.since),
    }


def approvals(run: Run) -> dict[str, Any]:
    """Returns what people have approved, by subject."""
    return {
        subject: {
            "by": word.get("by"),
            "reason": word.get("reason"),
            "at": iso(from_ms(word["at"])) if "at" in word else None,
        }
        for subject, word in run.approvals.items()
    }


def hold_lines(run: Run) -> Iterator[str]:
    """Yields what a run is held for; nothing where it is not held."""
    if run.status is Status.HELD:
        told = hold_object(run)
        yield f"{told['hold']}  {told['subject']}  since {told['held_at']}  {told['reason']}"
        if told["shows"]:
            yield f"shows {told['shows']}"


def approval_line(approval: tuple[str, Mapping[str, Any]]) -> str:
    """Returns an approval, as `approvals` names it, as one line."""
    subject, word = approval
    return f"{word['at']}  {subject} by {word['by']}: {word['reason']}"
