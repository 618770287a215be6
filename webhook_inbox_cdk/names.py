"""The names that an inbox takes in its account and region; all derive from its stack's name.

A stack's name is unique there, so neither two stages nor two stacks of one stage share a name.
"""

import re
from typing import Final

from aws_cdk import Stack, Token
from constructs import Construct

from webhook_inbox.domain import metrics, quotas
from webhook_inbox.domain.errors import ConfigurationError

PREFIX: Final = "WebhookInbox"
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cfn-using-console-create-stack-parameters.html
_STACK: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}", re.ASCII)


def stage_of(scope: Construct) -> str:
    """Returns the context value `stage`, by default "dev"."""
    return str(scope.node.try_get_context("stage") or "dev")


def stack_name(scope: Construct) -> str:
    """Returns the context value `stack`, by default "WebhookInbox", with the stage behind it.

    Raises:
        ConfigurationError: CloudFormation does not accept the name.
    """
    name = f"{scope.node.try_get_context('stack') or PREFIX}-{stage_of(scope)}"
    if _STACK.fullmatch(name) is None:
        raise ConfigurationError(
            f"stack name {name!r}, of the context values stack and stage: use 1-128 of A-Z a-z 0-9"
            " -, a letter first"
        )
    return name


def _own_stack(scope: Construct) -> str:
    """Returns the name of the scope's stack; a nested stack has none before its deployment."""
    name = Stack.of(scope).stack_name
    if Token.is_unresolved(name):
        raise ConfigurationError(
            "the inbox is in a nested stack, whose name is not known at synth: put it into a stack"
            " of the app"
        )
    return name


def metrics_namespace(scope: Construct) -> str:
    """Returns the namespace of the metrics that this stack's functions and log filters write."""
    return metrics.namespace(_own_stack(scope))


def queue_prefix(scope: Construct) -> str:
    """Returns how the names of the work queues begin.

    A stack's name has no "_", so the first one separates it from the lane's.
    """
    return f"{_own_stack(scope)}_"


def queue_name(scope: Construct, lane: str, *, fifo: bool) -> str:
    """Returns the name of a lane's work queue."""
    return quotas.queue_name(queue_prefix(scope), lane, fifo=fifo)
