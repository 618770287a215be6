"""The custom domain in front of the API, which keeps its own URL."""

from pathlib import Path
from typing import Any

import pytest
from webhook_inbox_cdk.domain import _check_region

from tests.infra.conftest import INBOX, Synthesize, write_functions
from tests.infra.template import Template, named
from webhook_inbox.configuration.inbox_toml import DomainSpec
from webhook_inbox.domain.errors import ConfigurationError

NAME = "hooks.acme.com"
CERTIFICATE = "arn:aws:acm:eu-west-1:111122223333:certificate/1a2b-3c"
DOMAIN = f'domain = {{ name = "{NAME}", certificate = "{CERTIFICATE}", hosted_zone = "Z1" }}\n'


@pytest.fixture(scope="module")
def functions_with_domain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_functions(tmp_path_factory.mktemp("domain"), inbox=DOMAIN + INBOX)


@pytest.fixture(scope="module")
def template(synthesize: Synthesize, functions_with_domain: Path) -> Template:
    return synthesize(functions=functions_with_domain)


def test_the_domain_has_the_certificate_and_tls_1_2(template: Template) -> None:
    domain = template.one("AWS::ApiGatewayV2::DomainName")
    assert domain["DomainName"] == NAME
    [configuration] = domain["DomainNameConfigurations"]
    assert configuration == {
        "CertificateArn": CERTIFICATE,
        "EndpointType": "REGIONAL",
        "SecurityPolicy": "TLS_1_2",
    }


def test_its_whole_path_is_mapped_to_the_stage(template: Template) -> None:
    mapping = template.one("AWS::ApiGatewayV2::ApiMapping")
    assert named(mapping["ApiId"]).startswith("${InboxApiHttp")
    assert mapping["Stage"] == "$default"
    waits = template.resource("AWS::ApiGatewayV2::ApiMapping")["DependsOn"]
    assert any(name.startswith("InboxApiStage") for name in waits)
    assert "ApiMappingKey" not in mapping


def test_the_zone_gets_an_alias_record(template: Template) -> None:
    record: dict[str, Any] = template.one("AWS::Route53::RecordSet")
    assert (record["Name"], record["Type"], record["HostedZoneId"]) == (NAME, "A", "Z1")
    target = named(record["AliasTarget"]["DNSName"])
    assert target.endswith(".RegionalDomainName}")
    assert named(template.outputs["DomainTarget"]) == target


def test_the_addresses_to_register_are_the_domain_s(template: Template) -> None:
    assert template.outputs["ApiUrl"] == f"https://{NAME}"
    assert template.outputs["WebhookUrlGithub"] == f"https://{NAME}/webhooks/github"


def test_the_api_s_own_url_stays(template: Template) -> None:
    assert "DisableExecuteApiEndpoint" not in template.one("AWS::ApiGatewayV2::Api")


def test_the_stage_local_has_the_api_s_url(
    synthesize: Synthesize, functions_with_domain: Path
) -> None:
    local = synthesize(functions=functions_with_domain, stage="local")
    assert not local.all("AWS::ApiGatewayV2::DomainName")
    assert NAME not in str(local.outputs)


def test_a_certificate_of_another_region_is_refused() -> None:
    spec = DomainSpec(NAME, CERTIFICATE)
    _check_region(spec, "eu-west-1")
    with pytest.raises(ConfigurationError, match="it is in eu-west-1, and the stack in us-east-1"):
        _check_region(spec, "us-east-1")
