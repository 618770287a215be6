"""The base of the four Lambda functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct
from webhook_inbox_cdk import regions
from webhook_inbox_cdk.bundle import Bundle
from webhook_inbox_cdk.waive import waive, wildcard

from webhook_inbox.domain.errors import ConfigurationError

RUNTIMES: Final = {"3.12": lambda_.Runtime.PYTHON_3_12, "3.13": lambda_.Runtime.PYTHON_3_13}
# A resource, for actions that AWS does not limit to one.
EVERYTHING: Final = "*"
ARCHITECTURES: Final = {"arm64": lambda_.Architecture.ARM_64, "x86_64": lambda_.Architecture.X86_64}

# MB. https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
MEMORY: Final = (128, 10_240)

# Why log groups have no key of their own.
CLOUDWATCH_KEY: Final = (
    "CloudWatch Logs encrypts with its own key. A customer managed key costs 1 dollar a month and"
    " requests, and a mistake in its policy stops the logs."
)
INTERFACES: Final = "EC2 supports no narrower resource for a function's network interfaces."
SEGMENTS: Final = "X-Ray supports no narrower resource for the segments of a trace."
WAIVED: Final = {
    "AwsSolutions-L1": "Wheels and bytecode in the bundle are of Python 3.13.",
    "CKV_AWS_115": "A new account has 10 concurrent executions, and a reservation must leave 100"
    " unreserved, so that the deployment would fail. The event source mapping limits a lane.",
    "CKV_AWS_116": "SQS and API Gateway's callers retry; the reconciler runs again in a minute;"
    " a failed replay has an alarm, and a retry would be a second replay.",
    "CKV_AWS_117": "The function calls AWS's endpoints with its role, over TLS. A VPC needs paid"
    " endpoints or NAT; Placement.vpc puts processors into one where handlers need it.",
    "CKV_AWS_173": "The variables are names and URLs, no secrets; Lambda encrypts them with its"
    " own key.",
    "W3005": "CDK states that a function depends on its role, so that the role's policy is there.",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The settings of one function; `timeout` in seconds, `memory` in MB.

    `extra` is passed to CDK's Function unchanged.
    """

    name: str
    bundle: Bundle
    timeout: int
    memory: int
    environment: Mapping[str, str]
    extra: Mapping[str, Any] = field(default_factory=dict)


class InboxFunction(lambda_.Function):
    """A function with its own log group and a least-privilege role."""

    def __init__(self, scope: Construct, construct_id: str, shape: Shape) -> None:
        log_group = logs.LogGroup(
            scope,
            f"{construct_id}Logs",
            removal_policy=RemovalPolicy.DESTROY,
        )
        waive(log_group, {"CKV_AWS_158": CLOUDWATCH_KEY})
        if not MEMORY[0] <= shape.memory <= MEMORY[1]:
            raise ConfigurationError(
                f"{shape.name}_memory is {shape.memory}; Lambda takes {MEMORY[0]} to {MEMORY[1]} MB"
            )
        role = iam.Role(
            scope, f"{construct_id}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com")
        )
        super().__init__(
            scope,
            construct_id,
            description=f"webhook-inbox: {shape.name}",
            handler=f"{shape.name}.lambda_function.lambda_handler",
            code=lambda_.Code.from_asset(
                str(shape.bundle.directory), asset_hash=shape.bundle.digest
            ),
            runtime=RUNTIMES[shape.bundle.platform.python],
            architecture=ARCHITECTURES[shape.bundle.platform.architecture],
            timeout=Duration.seconds(shape.timeout),
            memory_size=shape.memory,
            environment={**shape.environment, "POWERTOOLS_SERVICE_NAME": shape.name},
            log_group=log_group,
            role=role,
            **shape.extra,
        )
        regions.log_json(self)
        self.allow("logs:CreateLogStream", "logs:PutLogEvents", on=[log_group.log_group_arn])

        waive(self, WAIVED)

    def allow(
        self,
        *actions: str,
        on: Sequence[str],
        pattern: str = "",
        when: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Allows `actions` on these ARNs; adds no statement for an empty list.

        Args:
            actions: IAM actions.
            on: ARNs, or patterns.
            pattern: why they are patterns.
            when: the conditions of the statement, by operator and key.
        """
        if not on:
            return
        statement = iam.PolicyStatement(actions=list(actions), resources=list(on), conditions=when)
        assert isinstance(self.role, iam.Role)  # noqa: S101 - narrows the type
        if EVERYTHING in on:
            # In a policy of its own: the waiver must not exempt another statement.
            name = actions[0].replace(":", "-")
            policy = iam.Policy(self.role, name, statements=[statement], roles=[self.role])
            waive(policy, {wildcard(self, EVERYTHING): pattern, "CKV_AWS_111": pattern})
            return
        self.add_to_role_policy(statement)
        if pattern:
            waive(self.role, {wildcard(self, arn): pattern for arn in on})

    def trace(self) -> None:
        """Has Lambda sample its invocations for X-Ray."""
        resource = self.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)  # noqa: S101 - narrows the type
        resource.tracing_config = lambda_.CfnFunction.TracingConfigProperty(mode="Active")
        segments = ("xray:PutTelemetryRecords", "xray:PutTraceSegments")
        self.allow(*segments, on=[EVERYTHING], pattern=SEGMENTS)

    def allow_network_interfaces(self) -> None:
        """Lets Lambda attach the function to a VPC."""
        self.allow(
            "ec2:AssignPrivateIpAddresses",
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
            "ec2:UnassignPrivateIpAddresses",
            on=[EVERYTHING],
            pattern=INTERFACES,
        )
