"""Translates AWS's errors to the library's: those of the SDK, and those of ingest's own clients."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, Protocol, TypeVar

from webhook_inbox.domain.errors import AccessDenied, ConditionFailed, InboxError, Unavailable

T = TypeVar("T")


class Caller(Protocol):
    """Makes an AWS call: `once`, or `TimeBudget.attempts_of`."""

    def __call__(self, service: str, operation: str, attempt: Callable[[], T]) -> T:
        """Returns the attempt's result, or raises one of the library's errors."""


class AwsError(Exception):
    """AWS answered with an error.

    Attributes:
        code: AWS's code, like "ThrottlingException".
        status: the HTTP status, 0 without an answer.
        item: the row of a failed condition in DynamoDB's notation, if any.
    """

    def __init__(self, code: str, message: str = "", *, status: int = 0, item: Any = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.status = status
        self.item = item


class Missing(InboxError):
    """The object does not exist; adapters return None."""


class MarkedForDeletion(Missing):
    """A secret is deleted, and its name is taken until the recovery window ends."""


class Exists(InboxError):
    """The name or the version of a new object is taken."""


# Codes by service; a missing table is a failure instead.
_EXPECTED: Final[Mapping[tuple[str, str], type[InboxError]]] = {
    # DescribeStacks uses this code for a stack that does not exist, and for nothing else.
    ("cloudformation", "ValidationError"): Missing,
    ("s3", "NoSuchKey"): Missing,
    # HeadObject has no body, so the status is the code.
    ("s3", "404"): Missing,
    ("secretsmanager", "ResourceNotFoundException"): Missing,
    # Calls that read or write a value use this code for nothing else.
    ("secretsmanager", "InvalidRequestException"): MarkedForDeletion,
    ("secretsmanager", "ResourceExistsException"): Exists,
}

# Codes of a call whose caller has no right to make it.
DENIED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "AuthorizationErrorException",
        "UnauthorizedOperation",
    }
)
# Credentials that were valid; ingest's clients fetch others for the next attempt.
EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException"})
# Codes of transient errors.
_PASSING: Final = EXPIRED | {
    "KmsThrottled",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestTimeout",
    "RequestThrottled",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TransactionInProgressException",
}


def once(service: str, operation: str, attempt: Callable[[], T]) -> T:
    """Makes the call once; the SDK may retry by its configuration."""
    try:
        return attempt()
    except Exception as error:
        if not isinstance(error, AwsError | OSError) and not _of_sdk("is_error", error):
            raise
        raise translated(service, operation, error) from error


def translated(service: str, operation: str, error: Exception) -> InboxError:
    """Returns the library's error for one of a client's.

    Any unexpected error is `Unavailable`, access denied included, so that nothing is acknowledged
    that was not stored. The text names AWS's code.
    """
    answer = _answer(error)
    if answer is None:
        return Unavailable(service, operation, type(error).__name__)
    if answer.code == "ConditionalCheckFailedException":
        # The row is in DynamoDB's notation; the table decodes it.
        return ConditionFailed(answer.item)
    expected = _EXPECTED.get((service, answer.code))
    if expected is not None:
        return expected(f"{service} {operation}: {answer.code}")
    kind = AccessDenied if answer.code in DENIED else Unavailable
    return kind(service, operation, str(answer)[:300])


def may_pass(error: BaseException | None) -> bool:
    """Returns whether an immediate retry may succeed."""
    answer = _answer(error)
    if answer is not None:
        return answer.code in _PASSING or answer.status >= 500
    return isinstance(error, OSError) or bool(_of_sdk("is_of_line", error))


def _answer(error: BaseException | None) -> AwsError | None:
    """Returns AWS's answer; None if there was none."""
    answer = error if isinstance(error, AwsError) else _of_sdk("answer_of", error)
    return answer if isinstance(answer, AwsError) else None


def _of_sdk(question: str, error: BaseException | None) -> Any:
    """Asks `sdk_errors` about an error, unless the SDK, and so none of its errors, is loaded."""
    if "botocore" not in sys.modules:
        return None
    return getattr(import_module("webhook_inbox.adapters.aws.sdk_errors"), question)(error)
