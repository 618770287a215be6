"""A deployed stage refuses loopback, private and placeholder addresses."""

from pathlib import Path

import pytest

from tests.unit.configuration.inbox_files import fault, load
from webhook_inbox.configuration.addresses import kind_of
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest

pytestmark = pytest.mark.usefixtures("in_the_project")

CRM = """
[destinations.crm]
base_url = "{url}"
allow = {allow}

[stages.local.destinations.crm]
base_url = "http://127.0.0.1:8788"
"""


def compiled(url: str, *, allow: str = "[]", stage: str = "dev", more: str = "") -> Manifest:
    text = CRM.format(url=url, allow=allow) + more
    Path("functions/inbox.toml").write_text(text, encoding="utf-8")
    Path("functions/handlers").mkdir(exist_ok=True)
    Path("functions/handlers/__init__.py").write_text("MODULES = ()\n")
    return compile_manifest(Path("functions"), stage=stage)


def refusal(url: str, **options: str) -> str:
    with pytest.raises(ConfigurationError) as refused:
        compiled(url, **options)
    return str(refused.value)


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("localhost", "loopback"),
        ("LOCALHOST.", "loopback"),
        ("crm.localhost", "loopback"),
        ("127.0.0.1", "loopback"),
        ("127.9.9.9", "loopback"),
        ("127.1", "loopback"),
        ("2130706433", "private"),
        ("0x7f.1", "private"),
        ("10.1", "private"),
        ("0.0.0.0", "loopback"),
        ("[::1]", "loopback"),
        ("[::]", "loopback"),
        ("[::ffff:127.0.0.1]", "loopback"),
        ("[::127.0.0.1]", "loopback"),
        ("[64:ff9b::7f00:1]", "loopback"),
        ("[64:ff9b::10.0.0.1]", "private"),
        ("router.lan", "private"),
        ("svc.home.arpa", "private"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("169.254.169.254", "private"),
        ("100.64.0.1", "private"),
        ("[fd00::1]", "private"),
        ("[fe80::1]", "private"),
        ("[::ffff:10.0.0.1]", "private"),
        ("crm.internal", "private"),
        ("ip-10-0-0-1.eu-west-1.compute.internal", "private"),
        ("printer.local", "private"),
        ("crm", "private"),
        ("crm.example", "placeholder"),
        ("example.com", "placeholder"),
        ("api.example.com", "placeholder"),
        ("example.net", "placeholder"),
        ("example.org.", "placeholder"),
        ("crm.test", "placeholder"),
        ("crm.invalid", "placeholder"),
    ],
)
def test_kinds_of_addresses(host: str, kind: str) -> None:
    assert kind_of(f"https://{host}:8443/v1") == kind


@pytest.mark.parametrize(
    "host",
    ["slack.com", "api.crm.io", "8.8.8.8", "172.32.0.1", "[2606:4700::1]", "[64:ff9b::8.8.8.8]",
     "myexample.com",
     "127.acme.io", "local.acme.io", "internal.acme.io", "example.co", "latest.io"],
)  # fmt: skip
def test_a_public_address_is_accepted(host: str) -> None:
    assert compiled(f"https://{host}/v1").destinations["crm"].base_url == f"https://{host}/v1"


@pytest.mark.parametrize("host", ["localhost.", "LOCALHOST", "127.0.0.1"])
def test_plain_http_is_permitted_on_this_machine(host: str) -> None:
    assert kind_of(f"http://{host}:80") == "loopback"
    url = f"http://{host}:80"
    assert compiled(url, allow='["loopback"]').destinations["crm"].base_url == url


@pytest.mark.parametrize("host", ["foo..bar", ".acme.io", "acme.io.."])
def test_a_name_with_an_empty_label_is_no_url(host: str) -> None:
    assert f'"https://{host}" is not a URL; write it like' in refusal(f"https://{host}")


def test_a_refusal_names_destination_stage_and_remedy() -> None:
    assert refusal("https://crm.example", stage="prod") == (
        'functions/inbox.toml [destinations.crm] base_url: "https://crm.example" is a name for'
        ' examples and tests, which belongs to no system, and stage "prod" is deployed; give the'
        " address of the stage in [stages.prod.destinations.crm], or keep this one with"
        ' allow = ["placeholder"] in [destinations.crm]'
    )


@pytest.mark.parametrize(
    ("url", "allow"),
    [
        ("http://127.0.0.1:2773", '["loopback"]'),
        ("https://10.0.0.5", '["private"]'),
        ("https://crm.example", '["placeholder"]'),
        ("http://api.crm.io", '["plain-http"]'),
        ("http://crm.internal", '["private", "plain-http"]'),
    ],
)
def test_each_kind_is_allowed_by_its_name_only(url: str, allow: str) -> None:
    assert compiled(url, allow=allow).destinations["crm"].base_url == url
    assert refusal(url).startswith("functions/inbox.toml [destinations.crm] base_url: ")
    for other in ("loopback", "private", "placeholder", "plain-http"):
        if other not in allow:
            refusal(url, allow=f'["{other}"]')


def test_a_private_address_without_encryption_is_two_kinds() -> None:
    refusal("http://crm.internal", allow='["plain-http"]')
    assert 'allow = ["plain-http"]' in refusal("http://crm.internal", allow='["private"]')


def test_the_local_stage_has_any_address() -> None:
    assert compiled("https://crm.example", stage="local")
    more = '\n[destinations.mail]\nbase_url = "http://localhost:1"\n'
    assert compiled("https://crm.example", stage="local", more=more)


def test_a_stage_may_give_its_own_address() -> None:
    own = '\n[stages.prod.destinations.crm]\nbase_url = "https://api.crm.io"\n'
    assert compiled("https://crm.example", stage="prod", more=own)
    refusal("https://crm.example", stage="dev", more=own)


def test_an_unknown_kind_is_refused() -> None:
    text = '[destinations.crm]\nbase_url = "https://crm.example"\nallow = ["http"]\n'
    assert fault(text).startswith("[destinations.crm] allow.0: ")


def test_allowing_is_no_part_of_the_manifest() -> None:
    text = '[destinations.crm]\nbase_url = "https://crm.example"\n'
    plain, allowed = load(text), load(text + 'allow = ["placeholder"]\n')
    assert plain.destinations == allowed.destinations
    assert allowed.allowed == {"destinations.crm": ["placeholder"]}
