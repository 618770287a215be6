"""The HTTP API: a route per source, each throttled, logged without secrets, and permanent."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from aws_cdk import App, Stack
from webhook_inbox_cdk.api import ACCESS_LOG
from webhook_inbox_cdk.inbox import InboxProps, WebhookInbox

from tests.infra.conftest import INBOX, Synthesize, write_functions
from tests.infra.template import KEPT_ONCE_DEPLOYED, Template, named, survival
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.secrets import APPROVAL_KEY, COMPLETION_KEY

STAGE = "AWS::ApiGatewayV2::Stage"
SECRET = "AWS::SecretsManager::Secret"
FILTER = "AWS::Logs::MetricFilter"
DEFAULT = {"ThrottlingRateLimit": 500, "ThrottlingBurstLimit": 1000}


def test_every_method_of_every_source_goes_to_ingest_and_so_do_completions(dev: Template) -> None:
    routes = dev.all("AWS::ApiGatewayV2::Route").values()
    assert sorted(route["RouteKey"] for route in routes) == [
        "ANY /webhooks/github",
        "ANY /webhooks/stripe-eu",
        "ANY /webhooks/{source}",
        "POST /completions/{token}",
    ]
    # One integration: the same function answers every route.
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
    allowed = [named(each["SourceArn"]).partition(f":${{{api}}}")[2] for each in permissions]
    # One for all routes: with one each, 76 sources would exceed the 20 KB of a function's policy.
    assert allowed == ["/*/*/*"]


def test_stage_is_the_default_one_and_deploys_itself(dev: Template) -> None:
    stage = dev.one(STAGE)
    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)


def test_each_route_has_a_limit_of_its_own(dev: Template) -> None:
    """One limit for all routes let a flood of one source starve the others."""
    assert dev.one(STAGE)["RouteSettings"] == {
        "ANY /webhooks/github": DEFAULT,
        "ANY /webhooks/stripe-eu": DEFAULT,
        "ANY /webhooks/{source}": {"ThrottlingRateLimit": 5, "ThrottlingBurstLimit": 10},
        "POST /completions/{token}": DEFAULT,
    }


def test_every_route_is_throttled_and_exists_before_the_stage_names_it(dev: Template) -> None:
    routes = dev.all("AWS::ApiGatewayV2::Route")
    stage = dev.resource(STAGE)
    limited = stage["Properties"]["RouteSettings"]
    assert {route["RouteKey"] for route in routes.values()} == set(limited)
    assert set(routes) <= set(stage["DependsOn"])


CALLERS = """
[sources.agents]
auth = "api-key"
event_id = { json = "id" }
"""


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory, synthesize: Synthesize) -> Template:
    """An inbox with a source for callers of one's own, and X-Ray."""
    top = tmp_path_factory.mktemp("called")
    functions = write_functions(top, inbox=INBOX + CALLERS)
    return synthesize(functions=functions, tracing="xray")


def test_callers_of_ones_own_have_a_route_to_the_status_of_their_events(called: Template) -> None:
    routes = {each["RouteKey"]: each for each in called.all("AWS::ApiGatewayV2::Route").values()}
    settings = called.one(STAGE)["RouteSettings"]
    assert settings["GET /status/{token}"] == {
        "ThrottlingRateLimit": 50,
        "ThrottlingBurstLimit": 100,
    }
    assert len({named(route["Target"]) for route in routes.values()}) == 1
    # One of them is the key that signs the URLs.
    assert len(called.all("AWS::SecretsManager::Secret")) == 2


