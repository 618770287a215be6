"""The forms in which an event is copied: a test, a curl command, or one JSON object."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Final

from webhook_inbox.client.event_state import EventState
from webhook_inbox.client.exporting import ExportedEvent
from webhook_inbox.client.suggestions import quoted
from webhook_inbox.client.target import Target
from webhook_inbox.domain.model import Run, Status, StoredEvent
from webhookctl.display.event import export_object
from webhookctl.display.generated_curl import curl
from webhookctl.display.generated_test import INLINE, GeneratedTest, generate, is_inline
from webhookctl.errors import CommandError
from webhookctl.local.http.server import DEFAULT_PORT

FAILED: Final = frozenset({Status.FAILED, Status.DEAD_LETTER})
PERSONAL: Final = "The body may contain personal data: read it before you commit or share"


class Form(StrEnum):
    """The form of an exported event."""

    TEST = "test"
    CURL = "curl"
    JSON = "json"


def copy_of(state: EventState, form: Form, target: Target) -> tuple[str, list[str]]:
    """Returns the text of a copy and the notes about it; raises CommandError where it has none."""
    if form is Form.CURL:
        event = state.event
        return curl(event, local_url(target, event.source)), [unsigned(event), f"{PERSONAL} it."]
    if form is Form.JSON:
        return json.dumps(export_object(ExportedEvent(state)), indent=2), [f"{PERSONAL} it."]
    # Those that failed, or else the first: a test of a run that is done is of use as well.
    failed = any(run.last_error for run in state.begun)
    handler = state.runs[0].handler if state.runs and not failed else None
    return test_of(state, handler, None).text, [f"{PERSONAL} the test."]


def test_of(state: EventState, handler: str | None, output: Path | None) -> GeneratedTest:
    """Returns the test of the named handler's run, or of those that failed.

    Raises CommandError where there is no such run, or the body is too large for one file.
    """
    test = generate(state.event, _chosen(state, handler), output)
    if output is None and not is_inline(state.event.body):
        raise CommandError(
            f"the body has {len(state.event.body):,} bytes, and a test contains up to"
            f" {INLINE:,}: use --output FILE, which writes the body to a file beside the test"
        )
    return test


def _chosen(state: EventState, handler: str | None) -> list[Run]:
    runs = state.begun
    there = ", ".join(f"{run.handler} is {run.status}" for run in runs) or "it has no run yet"
    chosen = [run for run in runs if (run.handler == handler if handler else run.status in FAILED)]
    if not chosen:
        why = f"no run of {handler}" if handler else "no run has failed"
        raise CommandError(f"{state.event.event_id}: {why} ({there}): choose one with --handler")
    return chosen


def unsigned(event: StoredEvent) -> str:
    """Returns why an inbox rejects the curl command, and how to send the event signed."""
    named = ("--source", event.source, "--type", event.type, "--id", event.event_id)
    words = map(quoted, ("webhookctl", "--local", "send", "body", *named))
    return (
        "It has no signature, since none is stored, so an inbox rejects it. To send the event"
        " signed with the local secret, write the field `body` of --as json to the file `body`,"
        f" and run `{' '.join(words)}` in the repository."
    )


def local_url(target: Target, source: str) -> str:
    """Returns the URL of a source of the inbox on this machine."""
    if target.local and source in target.urls:
        return target.urls[source]
    return f"http://localhost:{DEFAULT_PORT}/webhooks/{source}"
