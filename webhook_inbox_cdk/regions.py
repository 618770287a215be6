"""Settings of Lambda functions that some regions do not accept.

A condition of the template decides at the deployment, so that one template serves all regions.
"""

from typing import Final

from aws_cdk import Aws, CfnCondition, Fn, ICfnConditionExpression, Stack
from aws_cdk import aws_lambda as lambda_

AWS: Final = "aws"
GOVCLOUD: Final = "aws-us-gov"
# The commercial regions in which Lambda detects no loops; nor does it in other partitions:
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html#invocation-recursion-regions
LOOPS_UNDETECTED: Final = ("ap-southeast-6", "mx-central-1")


def allow_loops(function: lambda_.Function) -> None:
    """Lets a function send to the queue that invokes it, where Lambda would stop the loop."""
    elsewhere = (Fn.condition_equals(Aws.REGION, region) for region in LOOPS_UNDETECTED)
    detected = Fn.condition_and(
        Fn.condition_equals(Aws.PARTITION, AWS), *map(Fn.condition_not, elsewhere)
    )
    _set(function, "RecursiveLoop", "Allow", name="LambdaDetectsLoops", expression=detected)


def log_json(function: lambda_.Function) -> None:
    """Has Lambda log as JSON what goes wrong, and nothing else, where it can.

    Ours are JSON everywhere. At the level WARN, Lambda writes no line at the start and the end of
    an invocation that succeeds; one that fails or times out has its report:
    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
    https://docs.aws.amazon.com/govcloud-us/latest/UserGuide/govcloud-lambda.html
    """
    offered = Fn.condition_not(Fn.condition_equals(Aws.PARTITION, GOVCLOUD))
    for key, value in (("LogFormat", "JSON"), ("SystemLogLevel", "WARN")):
        _set(function, f"LoggingConfig.{key}", value, name="LambdaLogsJson", expression=offered)


def _set(
    function: lambda_.Function,
    path: str,
    value: str,
    *,
    name: str,
    expression: ICfnConditionExpression,
) -> None:
    """Sets a property of a function where a condition of its stack is true."""
    stack = Stack.of(function)
    if stack.node.try_find_child(name) is None:
        CfnCondition(stack, name, expression=expression)
    resource = function.node.default_child
    assert isinstance(resource, lambda_.CfnFunction)  # noqa: S101 - narrows the type
    resource.add_property_override(path, Fn.condition_if(name, value, Aws.NO_VALUE))
