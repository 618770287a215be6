"""Sources in inbox.toml whose callers are your own."""

from dataclasses import replace
from importlib import import_module
from typing import Any, get_args

import pytest

from tests.unit.configuration.inbox_files import fault, load
from webhook_inbox import providers
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.caller_source import Algorithm
from webhook_inbox.domain.manifest import Manifest, SourceSpec
from webhook_inbox.providers import generic_jwt
from webhook_inbox.providers.schemes.jwt import keys

pytestmark = pytest.mark.usefixtures("in_the_project")

JWT = """
[sources.agents]
auth = "jwt"
issuer = "https://agents.example"
audience = "https://inbox.example/webhooks/agents"
event_id = { header = "X-Event-Id" }
"""
KEY = '[sources.agents]\nauth = "api-key"\nevent_id = { json = "id" }\n'
BASIC = '[sources.agents]\nauth = "basic"\nevent_id = { body = "sha256" }\n'


def agents(text: str) -> SourceSpec:
    return load(text).sources["agents"]


@pytest.mark.parametrize(
    ("text", "name"),
    [(JWT, "jwt"), (KEY, "api-key"), (BASIC, "basic")],
    ids=["jwt", "key", "basic"],
)
def test_auth_stands_in_the_place_of_the_provider(text: str, name: str) -> None:
    spec = agents(text)

    assert (spec.provider, spec.secret) == (name, "agents")
    assert "auth" not in spec.settings
    assert providers.load(spec).name == name
    assert agents(text.replace("auth =", "provider =")) == spec
    assert agents(text + f'provider = "{name}"\n') == spec


def test_an_hmac_may_be_asked_for_by_auth_too() -> None:
    tables = 'signature = { header = "S" }\nevent_id = { header = "I" }\n'

    by_auth = load(f'[sources.a]\nauth = "hmac"\n{tables}').sources["a"]
    of_a_provider = load(f'[sources.a]\nprovider = "hmac"\n{tables}').sources["a"]
    # Only `auth` says that the senders are callers of one's own, who get a status URL.
    assert (by_auth.callers, of_a_provider.callers) == (True, False)
    assert replace(by_auth, callers=False) == of_a_provider


def test_what_is_common_to_sources_is_common_to_these() -> None:
    spec = agents(JWT + 'secret = "keys"\ntypes = ["task.*"]\nvolatile = ["attempt"]\n')

    assert (spec.secret, spec.types, spec.volatile) == ("keys", ("task.*",), ("attempt",))


def test_settings_survive_being_compiled() -> None:
    sources = load(JWT + 'algorithms = ["ES256"]\n').sources

    again = Manifest.from_data(Manifest(sources=sources).to_data()).sources["agents"]

    assert again == sources["agents"]
    assert providers.load(again).name == "jwt"


def test_a_stage_may_have_an_issuer_of_its_own() -> None:
    text = JWT + '[stages.prod.sources.agents]\nissuer = "https://prod.example"\n'

    assert load(text, stage="prod").sources["agents"].settings["issuer"] == "https://prod.example"


@pytest.mark.parametrize(
    "more",
    [
        'jwks = "https://agents.example/jwks.json"',
        'jwks = "https://agents.example:8443/keys?tenant=1"',
        'jwks = "http://127.0.0.1:8080/jwks"',
        'algorithms = ["HS256"]',
        'algorithms = ["RS256", "HS512"]',
        'agent_claim = "azp"',
        'body_claim = "body_sha256"',
        'header = "X-Agent-Token"\nprefix = ""',
        'tolerance = "10m"\nmax_age = "24h"',
        'event_type = { claim = "typ" }',
        'event_type = { value = "task" }',
    ],
)
def test_every_key_of_a_token_is_known(more: str) -> None:
    assert providers.load(agents(JWT + more + "\n")).name == "jwt"


@pytest.mark.parametrize("value", ['["a", "b"]', '["a"]', '"a"'])
def test_issuer_and_audience_may_be_several(value: str) -> None:
    text = "".join(
        f"{line.partition('=')[0]}= {value}\n" if line[:4] in {"issu", "audi"} else f"{line}\n"
        for line in JWT.splitlines()
    )

    assert providers.load(agents(text)).name == "jwt"


