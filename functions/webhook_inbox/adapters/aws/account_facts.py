"""Reads what an account has and allows before a stack is deployed to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from webhook_inbox.adapters.aws.reader import Reader, Unread
from webhook_inbox.adapters.aws.secrets_manager import text_of

NO_STACK: Final = ("ValidationError",)
NO_QUEUE: Final = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
NO_SECRET: Final = ("ResourceNotFoundException",)


class Quota(NamedTuple):
    """A limit of the account, or the documented default where it cannot be read."""

    value: int
    documented: bool

    def __str__(self) -> str:
        return f"{self.value:,}" + (" (documented default)" if self.documented else "")


class CallerIdentity(NamedTuple):
    """The caller."""

    account: str
    arn: str


@dataclass(frozen=True, slots=True)
class LambdaLimits:
    """Lambda's limits of an account and region.

    Attributes:
        concurrency: the concurrent executions of all functions.
        unreserved: those that no function reserves.
        code: the bytes of code that can be stored.
        code_in_use: the bytes that are stored.
    """

    concurrency: int
    unreserved: int
    code: int
    code_in_use: int


class AccountFacts:
    """Reads an account; every method raises Unread where a call is refused or fails."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def caller(self) -> CallerIdentity:
        """Returns the caller as STS knows it."""
        answer = self._reader.call("sts", "get_caller_identity")
        return CallerIdentity(answer["Account"], answer["Arn"])

    def bootstrap_version(self, parameter: str) -> int | None:
        """Returns the version of the CDK's bootstrap resources; None without any."""
        found = self._reader.call(
            "ssm", "get_parameter", expected=("ParameterNotFound",), Name=parameter
        )
        return int(found["Parameter"]["Value"]) if found else None

    def stack_status(self, name: str) -> str | None:
        """Returns CloudFormation's status of a stack; None where there is none."""
        found = self._reader.call(
            "cloudformation", "describe_stacks", expected=NO_STACK, StackName=name
        )
        stacks = found["Stacks"] if found else []
        return str(stacks[0]["StackStatus"]) if stacks else None

    def template(self, name: str) -> Mapping[str, Any]:
        """Returns the template of a stack; an empty one where there is none."""
        found = self._reader.call(
            "cloudformation", "get_template", expected=NO_STACK, StackName=name
        )
        body = found["TemplateBody"] if found else {}
        return body if isinstance(body, Mapping) else {}

    def deleted_at(self, name: str) -> datetime | None:
        """Returns when a stack of this name was last deleted, among the last deletions."""
        found = self._reader.call(
            "cloudformation", "list_stacks", StackStatusFilter=["DELETE_COMPLETE"]
        )
        times = (e.get("DeletionTime") for e in found["StackSummaries"] if e["StackName"] == name)
        return max(filter(None, times), default=None)

    def owner_of(self, physical_id: str) -> str:
        """Returns the name of the stack with this resource; empty where none has it."""
        found = self._reader.call(
            "cloudformation",
            "describe_stack_resources",
            expected=NO_STACK,
            PhysicalResourceId=physical_id,
        )
        resources = found["StackResources"] if found else []
        return str(resources[0]["StackName"]) if resources else ""

    def queue_url(self, name: str) -> str:
        """Returns the URL of a queue; empty where there is none."""
        found = self._reader.call("sqs", "get_queue_url", expected=NO_QUEUE, QueueName=name)
        return str(found["QueueUrl"]) if found else ""

    def has_log_group(self, name: str) -> bool:
        """Returns whether there is a log group of this name."""
        found = self._reader.call("logs", "describe_log_groups", logGroupNamePrefix=name)
        return any(each["logGroupName"] == name for each in found["logGroups"])

    def log_policies(self) -> list[str]:
        """Returns the documents of the region's log resource policies."""
        pages = self._reader.pages("logs", "describe_resource_policies", "nextToken")
        return [each["policyDocument"] for page in pages for each in page["resourcePolicies"]]

    def count_apis(self) -> int:
        """Returns the number of HTTP and WebSocket APIs of the region."""
        pages = self._reader.pages("apigatewayv2", "get_apis", "NextToken", MaxResults="100")
        return sum(len(page["Items"]) for page in pages)

    def lambda_limits(self) -> LambdaLimits:
        """Returns Lambda's limits."""
        found = self._reader.call("lambda", "get_account_settings")
        limits = found["AccountLimit"]
        return LambdaLimits(
            concurrency=limits["ConcurrentExecutions"],
            unreserved=limits["UnreservedConcurrentExecutions"],
            code=limits["TotalCodeSize"],
            code_in_use=found["AccountUsage"]["TotalCodeSize"],
        )

    def quota(self, service: str, code: str, *, about: str, default: int) -> Quota:
        """Returns a quota of Service Quotas, or the documented default.

        Args:
            service: the service's code.
            code: the quota's code.
            about: a word of the quota's name; another quota is not used.
            default: the documented value.
        """
        try:
            found = self._reader.call(
                "service-quotas", "get_service_quota", ServiceCode=service, QuotaCode=code
            )
        except Unread:
            return Quota(default, documented=True)
        quota: Mapping[str, Any] = found["Quota"]
        if about not in str(quota.get("QuotaName", "")).lower():
            return Quota(default, documented=True)
        return Quota(int(quota["Value"]), documented=False)

    def secret_is_deleted(self, name: str) -> bool | None:
        """Returns whether a secret is scheduled for deletion; None where there is none."""
        state = self._reader.call(
            "secretsmanager", "describe_secret", expected=NO_SECRET, SecretId=name
        )
        return "DeletedDate" in state if state else None

    def secret_text(self, name: str) -> str | None:
        """Returns the value of a secret; None where there is none. A binary one is a ValueError."""
        answer = self._reader.call(
            "secretsmanager", "get_secret_value", expected=NO_SECRET, SecretId=name
        )
        return text_of(answer) if answer else None
