"""What a run that is held asks of a person, in words."""

from collections.abc import Sequence
from shlex import quote
from typing import Final

from webhook_inbox.domain.model import Run
from webhook_inbox.handlers.approvals import ApprovalRequest
from webhookctl.explain.effects import Effect, Standing

SHORT: Final = 160


def held_words(run: Run, effects: Sequence[Effect]) -> str:
    """Returns what a held run asks for, with the commands that answer."""
    hold = ApprovalRequest(run)
    why = f": {short(hold.reason)}" if hold.reason else ""
    shows = f" It shows {short(hold.shows)}." if hold.shows else ""
    subject = next((effect for effect in effects if effect.name == hold.effect), None)
    words = f"Decide: {run.handler} waits for a person{why}.{shows}"
    approve, deny = (hold_command(hold, verb) for verb in ("approve", "deny"))
    happened = f"{approve} --happened --result JSON"
    if subject is not None and subject.unrecorded:
        return f"{words} To tell what it was: {happened} To end the run: {deny}"
    if subject is not None and subject.standing is Standing.IN_DOUBT:
        again = f"To do {subject.name} again with the same key: {approve}"
        return f"{words} {again} If it did happen: {happened} To end the run: {deny}"
    return f"{words} To let it run: {approve} To end it: {deny}"


def hold_command(hold: ApprovalRequest, verb: str) -> str:
    """Returns the command that approves or denies what a run is held for."""
    run = hold.run
    named = f"{quote(run.event_id)} --source {run.source} --handler {quote(run.handler)}"
    return f"webhookctl hold {verb} {named} --hold {hold.id} --reason WHY"


def short(text: str) -> str:
    """Returns a text as one line of bounded length; the run shows all of it."""
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"
