"""The HTTP API for deliveries, job completions, status URLs and approval links."""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_apigatewayv2_integrations as integrations
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct
from webhook_inbox_cdk import names
from webhook_inbox_cdk.function import CLOUDWATCH_KEY
from webhook_inbox_cdk.waive import waive

from webhook_inbox.configuration.inbox_toml import ThrottleSpec
from webhook_inbox.domain.metrics import THROTTLED, THROTTLED_BY_ROUTE

# No body, header or query string: some providers put tokens there. No path: a completion's and an
# approval link's path ends in its token. Ingest's log has the source, under `request_id`.
# CloudWatch adds the time.
ACCESS_LOG: Final = {
    "requestId": "$context.requestId",
    "method": "$context.httpMethod",
    "route": "$context.routeKey",
    "status": "$context.status",
    "sourceIp": "$context.identity.sourceIp",
    "integrationLatency": "$context.integrationLatency",
    "integrationError": "$context.integrationErrorMessage",
}

COMPLETIONS: Final = "POST /completions/{token}"
STATUS: Final = "GET /status/{token}"
# Callers that poll use no other route's limit.
STATUS_THROTTLE: Final = ThrottleSpec(rate=50, burst=100)
# ANY, since HTTP APIs have no HEAD of a GET route: a mail scanner would find the link broken.
APPROVALS: Final = "ANY /approvals/{token}"
# People and mail scanners open links; a flood must not take ingest's concurrency.
APPROVALS_THROTTLE: Final = ThrottleSpec(rate=10, burst=50)
# Ingest answers 404 for a source that is not configured. API Gateway answers 404 to any other
# method or path.
UNKNOWN: Final = "ANY /webhooks/{source}"
# A flood of unknown sources uses no other route's limit.
UNKNOWN_THROTTLE: Final = ThrottleSpec(rate=5, burst=10)
# API Gateway answers for ingest after this time.
ANSWER_SECONDS: Final = 10


def source_route(source: str) -> str:
    """Returns the route key of a source."""
    return f"ANY /webhooks/{source}"


def tenant_route(source: str) -> str:
    """Returns the route key of a source whose tenants are in the path."""
    return f"{source_route(source)}/{{tenant}}"


class Api(Construct):
    """A route to ingest per source, each with its own limit, and an access log.

    API Gateway gives each route that the stage's settings name a limit of its own: a flood of one
    source takes nothing from the others, from completions or from unknown sources. `tenants` names
    the sources that have a second route, with their tenants in its path; `statuses` adds the route
    of status URLs, and `approvals` that of approval links. `count_by_route` adds a metric of
    throttled requests by route.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        ingest: lambda_.IFunction,
        throttle: ThrottleSpec,
        sources: Mapping[str, ThrottleSpec],
        tenants: Collection[str] = (),
        statuses: bool = False,
        approvals: bool = False,
        count_by_route: bool = False,
    ) -> None:
        super().__init__(scope, construct_id)
        self.api = apigatewayv2.HttpApi(
            self,
            "Http",
            api_name=Stack.of(self).stack_name,
            description="webhook-inbox",
            create_default_stage=False,
        )
        # Its id is part of every URL registered with a provider, so it outlives the stack.
        self.api.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        limits = {source_route(source): limit for source, limit in sources.items()}
        limits |= {tenant_route(source): sources[source] for source in tenants}
        limits |= {UNKNOWN: UNKNOWN_THROTTLE, COMPLETIONS: throttle}
        limits |= {STATUS: STATUS_THROTTLE} if statuses else {}
        limits |= {APPROVALS: APPROVALS_THROTTLE} if approvals else {}
        routes = self._routes(limits, ingest)
        waive(
            self.api,
            {
                "AwsSolutions-APIG4": "Providers cannot sign for IAM. Ingest verifies each"
                " delivery's signature and each completion's token before it stores anything."
            },
        )
        self.stage = apigatewayv2.HttpStage(
            self, "Stage", http_api=self.api, stage_name="$default", auto_deploy=True
        )
        # The stage's settings may name only routes that exist.
        self.stage.node.add_dependency(*routes)
        self.access_log = logs.LogGroup(
            self,
            "AccessLogs",
            removal_policy=RemovalPolicy.DESTROY,
        )
        waive(self.access_log, {"CKV_AWS_158": CLOUDWATCH_KEY})
        resource = self.stage.node.default_child
        assert isinstance(resource, apigatewayv2.CfnStage)  # noqa: S101 - narrows the type
        resource.access_log_settings = apigatewayv2.CfnStage.AccessLogSettingsProperty(
            destination_arn=self.access_log.log_group_arn, format=json.dumps(ACCESS_LOG)
        )
        resource.route_settings = {key: _settings(limit) for key, limit in limits.items()}
        harmless = (UNKNOWN, STATUS, *([APPROVALS] if approvals else ()))
        self._count_throttled(harmless, by_route=count_by_route)

    def _routes(
        self, limits: Mapping[str, ThrottleSpec], ingest: lambda_.IFunction
    ) -> list[apigatewayv2.HttpRoute]:
        integration = integrations.HttpLambdaIntegration(
            "Ingest",
            ingest,
            payload_format_version=apigatewayv2.PayloadFormatVersion.VERSION_2_0,
            timeout=Duration.seconds(ANSWER_SECONDS),
            # A permission per route would exceed the 20 KB of a function's policy.
            scope_permission_to_route=False,
        )
        routes: list[apigatewayv2.HttpRoute] = []
        for key in limits:
            method, path = key.split(" ")
            routes += self.api.add_routes(
                path=path, methods=[apigatewayv2.HttpMethod[method]], integration=integration
            )
        return routes

    def _count_throttled(self, harmless: Iterable[str], *, by_route: bool) -> None:
        """Counts answers of 429, which API Gateway's own metrics do not tell from other 4xx."""
        throttled = logs.FilterPattern.string_value("$.status", "=", "429")
        # They lose no delivery, and are open to anyone.
        stored = [logs.FilterPattern.string_value("$.route", "!=", route) for route in harmless]
        total = (THROTTLED.name, logs.FilterPattern.all(throttled, *stored), None)
        routes = (THROTTLED_BY_ROUTE.name, throttled, {"route": "$.route"})
        for name, pattern, dimensions in (total, routes) if by_route else (total,):
            logs.MetricFilter(
                self,
                name,
                log_group=self.access_log,
                filter_pattern=pattern,
                metric_namespace=names.metrics_namespace(self),
                metric_name=name,
                metric_value="1",
                dimensions=dimensions,
            )

    @property
    def url(self) -> str:
        """The base URL, without a trailing slash."""
        return self.api.api_endpoint


def _settings(limit: ThrottleSpec) -> dict[str, Any]:
    return {"ThrottlingRateLimit": limit.rate, "ThrottlingBurstLimit": limit.burst}
