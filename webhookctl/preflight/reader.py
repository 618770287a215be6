"""Reads an account, and names the right that a refused call needs."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from webhook_inbox.adapters.aws.account import Clients
from webhookctl.errors import explain
from webhookctl.preflight.plan import Template

DENIED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "AuthorizationErrorException",
        "UnauthorizedOperation",
    }
)
# The prefixes of rights that differ from the service's name in botocore.
PREFIXES: Final = {"apigatewayv2": "apigateway", "service-quotas": "servicequotas"}
# Pages that a count reads at most.
PAGES: Final = 60


class Unread(Exception):
    """A fact could not be read; the text has the right that is missing, or the error's line."""


class Quota(NamedTuple):
    """A limit of the account, or the documented default where it cannot be read."""

    value: int
    documented: bool

    def __str__(self) -> str:
        return f"{self.value:,}" + (" (documented default)" if self.documented else "")


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
            raise Unread(explain(error)) from error
        except BotoCoreError as error:
            raise Unread(explain(error)) from error

    def pages(self, service: str, operation: str, token: str, **values: Any) -> Iterator[Any]:
        """Yields at most PAGES pages; `token` names the token in the request and in the answer."""
        for _ in range(PAGES):
            page = self.call(service, operation, **values)
            yield page
            if not page.get(token):
                return
            values[token] = page[token]
        raise Unread(f"{operation} has more than {PAGES} pages; look in the console")

    def quota(self, service: str, code: str, *, about: str, default: int) -> Quota:
        """Returns a quota of Service Quotas, or the documented default.

        Args:
            service: the service's code.
            code: the quota's code.
            about: a word of the quota's name; another quota is not used.
            default: the documented value.
        """
        try:
            found = self.call(
                "service-quotas", "get_service_quota", ServiceCode=service, QuotaCode=code
            )
        except Unread:
            return Quota(default, documented=True)
        quota: Mapping[str, Any] = found["Quota"]
        if about not in str(quota.get("QuotaName", "")).lower():
            return Quota(default, documented=True)
        return Quota(int(quota["Value"]), documented=False)

    def stack(self, name: str) -> Mapping[str, Any] | None:
        """Returns the description of a stack; None where there is none."""
        found = self.call(
            "cloudformation", "describe_stacks", expected=("ValidationError",), StackName=name
        )
        stacks: list[Mapping[str, Any]] = found["Stacks"] if found else []
        return stacks[0] if stacks else None

    def deployed(self, name: str) -> Template:
        """Returns the stack's resources; none where it does not exist."""
        found = self.call(
            "cloudformation", "get_template", expected=("ValidationError",), StackName=name
        )
        body = found["TemplateBody"] if found else {}
        return Template.of(body if isinstance(body, Mapping) else {})


def _right(service: str, error: ClientError) -> str:
    """Returns the right as IAM names it."""
    if service == "apigatewayv2":
        return "apigateway:GET"
    return f"{PREFIXES.get(service, service)}:{error.operation_name}"
