"""Explains the errors of AWS calls in one line, which ends with what to do next."""

from typing import Final

from botocore import exceptions as boto

from webhook_inbox.adapters.aws.errors import may_pass
from webhook_inbox.adapters.aws.sdk_errors import answer_of, is_error
from webhook_inbox.domain.errors import InboxError, Unavailable

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
DEFAULT: Final = "run it again with --debug to see where"


def explain_failure(error: Exception) -> str | None:
    """Returns the line for an error of the library or of the SDK; None for any other."""
    if isinstance(error, Unavailable):
        return f"{one_line(str(error))}: {remedy(error.__cause__)}"
    if isinstance(error, InboxError):
        return one_line(str(error))
    return f"{one_line(str(error))}: {remedy(error)}" if is_error(error) else None


def remedy(error: BaseException | None) -> str:
    """Returns what to do about an error of the SDK; a general remedy for any other error."""
    answer = answer_of(error)
    if answer is not None:
        return _BY_CODE.get(answer.code) or (
            "try again in a moment" if may_pass(error) else DEFAULT
        )
    return next((words for kind, words in _BY_CLASS if isinstance(error, kind)), DEFAULT)


def one_line(text: str) -> str:
    """Returns a text without line breaks, and without a full stop at its end."""
    return " ".join(text.split()).rstrip(".")