def test_approvers_have_a_route_for_their_links_with_a_limit_of_its_own(asking: Template) -> None:
    routes = {each["RouteKey"]: each for each in asking.all("AWS::ApiGatewayV2::Route").values()}
    settings = asking.one(STAGE)["RouteSettings"]
    # Also HEAD, which mail scanners send; an HTTP API has none for a route of GET.
    assert settings["ANY /approvals/{token}"] == {
        "ThrottlingRateLimit": 10,
        "ThrottlingBurstLimit": 50,
    }
    assert set(settings) == set(routes)
    assert len({named(route["Target"]) for route in routes.values()}) == 1
    patterns = {each["FilterPattern"] for each in asking.all(FILTER).values()}
    # A flood of links loses no delivery, and must wake no one.
    assert any('$.route != "ANY /approvals/{token}"' in pattern for pattern in patterns)


def test_links_are_signed_by_a_key_that_ingest_and_processors_alone_read(
    asking: Template,
) -> None:
    [key] = (each for each in asking.all(SECRET) if "ApprovalKey" in each)
    assert asking.all(SECRET)[key]["GenerateSecretString"]["PasswordLength"] == 64
    readers = {
        function: asking.rights(function).get(f"${{{key}.Id}}")
        for function in ("ingest", "processor", "replay", "reconciler")
    }
    read = {"secretsmanager:GetSecretValue"}
    assert readers == {"ingest": read, "processor": read, "replay": None, "reconciler": None}
    told = {
        function: list(json.loads(named(variables(asking, function)["GENERATED_KEYS"])))
        for function in ("ingest", "processor")
    }
    assert told == {"ingest": [APPROVAL_KEY], "processor": [COMPLETION_KEY, APPROVAL_KEY]}


def test_ingest_gains_no_other_right_for_links(asking: Template, dev: Template) -> None:
    """It records a decision with the writes of completions."""
    before, after = (_shapes(template.rights("ingest")) for template in (dev, asking))
    assert after - before == {("${InboxSecretsApprovalKey}", "secretsmanager:GetSecretValue")}
    assert before - after == set()


def test_processors_publish_to_the_topics_of_approvers_alone(
    asking: Template, dev: Template
) -> None:
    before, after = (_shapes(template.rights("processor")) for template in (dev, asking))
    topic = "arn:aws:sns:us-east-1:111122223333:"
    assert after - before == {
        ("${InboxSecretsApprovalKey}", "secretsmanager:GetSecretValue"),
        (f"{topic}bob", "sns:Publish"),
        (f"{topic}board", "sns:Publish"),
    }


def test_processors_know_the_url_that_links_begin_with(asking: Template, dev: Template) -> None:
    url = named(variables(asking, "processor")["API_URL"])
    assert url == named(asking.outputs["ApiUrl"])
    assert "API_URL" not in variables(asking, "ingest")


def test_without_approvers_nothing_of_links_is_in_the_template(dev: Template) -> None:
    text = json.dumps(dev.body).lower()
    for word in ("/approvals/", "approvalkey", "api_url", "sns:publish"):
        assert word not in text


def variables(template: Template, function: str) -> dict[str, Any]:
    found: dict[str, Any] = template.function(function)["Environment"]["Variables"]
    return found


