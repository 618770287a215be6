"""Calls that read an account, and name the right that a refused call needs."""

from collections.abc import Iterator
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from webhook_inbox.adapters.aws.account import Clients
from webhook_inbox.adapters.aws.errors import DENIED
from webhook_inbox.adapters.aws.remedies import one_line, remedy
from webhook_inbox.domain.errors import InboxError

# The prefixes of rights that differ from the service's name in botocore.
PREFIXES: Final = {"apigatewayv2": "apigateway", "service-quotas": "servicequotas"}
# Pages that a count reads at most.
PAGES: Final = 60


class Unread(InboxError):
    """A fact could not be read; the text has the right that is missing, or the error's line."""


class Reader:
    """Calls that read an account; each raises Unread where it is refused or fails.

    An error whose code is in `expected` is returned as None, for a thing that does not exist.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def call(
        self, service: str, operation: str, *, expected: tuple[str, ...] = (), **values: Any
    ) -> Any:
        """Returns the answer; None for an expected error."""
        try:
            return getattr(self._clients(service), operation)(**values)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in expected:
                return None
            if code in DENIED:
                raise Unread(f"request the right {_right(service, error)}") from error
            raise Unread(f"{one_line(str(error))}: {remedy(error)}") from error
        except BotoCoreError as error:
            raise Unread(f"{one_line(str(error))}: {remedy(error)}") from error

    def pages(self, service: str, operation: str, token: str, **values: Any) -> Iterator[Any]:
        """Yields at most PAGES pages; `token` names the token in the request and in the answer."""
        for _ in range(PAGES):
            page = self.call(service, operation, **values)
            yield page
            if not page.get(token):
                return
            values[token] = page[token]
        raise Unread(f"{operation} has more than {PAGES} pages; look in the console")


def _right(service: str, error: ClientError) -> str:
    """Returns the right as IAM names it."""
    if service == "apigatewayv2":
        return "apigateway:GET"
    return f"{PREFIXES.get(service, service)}:{error.operation_name}"