def test_a_keys_header_is_its_own() -> None:
    spec = agents(KEY + 'header = "Authorization"\nprefix = "Bearer "\n')

    assert providers.load(spec).token_headers == {"authorization"}
    assert providers.load(agents(KEY)).token_headers == {"x-api-key"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[sources.a]\nauth = "jvt"', "[sources.a] auth: input should be 'api-key', 'basic', "),
        ("[sources.a]\nauth = 3", "[sources.a] auth: input should be 'api-key', 'basic', "),
        ("[sources.a]", "[sources.a] provider: missing; give the provider, like \"stripe\", or"),
        (JWT + 'provider = "stripe"',
         '[sources.agents] auth: "jwt" replaces provider, but provider is "stripe"; remove either'),
        (JWT.replace('issuer = "https://agents.example"', ""),
         "[sources.agents] issuer: missing; give the issuer of the tokens"),
        (JWT.replace('issuer = "https://agents.example"', 'issuer = ""'),
         "[sources.agents] issuer: must not be empty"),
        (JWT.replace('audience = "https://inbox.example/webhooks/agents"', "audience = []"),
         "[sources.agents] audience: must be text in quotes, or a list of texts"),
        (JWT.replace('event_id = { header = "X-Event-Id" }', ""),
         "[sources.agents] event_id: missing; give one of { header = … }, { json = … }, { claim"),
        (JWT.replace("header = ", "claims = "),
         'event_id.claims: unknown key; did you mean "claim"'),
        (JWT + 'algorithms = ["none"]', "[sources.agents] algorithms.0: input should be 'RS256', "),
        (JWT + 'algorithms = ["rs256"]', "[sources.agents] algorithms.0: input should be 'RS256'"),
        (JWT + "algorithms = []", "[sources.agents] algorithms: "),
        (JWT + 'algorithms = "RS256"', "[sources.agents] algorithms: must be a list; give the"),
        (JWT + 'algorithms = ["HS256"]\njwks = "https://a.example/k"',
         "[sources.agents] algorithms: the key of HS256 is shared, so it is never published; remove"
         " it, or remove jwks"),
        (JWT + 'jwks = "http://a.example/k"', "[sources.agents] jwks: \"http://a.example/k\" is not"
         " encrypted; use https"),
        (JWT + 'jwks = "a.example"', "is not a URL; write it like"),
        (JWT + 'jwks = "https://u:p@a.example/k"', "credentials and fragments are not allowed"),
        (JWT + 'jwks = "https://a.example/k#x"', "credentials and fragments are not allowed"),
        (JWT + 'jwks = "https://a.example/a b"', "is not a URL"),
        (JWT + 'jwks = "https://[a"', "[sources.agents] jwks: "),
        (JWT + 'tolerance = "11m"', '[sources.agents] tolerance: "11m" is too long; give at most'),
        (JWT + 'tolerance = "none"', '[sources.agents] tolerance: "none" is not a duration'),
        (JWT + 'max_age = "25h"', '[sources.agents] max_age: "25h" is too long; give at most "24'),
        (JWT + 'header = "X Token"', "[sources.agents] header: \"X Token\" is not a header's name"),
        (JWT + 'agent_claim = ""', "[sources.agents] agent_claim: "),
        (JWT + 'signature = { header = "S" }', "[sources.agents] signature: unknown key"),
        (JWT.replace("X-Event-Id", "authorization"),
         "[sources.agents] event_id.header: authorization holds the sender's credential, which is"
         " never stored; name another header"),
        (KEY.replace("json", "claim"), "[sources.agents] event_id.claim: unknown key"),
        (KEY + 'jwks = "https://a.example/k"', "[sources.agents] jwks: unknown key"),
        (KEY.replace('{ json = "id" }', '{ header = "x-api-key" }'),
         "[sources.agents] event_id.header: x-api-key holds the sender's credential"),
        (BASIC + 'header = "X-User"', "[sources.agents] header: unknown key; remove it"),
        (BASIC + 'event_type = { header = "Authorization" }',
         "[sources.agents] event_type.header: authorization holds the sender's credential"),
    ],
    ids=range(32),
)  # fmt: skip
def test_a_mistake_is_one_line_with_table_key_and_remedy(text: str, words: str) -> None:
    assert words in fault(text)


# -- the file's shape and the providers agree


def test_every_declared_scheme_has_a_shape_and_every_shape_a_scheme() -> None:
    assert inbox_toml.DECLARED.keys() == providers.DECLARED
    assert providers.MODULES.keys() >= providers.DECLARED


@pytest.mark.parametrize("name", sorted(providers.DECLARED))
def test_a_shape_has_the_keys_that_its_scheme_takes(name: str) -> None:
    shape: Any = inbox_toml.DECLARED[name]
    common = inbox_toml.Source.model_fields
    module = import_module(f"webhook_inbox.providers.{providers.MODULES[name]}")

    own = {field.alias or key for key, field in shape.model_fields.items() if key not in common}
    assert own == module.SETTINGS


def test_the_files_algorithms_are_those_of_the_keys() -> None:
    assert get_args(Algorithm) == (*keys.ASYMMETRIC, *keys.SYMMETRIC)
    default = inbox_toml.DECLARED["jwt"].model_fields["algorithms"].default
    assert tuple(default) == generic_jwt.ALGORITHMS
    assert not {*default} & {*keys.SYMMETRIC}
