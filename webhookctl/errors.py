"""Errors of commands, and their one-line explanations."""

from typing import Any, Final

from typer.exceptions import TyperException

from webhook_inbox.adapters.aws.remedies import DEFAULT, explain_failure, one_line
from webhook_inbox.adapters.aws.sdk_errors import is_error
from webhook_inbox.client.errors import EndedEarly, NotFound, Refused, WrongArgument
from webhook_inbox.domain.errors import AccessDenied, Unavailable
from webhookctl.display.untrusted import printable


class CommandError(Exception):
    """The command cannot continue; the text is one line that names the remedy."""


FAILED: Final = 1
WRONG_USAGE: Final = 2
INSTALL: Final = "run `pip install 'webhook-inbox[cdk,dev]'`, or `make setup` in a clone"


# The kinds of errors, of which a subclass is one; the first match counts.
_KINDS: Final[tuple[type[Exception], ...]] = (
    WrongArgument,
    NotFound,
    Refused,
    EndedEarly,
    AccessDenied,
    Unavailable,
)


def kind_of(error: Exception) -> str:
    """Returns the name of an error's kind; "InternalError" for one that no operation names."""
    return next((kind.__name__ for kind in _KINDS if isinstance(error, kind)), "InternalError")


def exit_status(error: Exception) -> int:
    """Returns the exit status for an error."""
    return WRONG_USAGE if isinstance(error, WrongArgument) else FAILED


def is_unavailable(error: Exception) -> bool:
    """Returns whether AWS failed, or refused a call."""
    return isinstance(error, Unavailable) or is_error(error)


def explain(error: Exception) -> str:
    """Returns the one line for an error."""
    if isinstance(error, TyperException):
        return one_line(error.format_message())
    failure = explain_failure(error)
    if failure is not None:
        return failure
    if isinstance(error, CommandError):
        return one_line(str(error))
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    kind = type(error).__name__
    return f"internal error, {kind}: {one_line(str(error))}: {DEFAULT}"


def error_object(error: Exception, status: int) -> dict[str, Any]:
    """Returns an error as JSON data: its line, which ends with the fix, and the exit status."""
    return {"error": {"message": printable(explain(error)), "exit_status": status}}
