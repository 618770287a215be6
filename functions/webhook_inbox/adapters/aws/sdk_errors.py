"""The SDK's errors: botocore's, and those of urllib3 below it."""

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError
from urllib3.exceptions import HTTPError

from webhook_inbox.adapters.aws.errors import AwsError


def is_error(error: BaseException) -> bool:
    """Returns whether the SDK raised this error.

    Botocore does not translate those of urllib3 while an S3 body is read.
    """
    return isinstance(error, BotoCoreError | ClientError | HTTPError)


def is_of_line(error: BaseException | None) -> bool:
    """Returns whether the connection failed."""
    return isinstance(error, HTTPClientError | BotoConnectionError | HTTPError)


def answer_of(error: BaseException | None) -> AwsError | None:
    """Returns the error that AWS answered with, None if it did not answer."""
    if not isinstance(error, ClientError):
        return None
    fault = error.response.get("Error", {})
    return AwsError(
        str(fault.get("Code", "unknown")),
        str(fault.get("Message", "")),
        status=error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0),
        item=error.response.get("Item"),
    )
