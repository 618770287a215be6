"""The custom domain: validated at synth, and the default of the URLs that providers sign."""

import pytest

from tests.unit.configuration.inbox_files import fault, load
from webhook_inbox import providers
from webhook_inbox.configuration.inbox_toml import DomainSpec

CERTIFICATE = "arn:aws:acm:eu-west-1:111122223333:certificate/1a2b-3c"
DOMAIN = f'domain = {{ name = "hooks.acme.com", certificate = "{CERTIFICATE}" }}\n'
TWILIO = '[sources.sms]\nprovider = "twilio"\n'
SIGNING = [name for name in providers.MODULES if "url" in providers.settings_of(name)]


pytestmark = pytest.mark.usefixtures("in_the_project")


def test_an_inbox_has_no_domain_unless_told() -> None:
    assert load(TWILIO).domain is None
    assert load(TWILIO).sources["sms"].settings == {}


def test_a_domain_has_a_name_a_certificate_and_a_zone() -> None:
    zone = DOMAIN.replace(" }", ', hosted_zone = "Z0123456789ABC" }')
    assert load(DOMAIN).domain == DomainSpec("hooks.acme.com", CERTIFICATE)
    assert load(zone).domain == DomainSpec("hooks.acme.com", CERTIFICATE, "Z0123456789ABC")


def test_a_stage_has_its_own_domain() -> None:
    own = '[stages.prod.domain]\nname = "prod.acme.com"\n'
    found = load(DOMAIN + TWILIO + own, stage="prod")
    assert found.domain == DomainSpec("prod.acme.com", CERTIFICATE)
    assert found.sources["sms"].settings == {"url": "https://prod.acme.com/webhooks/sms"}


def test_the_stage_local_has_no_domain() -> None:
    found = load(DOMAIN + TWILIO, stage="local")
    assert found.domain is None
    assert found.sources["sms"].settings == {}


def test_a_provider_that_signs_its_url_is_called_by_the_domain() -> None:
    assert load(DOMAIN + TWILIO).sources["sms"].settings == {
        "url": "https://hooks.acme.com/webhooks/sms"
    }
    assert len(SIGNING) == 11


def test_an_explicit_url_wins() -> None:
    explicit = f'{TWILIO}url = "https://old.example/webhooks/sms"\n'
    assert load(DOMAIN + explicit).sources["sms"].settings == {
        "url": "https://old.example/webhooks/sms"
    }


def test_other_providers_get_no_url() -> None:
    assert load(f'{DOMAIN}[sources.github]\nprovider = "github"\n').sources["github"].settings == {}


@pytest.mark.parametrize(
    ("was", "now", "line"),
    [
        (
            "hooks.acme.com",
            "https://hooks.acme.com",
            "is not a host name in lower case; write name",
        ),
        ("hooks.acme.com", "Hooks.acme.com", "is not a host name in lower case"),
        ("hooks.acme.com", "localhost", "is not a host name in lower case"),
        ("arn:aws:acm", "arn:aws:iam", "is not the ARN of a certificate; write"),
        (f', certificate = "{CERTIFICATE}"', "", "certificate: missing; give the ARN of its"),
        ("name =", "nam = 1, name =", 'nam: unknown key; did you mean "name"?'),
        (" }", ', hosted_zone = "acme.com" }', "is not the id of a hosted zone"),
    ],
)
def test_a_domain_that_cannot_be_one_is_refused(was: str, now: str, line: str) -> None:
    said = fault(DOMAIN.replace(was, now))
    assert line in said
    assert "[domain]" in said
    assert "\n" not in said