def _shapes(rights: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    """Returns the rights, without the hashes of logical ids."""
    return {
        (re.sub(r"[0-9A-F]{8}(\.\w+)?\}", "}", place), action)
        for place, actions in rights.items()
        for action in actions
    }


def test_xray_traces_every_function_where_it_is_asked_for(
    called: Template, dev: Template, props: InboxProps
) -> None:
    """HTTP APIs have no traces of their own: a trace begins in the function."""
    traced = called.all("AWS::Lambda::Function").values()
    assert {each["TracingConfig"]["Mode"] for each in traced} == {"Active"}
    assert not any("TracingConfig" in each for each in dev.all("AWS::Lambda::Function").values())
    for name in ("ingest", "processor", "replay", "reconciler"):
        segments = {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}
        assert segments <= called.rights(name)["*"]
        assert segments.isdisjoint(dev.rights(name).get("*", set()))
    with pytest.raises(ConfigurationError, match="tracing: 'otel' is not known"):
        WebhookInbox(Stack(App(), "S"), "Inbox", replace(props, tracing="otel"))


THROTTLED = """
[stages.prod]
throttle = { burst = 70 }

[stages.prod.sources.github]
throttle = { rate = 2.5 }
"""


@pytest.fixture(scope="module")
def throttled(tmp_path_factory: pytest.TempPathFactory, synthesize: Synthesize) -> Template:
    """The stage `prod` of a configuration with its own limits."""
    inbox = INBOX.replace(
        'provider = "github"',
        'provider = "github"\nthrottle = { rate = 50, burst = 60 }\ntenant = { path = true }',
    )
    functions = write_functions(tmp_path_factory.mktemp("throttled"), inbox=inbox + THROTTLED)
    path = functions / "inbox.toml"
    path.write_text("throttle = { rate = 7, burst = 8 }\n" + path.read_text())
    return synthesize(functions=functions, stage="prod")


def test_a_source_and_a_stage_may_have_limits_of_their_own(throttled: Template) -> None:
    limits = throttled.one(STAGE)["RouteSettings"]
    default = {"ThrottlingRateLimit": 7, "ThrottlingBurstLimit": 70}
    assert limits["ANY /webhooks/github"] == {
        "ThrottlingRateLimit": 2.5,
        "ThrottlingBurstLimit": 60,
    }
    assert limits["ANY /webhooks/stripe-eu"] == limits["POST /completions/{token}"] == default


def test_a_source_with_tenants_in_its_path_has_a_second_route(throttled: Template) -> None:
    limits = throttled.one(STAGE)["RouteSettings"]
    assert limits["ANY /webhooks/github/{tenant}"] == limits["ANY /webhooks/github"]
    assert [key for key in limits if "{tenant}" in key] == ["ANY /webhooks/github/{tenant}"]
    routes = {each["RouteKey"] for each in throttled.all("AWS::ApiGatewayV2::Route").values()}
    assert routes == set(limits)


def test_answers_of_429_are_counted_from_the_access_log(dev: Template) -> None:
    """API Gateway's own metric counts them among all 4xx."""
    log = dev.one(STAGE)["AccessLogSettings"]["DestinationArn"]["Fn::GetAtt"][0]
    found = {
        each["MetricTransformations"][0]["MetricName"]: each for each in dev.all(FILTER).values()
    }
    assert set(found) == {"Throttled", "ThrottledByRoute"}
    for each in found.values():
        assert each["LogGroupName"] == {"Ref": log}
        [counted] = each["MetricTransformations"]
        assert (counted["MetricNamespace"], counted["MetricValue"]) == ("WebhookInbox/Inbox", "1")
    by_route = found["ThrottledByRoute"]
    assert by_route["FilterPattern"] == '{ $.status = "429" }'
    assert by_route["MetricTransformations"][0]["Dimensions"] == [
        {"Key": "route", "Value": "$.route"}
    ]
    # Scanners of unknown paths must wake no one.
    assert found["Throttled"]["FilterPattern"] == (
        '{ ($.status = "429") && ($.route != "ANY /webhooks/{source}")'
        ' && ($.route != "GET /status/{token}") }'
    )
    assert "Dimensions" not in found["Throttled"]["MetricTransformations"][0]


def test_the_fields_that_the_filters_read_are_in_the_log_as_text(dev: Template) -> None:
    for each in dev.all(FILTER).values():
        for field in re.findall(r"\$\.(\w+)", each["FilterPattern"]):
            assert ACCESS_LOG[field].startswith("$context.")


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
    # With it ingest's own line is found, whose `request_id` it is, and which has the source.
    assert written["requestId"] == "$context.requestId"


def test_access_log_holds_nothing_that_may_be_a_secret() -> None:
    text = json.dumps(ACCESS_LOG).lower()
    for word in ("body", "header", "authoriz", "query", "useragent", "cookie", "extendedrequest"):
        assert word not in text


def test_api_survives_its_stack(dev: Template) -> None:
    assert survival(dev.resource("AWS::ApiGatewayV2::Api")) == KEPT_ONCE_DEPLOYED
