"""The HTTP API: one route, throttled, logged without what may be secret, and permanent."""

import json

from stacks.api import ACCESS_LOG
from tests.infra.conftest import Synthesize
from tests.infra.template import KEPT_ONCE_DEPLOYED, Template, named, survival

STAGE = "AWS::ApiGatewayV2::Stage"


def test_every_method_of_every_source_goes_to_ingest(dev: Template) -> None:
    route = dev.one("AWS::ApiGatewayV2::Route")
    assert route["RouteKey"] == "ANY /webhooks/{source}"
    integration = dev.one("AWS::ApiGatewayV2::Integration")
    assert integration["PayloadFormatVersion"] == "2.0"
    assert named(integration["IntegrationUri"]).startswith("${InboxIngest")
    assert integration["TimeoutInMillis"] == 10_000


def test_api_speaks_http_and_leaves_options_to_ingest(dev: Template) -> None:
    api = dev.one("AWS::ApiGatewayV2::Api")
    assert api["ProtocolType"] == "HTTP"
    assert "CorsConfiguration" not in api


def test_only_this_api_may_call_ingest(dev: Template) -> None:
    permission = dev.one("AWS::Lambda::Permission", "InboxApi")
    assert permission["Principal"] == "apigateway.amazonaws.com"
    api = next(iter(dev.all("AWS::ApiGatewayV2::Api")))
    assert named(permission["SourceArn"]).endswith(f":${{{api}}}/*/*/webhooks/{{source}}")


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


def test_access_log_names_request_status_and_latency(dev: Template) -> None:
    written = json.loads(dev.one(STAGE)["AccessLogSettings"]["Format"])
    assert written == ACCESS_LOG
    assert {"requestId", "method", "path", "status", "integrationLatency"} <= set(written)


def test_access_log_holds_nothing_that_may_be_a_secret() -> None:
    text = json.dumps(ACCESS_LOG).lower()
    for word in ("body", "header", "authoriz", "query", "useragent", "cookie", "extendedrequest"):
        assert word not in text


def test_api_survives_its_stack(dev: Template) -> None:
    assert survival(dev.resource("AWS::ApiGatewayV2::Api")) == KEPT_ONCE_DEPLOYED
