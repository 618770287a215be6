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
    """Makes Lambda's own log lines JSON, where it can; ours are JSON everywhere.

    https://docs.aws.amazon.com/govcloud-us/latest/UserGuide/govcloud-lambda.html
    """
    offered = Fn.condition_not(Fn.condition_equals(Aws.PARTITION, GOVCLOUD))
    _set(function, "LoggingConfig.LogFormat", "JSON", name="LambdaLogsJson", expression=offered)


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
