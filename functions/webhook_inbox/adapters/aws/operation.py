"""Calls of AWS services as effects: one attempt each, without botocore's retries.

After a time-out it is unknown whether the call had an effect, so the effect's journal decides
about a retry.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import cached_property
from threading import Lock
from typing import Any, Final

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    SSLError,
)
from urllib3.exceptions import HTTPError

from webhook_inbox.adapters.aws.clients import session
from webhook_inbox.domain.error_text import shorten
from webhook_inbox.domain.errors import Permanent, Transient

# Seconds.
CONNECT_TIMEOUT: Final = 2.0
READ_TIMEOUT: Final = 10.0
A_DAY: Final = 86_400
_CREATING: Final = Lock()
TEXT: Final = 300
# Codes of calls that certainly had no effect and may succeed later.
_REFUSED: Final = frozenset(
    {
        "EC2ThrottledException",
        "ExecutionLimitExceeded",
        "ExpiredToken",
        "ExpiredTokenException",
        "KmsThrottlingException",
        "RequestLimitExceeded",
        "ResourceConflictException",
        "ResourceNotReadyException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_FORBIDDEN: Final = frozenset({"AccessDenied", "AccessDeniedException", "NotAuthorized"})
_NEVER_SENT: Final = (
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    SSLError,
)
_MISTAKES: Final = (NoRegionError, ParamValidationError)


class AwsOperation:
    """One operation of an AWS service.

    Args:
        service: botocore's name of the service, like "events".
        operation: the client's method, like "put_events".
        right: the line of stacks/inbox_stack.py that allows it, for the error message.
        client: a boto3 client for another region or account; by default one is created.
        timeout: the read time-out, in seconds, of that default client.
        region: the region of that default client; by default the process's.
    """

    def __init__(
        self,
        service: str,
        operation: str,
        *,
        right: str,
        client: Any = None,
        timeout: float = READ_TIMEOUT,
        region: str = "",
    ) -> None:
        self._service = service
        self._operation = operation
        self._name = f"{service} {operation}"
        self._right = right
        self._given = client
        self._timeout = timeout
        self._region = region

    def call(self, **parameters: Any) -> Mapping[str, Any]:
        """Makes the call once and returns its response, with its payload read.

        Raises:
            Permanent: a retry will not help.
            Transient: a retry may succeed.
        """
        try:
            answer: Mapping[str, Any] = getattr(self._client, self._operation)(**parameters)
            body = answer.get("Payload")
            return answer if body is None else {**answer, "Payload": body.read()}
        except ClientError as error:
            fault = error.response.get("Error", {})
            raise self.failure(
                str(fault.get("Code", "unknown")),
                str(fault.get("Message", "")),
                answered=error.response.get("ResponseMetadata", {}),
            ) from error
        except (BotoCoreError, HTTPError, OSError) as error:
            raise self._unanswered(error) from error

    def failure(
        self, code: str, message: str, *, answered: Mapping[str, Any]
    ) -> Transient | Permanent:
        """Returns the error for a response; `answered` is botocore's ResponseMetadata."""
        text = shorten(f"{self._name}: {code}: {message}", TEXT)
        status = answered.get("HTTPStatusCode", 0)
        if code in _REFUSED or status == 429:
            asked = str(answered.get("HTTPHeaders", {}).get("retry-after", ""))
            pause = timedelta(seconds=min(int(asked), A_DAY)) if asked.isdecimal() else None
            return Transient(text, refused=True, retry_after=pause)
        if code in _FORBIDDEN or status == 403:
            remedy = f"add {self._right} to stacks/inbox_stack.py"
            return Permanent(f"{text}; {remedy}", page=True, refused=True)
        return Transient(text) if status >= 500 or not status else Permanent(text)

    def _unanswered(self, error: Exception) -> Transient | Permanent:
        text = shorten(f"{self._name}: {type(error).__name__}: {error}", TEXT)
        if isinstance(error, _MISTAKES):
            return Permanent(text, refused=True)
        return Transient(text, refused=isinstance(error, _NEVER_SENT))

    @cached_property
    def _client(self) -> Any:
        if self._given:
            return self._given
        # Created at the first call, since a handler is imported without a region. A session may
        # create one client at a time.
        with _CREATING:
            return session().create_client(
                self._service,
                region_name=self._region or None,
                config=Config(
                    connect_timeout=CONNECT_TIMEOUT,
                    read_timeout=self._timeout,
                    retries={"mode": "standard", "total_max_attempts": 1},
                    tcp_keepalive=True,
                ),
            )
