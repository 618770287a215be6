"""Reads the stack of an inbox."""

from collections.abc import Mapping
from typing import Any

from webhook_inbox.adapters.aws.account import Clients
from webhook_inbox.adapters.aws.errors import Missing, once


def describe_stack(clients: Clients, name: str) -> Mapping[str, Any] | None:
    """Returns CloudFormation's description of a stack; None if it does not exist.

    Raises:
        Unavailable: CloudFormation failed; AccessDenied: it refused the call.
    """
    client = clients("cloudformation")
    try:
        answer = once(
            "cloudformation", "DescribeStacks", lambda: client.describe_stacks(StackName=name)
        )
    except Missing:
        return None
    [stack] = answer["Stacks"]
    return dict(stack)


def template_metadata(clients: Clients, name: str) -> str:
    """Returns the metadata of a stack's template as JSON text, "" without any.

    Raises:
        Unavailable: CloudFormation failed; AccessDenied: it refused the call.
    """
    client = clients("cloudformation")
    answer = once(
        "cloudformation",
        "GetTemplateSummary",
        lambda: client.get_template_summary(StackName=name),
    )
    return str(answer.get("Metadata", ""))
