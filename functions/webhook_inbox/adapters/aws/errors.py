"""One attempt of one AWS call, and the one place where botocore's errors become ours."""

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
)
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)
from urllib3.exceptions import HTTPError

from webhook_inbox.domain.errors import ConditionFailed, InboxError, Unavailable

T = TypeVar("T")


class Caller(Protocol):
    """How an adapter makes a call: `calls.once`, or one of a `Patience`, which watches the time."""

    def __call__(self, service: str, operation: str, attempt: Callable[[], T]) -> T:
        """Returns what the attempt returns, or raises one of our errors."""


class Missing(InboxError):
    """The named thing is not there. Adapters turn it into None; the core never sees it."""


# What means "not there", by service: a table that is missing is a failure, a secret is not.
_MISSING: Final = frozenset(
    {
        ("s3", "NoSuchKey"),
        ("secretsmanager", "ResourceNotFoundException"),
        # "marked for deletion"; GetSecretValue has no other use for this code.
        ("secretsmanager", "InvalidRequestException"),
    }
)

# botocore lets errors of the layers below through while an S3 body is read.
_BELOW: Final = (HTTPError, OSError)
_LINE: Final = (HTTPClientError, BotoConnectionError, *_BELOW)

# Answers that another attempt a moment later may change.
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
    """Makes the call once, as far as we are concerned; botocore may retry by its own rules."""
    try:
        return attempt()
    except (BotoCoreError, ClientError, *_BELOW) as error:
        raise translated(service, operation, error) from error


def translated(service: str, operation: str, error: Exception) -> InboxError:
    """Returns our error for one of botocore's.

    All that is not an answer to what was asked is `Unavailable`, access denied included:
    nothing may be acknowledged that was not stored. The text names AWS's code.
    """
    if not isinstance(error, ClientError):
        return Unavailable(service, operation, type(error).__name__)
    fault = error.response.get("Error", {})
    code = str(fault.get("Code", "unknown"))
    if code == "ConditionalCheckFailedException":
        # Rows are still in DynamoDB's notation here; `dynamodb` reads them.
        return ConditionFailed(error.response.get("Item"))
    if (service, code) in _MISSING:
        return Missing(f"{service} {operation}: {code}")
    return Unavailable(service, operation, f"{code}: {fault.get('Message', '')}"[:300])


def may_pass(error: BaseException | None) -> bool:
    """Tells whether the same call may succeed a moment later."""
    if isinstance(error, ClientError):
        metadata: dict[str, Any] = error.response.get("ResponseMetadata", {})
        code = error.response.get("Error", {}).get("Code")
        return code in _PASSING or metadata.get("HTTPStatusCode", 0) >= 500
    return isinstance(error, _LINE)
