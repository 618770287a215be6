"""The HTTP API: two routes, throttled, logged without what may be secret, and permanent."""

import json

from stacks.api import ACCESS_LOG
from tests.infra.conftest import Synthesize
from tests.infra.template import KEPT_ONCE_DEPLOYED, Template, named, survival

STAGE = "AWS::ApiGatewayV2::Stage"


def test_every_method_of_every_source_goes_to_ingest_and_so_do_completions(dev: Template) -> None:
    routes = dev.all("AWS::ApiGatewayV2::Route").values()
    assert sorted(route["RouteKey"] for route in routes) == [
        "ANY /webhooks/{source}",
        "POST /completions/{token}",
    ]
    # One integration: whoever has a route is answered by the same function.
    integration = dev.one("AWS::ApiGatewayV2::Integration")
    (target,) = {named(route["Target"]) for route in routes}
    assert target.startswith("integrations/${InboxApi")
    assert integration["PayloadFormatVersion"] == "2.0"
    assert named(integration["IntegrationUri"]).startswith("${InboxIngest")
    assert integration["TimeoutInMillis"] == 10_000


def test_api_speaks_http_and_leaves_options_to_ingest(dev: Template) -> None:
    api = dev.one("AWS::ApiGatewayV2::Api")
    assert api["ProtocolType"] == "HTTP"
    assert "CorsConfiguration" not in api


def test_only_this_api_may_call_ingest(dev: Template) -> None:
    api = next(iter(dev.all("AWS::ApiGatewayV2::Api")))
    permissions = [
        permission
        for name, permission in dev.all("AWS::Lambda::Permission").items()
        if name.startswith("InboxApi")
    ]
    assert {permission["Principal"] for permission in permissions} == {"apigateway.amazonaws.com"}
    allowed = sorted(named(each["SourceArn"]).partition(f":${{{api}}}")[2] for each in permissions)
    assert allowed == ["/*/*/completions/{token}", "/*/*/webhooks/{source}"]


def test_stage_is_the_default_one_and_deploys_itself(dev: Template) -> None:
    stage = dev.one(STAGE)
    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)


def test_api_is_throttled(dev: Template, synthesize: Synthesize) -> None:
    assert dev.one(STAGE)["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": 500,
        "ThrottlingBurstLimit": 1000,
    }
    quieter = synthesize(throttle_rate=5, throttle_burst=7)
    assert quieter.one(STAGE)["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": 5,
        "ThrottlingBurstLimit": 7,
    }


def test_access_log_has_its_own_group_that_expires(dev: Template) -> None:
    settings = dev.one(STAGE)["AccessLogSettings"]
    group = settings["DestinationArn"]["Fn::GetAtt"][0]
    assert dev.all("AWS::Logs::LogGroup")[group]["RetentionInDays"] == 30


def test_access_log_holds_no_path_since_one_of_them_ends_in_a_token() -> None:
    assert "path" not in " ".join(ACCESS_LOG.values()).lower()
    assert ACCESS_LOG["route"] == "$context.routeKey"


def test_access_log_names_request_status_and_latency(dev: Template) -> None:
    written = json.loads(dev.one(STAGE)["AccessLogSettings"]["Format"])
    assert written == ACCESS_LOG
    assert {"requestId", "method", "route", "status", "integrationLatency"} <= set(written)
    # With it ingest's own line is found, which has the source.
    assert written["integrationRequestId"] == "$context.integration.requestId"


def test_access_log_holds_nothing_that_may_be_a_secret() -> None:
    text = json.dumps(ACCESS_LOG).lower()
    for word in ("body", "header", "authoriz", "query", "useragent", "cookie", "extendedrequest"):
        assert word not in text


def test_api_survives_its_stack(dev: Template) -> None:
    assert survival(dev.resource("AWS::ApiGatewayV2::Api")) == KEPT_ONCE_DEPLOYED
