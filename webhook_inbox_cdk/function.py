"""The base of the four Lambda functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct
from webhook_inbox_cdk import names, regions
from webhook_inbox_cdk.bundle import Bundle


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
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
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
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            timeout=Duration.seconds(shape.timeout),
            memory_size=shape.memory,
            environment={
                **shape.environment,
                "POWERTOOLS_SERVICE_NAME": shape.name,
                "POWERTOOLS_METRICS_NAMESPACE": names.metrics_namespace(scope),
            },
            log_group=log_group,
            role=role,
            **shape.extra,
        )
        regions.log_json(self)
        self.allow("logs:CreateLogStream", "logs:PutLogEvents", on=[log_group.log_group_arn])

    def allow(self, *actions: str, on: Sequence[str]) -> None:
        """Allows `actions` on these ARNs; adds no statement for an empty list."""
        if on:
            self.add_to_role_policy(iam.PolicyStatement(actions=list(actions), resources=list(on)))

    def allow_network_interfaces(self) -> None:
        """Lets Lambda attach the function to a VPC; EC2 supports no narrower resource."""
        self.allow(
            "ec2:AssignPrivateIpAddresses",
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSubnets",
            "ec2:UnassignPrivateIpAddresses",
            on=["*"],
        )
