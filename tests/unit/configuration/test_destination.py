"""What [destinations.NAME] may say, and how it is told what is wrong with it."""

from typing import Any

import pytest

from tests.unit.configuration.inbox_files import fault, load
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec, Manifest

pytestmark = pytest.mark.usefixtures("in_the_project")

PLAIN = '[destinations.crm]\nbase_url = "https://crm.example"\n'
WHOLE = """
[destinations.crm]
base_url = "https://crm.example/v1"
auth = { bearer = "crm" }
idempotency = { header = "X-Request-Key", format = "uuid" }
key_lifetime = "48h"
timeout = "20s"
rate = "600/m"
on_limit = "error"
breaker = { failures = 3, recovery = "2m", drain = "30/m" }
sign = "crm-signing"
responses = { "409" = "permanent", "5xx" = "transient", "404" = "ok" }
retry_after = "milliseconds"
"""


def crm(more: str) -> DestinationSpec:
    return load(PLAIN + more + "\n").destinations["crm"]


def test_an_address_is_enough() -> None:
    spec = crm("")

    assert spec == DestinationSpec("crm", "https://crm.example")
    assert (spec.key_header, spec.key_lifetime) == ("Idempotency-Key", 86400.0)
    assert (spec.timeout, spec.rate, spec.breaker) == (10.0, None, BreakerSpec(5, 60.0, 5.0))


def test_all_that_a_table_says_reaches_the_manifest() -> None:
    assert load(WHOLE).destinations["crm"] == DestinationSpec(
        "crm",
        "https://crm.example/v1",
        auth={"bearer": "crm"},
        key_header="X-Request-Key",
        key_format="uuid",
        key_lifetime=172_800.0,
        timeout=20.0,
        rate=10.0,
        on_limit="error",
        breaker=BreakerSpec(3, 120.0, 0.5),
        sign="crm-signing",
        responses={"409": "permanent", "5xx": "transient", "404": "ok"},
        retry_after="milliseconds",
    )


def test_a_destination_survives_being_compiled() -> None:
    destinations = load(WHOLE).destinations

    again = Manifest.from_data(Manifest(destinations=destinations).to_data())

    assert again.destinations == destinations


@pytest.mark.parametrize(
    ("auth", "held"),
    [
        ('{ bearer = "api" }', {"bearer": "api"}),
        ('{ basic = "api" }', {"basic": "api"}),
        ('{ header = "X-Api-Key", secret = "api" }', {"header": "X-Api-Key", "secret": "api"}),
        (
            '{ header = "Authorization", secret = "api", prefix = "Token token=" }',
            {"header": "Authorization", "secret": "api", "prefix": "Token token="},
        ),
        ('{ query = "api_key", secret = "api" }', {"query": "api_key", "secret": "api"}),
        ("false", {}),
        ('"none"', {}),
    ],
)
def test_calls_are_authenticated_in_one_way(auth: str, held: dict[str, str]) -> None:
    settings = load(PLAIN + f"auth = {auth}\n")

    assert settings.destinations["crm"].auth == held
    assert settings.secrets == (("api",) if held else ())


def test_the_secrets_of_calls_are_made_like_all_others() -> None:
    assert load(WHOLE + '[sources.crm-in]\nprovider = "github"\n').secrets == (
        "crm",
        "crm-in",
        "crm-signing",
    )


def test_two_destinations_may_share_a_secret_with_a_handler() -> None:
    text = 'handler_secrets = ["api"]\n'
    for name in ("a", "b"):
        text += (
            f'[destinations.{name}]\nbase_url = "https://{name}.example"\n'
            'auth = { bearer = "api" }\n'
        )

    assert load(text).secrets == ("api",)


@pytest.mark.parametrize("key", ['auth = { bearer = "shop" }', 'sign = "shop"'])
def test_what_deliveries_are_verified_with_is_no_secret_of_a_destination(key: str) -> None:
    """The processor may not read it: calls would fail on AWS and nowhere else."""
    text = f'[sources.in]\nprovider = "github"\nsecret = "shop"\n{PLAIN}{key}\n'

    assert fault(text) == (
        '[destinations.crm] secret "shop" is what [sources.in] verifies with;'
        ' give it a name of its own, like "crm-api"'
    )


@pytest.mark.parametrize("nothing", ["false", '"none"'])
def test_a_destination_may_know_no_keys(nothing: str) -> None:
    spec = crm(f"idempotency = {nothing}")

    assert (spec.key_header, spec.key_field, spec.key_lifetime) == ("", "", 0.0)


def test_a_key_may_be_a_field_of_the_body() -> None:
    spec = crm('idempotency = { field = "dedup_key" }')

    assert (spec.key_header, spec.key_field, spec.key_lifetime) == ("", "dedup_key", 86400.0)


@pytest.mark.parametrize("nothing", ["false", '"none"'])
def test_a_circuit_may_never_open(nothing: str) -> None:
    assert crm(f"breaker = {nothing}").breaker is None


def test_a_breaker_names_what_differs() -> None:
    assert crm("breaker = { failures = 2 }").breaker == BreakerSpec(2, 60.0, 5.0)


@pytest.mark.parametrize(
    ("rate", "a_second"),
    [("1/s", 1.0), ("600/m", 10.0), ("3600/h", 1.0), ("10000/s", 10_000.0), ("30/m", 0.5)],
)
def test_a_rate_counts_calls_a_second_minute_or_hour(rate: str, a_second: float) -> None:
    assert crm(f'rate = "{rate}"').rate == a_second


