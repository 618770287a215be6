"""Errors of commands, and their one-line explanations."""

from typing import Any, Final

from botocore import exceptions as boto
from botocore.exceptions import BotoCoreError, ClientError
from typer.exceptions import TyperException

from webhook_inbox.adapters.aws.errors import may_pass
from webhook_inbox.client.errors import EndedEarly, NotFound, Refused, WrongArgument
from webhook_inbox.domain.errors import AccessDenied, InboxError, Unavailable
from webhookctl.display.untrusted import printable


class CommandError(Exception):
    """The command cannot continue; the text is one line that names the remedy."""


FAILED: Final = 1
WRONG_USAGE: Final = 2
LOG_IN: Final = (
    "log in again (`aws login`, or `aws sso login` for a profile of IAM Identity Center), or choose"
    " another --profile"
)
# Without awscrt botocore cannot sign with the session of `aws login`.
NO_CRT: Final = (
    "run `pip install 'botocore[crt]'` in the environment of webhookctl, or `make setup` in a clone"
)

# The first match counts, so subclasses precede their bases.
_BY_CLASS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (boto.NoCredentialsError, "choose a --profile, set AWS_PROFILE, or log in"),
    (boto.PartialCredentialsError, "complete them, or choose another --profile"),
    (boto.ProfileNotFound, "choose one of `aws configure list-profiles`"),
    (boto.NoRegionError, "name one with --region or AWS_REGION"),
    (boto.MissingDependencyException, NO_CRT),
    (boto.LoginError, LOG_IN),
    (boto.SSOError, LOG_IN),
    (boto.TokenRetrievalError, LOG_IN),
    (boto.CredentialRetrievalError, LOG_IN),
    (
        boto.ConnectionError,
        "check the network and --region; with --local, that `webhookctl dev` runs",
    ),
    (boto.HTTPClientError, "check the network and try again"),
)
_BY_CODE: Final = {
    "AccessDenied": "request this permission, or choose another --profile",
    "AccessDeniedException": "request this permission, or choose another --profile",
    "AuthFailure": LOG_IN,
    "ExpiredToken": LOG_IN,
    "ExpiredTokenException": LOG_IN,
    "InvalidClientTokenId": LOG_IN,
    "InvalidSignatureException": LOG_IN,
    "ResourceNotFoundException": "the stack's resource no longer exists: deploy the stack again",
    "UnrecognizedClientException": LOG_IN,
}
INSTALL: Final = "run `pip install 'webhook-inbox[cdk,dev]'`, or `make setup` in a clone"
DEFAULT: Final = "run it again with --debug to see where"


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


def explain(error: Exception) -> str:
    """Returns the one line for an error."""
    if isinstance(error, TyperException):
        return _one_line(error.format_message())
    if isinstance(error, Unavailable):
        return f"{_one_line(str(error))}: {_remedy(error.__cause__)}"
    if isinstance(error, BotoCoreError | ClientError):
        return f"{_one_line(str(error))}: {_remedy(error)}"
    if isinstance(error, CommandError | InboxError):
        return _one_line(str(error))
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    kind = type(error).__name__
    return f"internal error, {kind}: {_one_line(str(error))}: {DEFAULT}"


def error_object(error: Exception, status: int) -> dict[str, Any]:
    """Returns an error as JSON data: its line, which ends with the fix, and the exit status."""
    return {"error": {"message": printable(explain(error)), "exit_status": status}}


def _remedy(error: BaseException | None) -> str:
    if isinstance(error, ClientError):
        code = error.response.get("Error", {}).get("Code", "")
        return _BY_CODE.get(code) or ("try again in a moment" if may_pass(error) else DEFAULT)
    return next((words for kind, words in _BY_CLASS if isinstance(error, kind)), DEFAULT)


def _one_line(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
