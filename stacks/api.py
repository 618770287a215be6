"""The HTTP API for deliveries and job completions."""

import json
from typing import Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

# No body, header or query string: some providers put tokens there. No path: a completion's path
# ends in its token. Ingest's log has the source, under integrationRequestId.
ACCESS_LOG: Final = {
    "requestId": "$context.requestId",
    "time": "$context.requestTime",
    "method": "$context.httpMethod",
    "route": "$context.routeKey",
    "status": "$context.status",
    "sourceIp": "$context.identity.sourceIp",
    "responseLength": "$context.responseLength",
    "integrationRequestId": "$context.integration.requestId",
    "integrationLatency": "$context.integrationLatency",
    "integrationError": "$context.integrationErrorMessage",
}

# API Gateway answers 404 to any other method or path.
ROUTES: Final = {
    "/webhooks/{source}": apigatewayv2.HttpMethod.ANY,
    "/completions/{token}": apigatewayv2.HttpMethod.POST,
}


class Api(Construct):
    """Two routes to ingest, with throttling (requests per second, burst) and an access log."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        ingest: lambda_.IFunction,
        rate: float,
        burst: int,
    ) -> None:
        super().__init__(scope, construct_id)
        self.api = apigatewayv2.HttpApi(
            self, "Http", description="webhook-inbox", create_default_stage=False
        )
        # Its id is part of every URL registered with a provider, so it outlives the stack.
        self.api.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        integration = integrations.HttpLambdaIntegration(
            "Ingest",
            ingest,
            payload_format_version=apigatewayv2.PayloadFormatVersion.VERSION_2_0,
            timeout=Duration.seconds(10),
        )
        for path, method in ROUTES.items():
            self.api.add_routes(path=path, methods=[method], integration=integration)
        self.stage = apigatewayv2.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigatewayv2.ThrottleSettings(rate_limit=rate, burst_limit=burst),
        )
        log_group = logs.LogGroup(
            self,
            "AccessLogs",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        resource = self.stage.node.default_child
        assert isinstance(resource, apigatewayv2.CfnStage)  # noqa: S101 - narrows the type
        resource.access_log_settings = apigatewayv2.CfnStage.AccessLogSettingsProperty(
            destination_arn=log_group.log_group_arn, format=json.dumps(ACCESS_LOG)
        )

    @property
    def url(self) -> str:
        """The base URL, without a trailing slash."""
        return self.api.api_endpoint
