"""Translates botocore's errors to the library's."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError
from urllib3.exceptions import HTTPError

from webhook_inbox.domain.errors import ConditionFailed, InboxError, Unavailable

T = TypeVar("T")


class Caller(Protocol):
    """Makes an AWS call: `once`, or `TimeBudget.attempts_of`."""

    def __call__(self, service: str, operation: str, attempt: Callable[[], T]) -> T:
        """Returns the attempt's result, or raises one of the library's errors."""


class Missing(InboxError):
    """The object does not exist; adapters return None."""


class MarkedForDeletion(Missing):
    """A secret is deleted, and its name is taken until the recovery window ends."""


class Exists(InboxError):
    """The name or the version of a new object is taken."""


# Codes by service; a missing table is a failure instead.
_EXPECTED: Final[Mapping[tuple[str, str], type[InboxError]]] = {
    ("s3", "NoSuchKey"): Missing,
    ("secretsmanager", "ResourceNotFoundException"): Missing,
    # Calls that read or write a value use this code for nothing else.
    ("secretsmanager", "InvalidRequestException"): MarkedForDeletion,
    ("secretsmanager", "ResourceExistsException"): Exists,
}

# botocore does not translate errors of lower layers while an S3 body is read.
_BELOW: Final = (HTTPError, OSError)
_LINE: Final = (HTTPClientError, BotoConnectionError, *_BELOW)

# Codes of transient errors.
_PASSING: Final = frozenset(
    {
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
)


def once(service: str, operation: str, attempt: Callable[[], T]) -> T:
    """Makes the call once; botocore may retry by its configuration."""
    try:
        return attempt()
    except (BotoCoreError, ClientError, *_BELOW) as error:
        raise translated(service, operation, error) from error


def translated(service: str, operation: str, error: Exception) -> InboxError:
    """Returns the library's error for one of botocore's.

    Any unexpected error is `Unavailable`, access denied included, so that nothing is acknowledged
    that was not stored. The text names AWS's code.
    """
    if not isinstance(error, ClientError):
        return Unavailable(service, operation, type(error).__name__)
    fault = error.response.get("Error", {})
    code = str(fault.get("Code", "unknown"))
    if code == "ConditionalCheckFailedException":
        # The row is in DynamoDB's notation; the table decodes it.
        return ConditionFailed(error.response.get("Item"))
    expected = _EXPECTED.get((service, code))
    if expected is not None:
        return expected(f"{service} {operation}: {code}")
    return Unavailable(service, operation, f"{code}: {fault.get('Message', '')}"[:300])


def may_pass(error: BaseException | None) -> bool:
    """Returns whether an immediate retry may succeed."""
    if isinstance(error, ClientError):
        metadata: dict[str, Any] = error.response.get("ResponseMetadata", {})
        code = error.response.get("Error", {}).get("Code")
        return code in _PASSING or metadata.get("HTTPStatusCode", 0) >= 500
    return isinstance(error, _LINE)
