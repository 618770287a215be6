"""The reason why a run is in its status, and the line of the handler that caused it."""

from typing import Final

from webhook_inbox.client.holds import HeldRun
from webhook_inbox.domain.model import Run, Status

# Paths in the ledger are relative to the bundle, which is this folder.
FUNCTIONS: Final = "functions"


def line_of(run: Run) -> str:
    """Returns `functions/handlers/orders.py:12`, the line that raised a run's error; "" if none."""
    return f"{FUNCTIONS}/{run.error_line}" if run.error_line else ""


def error_of(run: Run) -> str:
    """Returns a run's error; "" for a run that is done.

    Rows of earlier versions keep the error of an attempt before the success.
    """
    return "" if run.status is Status.DONE else run.last_error


def reason_of(run: Run) -> str:
    """Returns a run's error, or the reason why it waits, is held or was skipped; "" for none."""
    if run.status is Status.HELD:
        return HeldRun.of(run).reason
    if run.status is not Status.DEFERRED or not run.waits_for:
        return error_of(run)
    # The error may repeat the subject.
    error = run.last_error.removeprefix(f"{run.waits_for}: ")
    return f"{run.waits_for}: {error}" if error else run.waits_for