def test_a_stage_changes_one_key_of_a_table() -> None:
    text = WHOLE + "[stages.local.destinations.crm]\nauth = false\nbreaker.failures = 9\n"

    local = load(text, stage="local")

    assert local.destinations["crm"].auth == {}
    assert local.destinations["crm"].breaker == BreakerSpec(9, 120.0, 0.5)
    assert local.secrets == ("crm-signing",)
    assert load(text, stage="prod").destinations["crm"].auth == {"bearer": "crm"}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ('auth = "crm"', 'auth: must be a table; give one of { bearer = "…" }'),
        ("auth = true", "auth: must be a table; give one of"),
        ("auth = {}", "auth: give exactly one of bearer, basic, header, query"),
        ('auth = { bearer = "a", basic = "b" }', "auth: give exactly one of bearer, basic,"),
        ('auth = { beare = "a" }', 'auth.beare: unknown key; did you mean "bearer"?'),
        ('auth = { bearer = "My Key" }', 'auth.bearer: "My Key" is not a name; use lower-case'),
        ('auth = { header = "X-Key" }', "auth: `header` and `query` need the secret's name; add"),
        ('auth = { query = "key" }', "need the secret's name; add secret ="),
        ('auth = { bearer = "a", secret = "b" }', "auth: `secret` goes with `header` or `query`"),
        ('auth = { bearer = "a", prefix = "b" }', "auth: `prefix` goes with `header`; leave it"),
        ('auth = { header = "X Key", secret = "a" }', '"X Key" is not a header\'s name'),
        ('auth = { header = "Host", secret = "a" }', 'auth.header: "Host" is reserved'),
        ('idempotency = "X-Key"', "idempotency: must be a table; give { header ="),
        ("idempotency = true", "idempotency: must be a table; give { header ="),
        ("idempotency = {}", "idempotency: give exactly one of header, field"),
        ('idempotency = { header = "X", field = "y" }', "give exactly one of header, field"),
        ('idempotency = { header = "X", format = "hex" }', "idempotency.format: "),
        ('idempotency = { field = "" }', "idempotency.field: "),
        ('idempotency = { header = "Traceparent" }', '"Traceparent" is reserved; name'),
        (
            'idempotency = { header = "authorization" }\nauth = { bearer = "a" }',
            "[destinations.crm] the secret and the key cannot both be in Authorization; name",
        ),
        (
            'idempotency = { header = "X-KEY" }\nauth = { header = "X-Key", secret = "a" }',
            "the secret and the key cannot both be in X-Key; name another",
        ),
        ('key_lifetime = "1d"', 'key_lifetime: "1d" is not a duration; write it like "30s"'),
        ("key_lifetime = 24", 'key_lifetime: "24" is not a duration; write it like'),
        ('key_lifetime = "9000h"', 'key_lifetime: "9000h" is too long; give at most "8760h"'),
        ('timeout = "0s"', 'timeout: "0s" is not a duration'),
        ('timeout = "2m"', 'timeout: "2m" is too long; give at most "50s"'),
        ('rate = "10"', 'rate: "10" is not a rate; write it like "10/s", "600/m"'),
        ("rate = 10", 'rate: "10" is not a rate; write it like'),
        ('rate = "0/s"', 'rate: "0/s" is not a rate'),
        ('rate = "10/d"', 'rate: "10/d" is not a rate'),
        ('rate = "10001/s"', 'rate: "10001/s" is too much; give at most "10000/s", or leave it'),
        ('on_limit = "wait"', "on_limit: "),
        ("breaker = true", "breaker: must be a table; give { failures = …, recovery"),
        ("breaker = { failures = 0 }", "breaker.failures: "),
        ("breaker = { failures = 2.5 }", "breaker.failures: "),
        ('breaker = { recovery = "25h" }', 'breaker.recovery: "25h" is too long; give at most'),
        ('breaker = { drain = "fast" }', 'breaker.drain: "fast" is not a rate'),
        ("breaker = { fails = 3 }", 'breaker.fails: unknown key; did you mean "failures"?'),
        ('sign = "Crm"', 'sign: "Crm" is not a name'),
        ('responses = { "4x" = "ok" }', 'responses.4x: "4x" is not a status; write it like "409"'),
        ('responses = { "100" = "ok" }', '"100" is not a status'),
        ('responses = { "404" = "fine" }', "responses.404: "),
        ('retry_after = "ms"', "retry_after: "),
    ],
    ids=range(43),
)
def test_a_mistake_is_one_line_with_table_key_and_remedy(key: str, words: str) -> None:
    told = fault(PLAIN + key + "\n")

    assert told.startswith("[destinations.crm] ")
    assert words in told
    assert ";" in told


@pytest.mark.parametrize("value", ["1", "[]", '"x"'])
@pytest.mark.parametrize(
    "key", ["auth", "idempotency", "breaker", "timeout", "rate", "sign", "responses"]
)
def test_no_value_of_another_type_is_more_than_a_mistake(key: str, value: Any) -> None:
    """Whatever stands there, it is read, or it is a line that names the table."""
    if (key, value) != ("sign", '"x"'):
        assert fault(PLAIN + f"{key} = {value}\n").startswith("[destinations.crm] ")
