"""Tells what a change of one run did."""

from typing import Any, Final

from webhook_inbox.client.runs import CompletedJob, SkippedRun
from webhook_inbox.client.suggestions import Program
from webhookctl.display.json_object import fields_object, json_object

COMPLETIONS: Final = {
    "recorded": "recorded; its run continues",
    "repeated": "already recorded; its run continues",
    "late": "recorded too late; replay the run to use it",
}


@json_object.register
def _(run: SkippedRun) -> Any:
    return {name: value for name, value in fields_object(run).items() if name != "continues"}


def skip_note(run: SkippedRun) -> str:
    """Returns which events continue, "" for none."""
    key = run.continues
    return f"Later events of {key} continue within two minutes." if key else ""


def completion_note(job: CompletedJob, program: Program) -> str:
    """Returns the command that shows the run that continues."""
    inspect = program.command("inbox inspect", "--source", job.source, argument=job.event_id)
    return f"Follow it with `{inspect}`."
