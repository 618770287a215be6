"""The contents of inbox.toml, and the errors for invalid ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.configuration.inbox_files import fault, load
from webhook_inbox import providers
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.inbox_toml import AlarmSpec, Configuration, ThrottleSpec
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import DestinationSpec, Manifest, SourceSpec

OURS = Path(__file__).parents[2] / "project" / "inbox.toml"
ACME = """
[sources.acme]
provider = "hmac"
signature = { header = "X-Acme-Signature" }
event_id = { header = "X-Acme-Event-Id" }
"""


pytestmark = pytest.mark.usefixtures("in_the_project")


def test_a_source_needs_its_provider_alone() -> None:
    sources = load('[sources.shop]\nprovider = "stripe"\n').sources

    assert sources == {"shop": SourceSpec("shop", "stripe", "shop")}


@pytest.mark.parametrize(
    ("written", "location"),
    [
        ('{ json = "account.id" }', ("json", "account.id")),
        ('{ header = "X-Tenant" }', ("header", "x-tenant")),
        ('{ form = "account" }', ("form", "account")),
        ('{ query = "tenant" }', ("query", "tenant")),
        ("{ path = true }", ("path", "")),
    ],
)
def test_a_tenant_has_one_location(written: str, location: tuple[str, str]) -> None:
    source = load(f'[sources.shop]\nprovider = "stripe"\ntenant = {written}\n').sources["shop"]

    assert source.tenant == location
    data = json.loads(json.dumps(Manifest("test", "1", {"shop": source}, {}).to_data()))
    assert Manifest.from_data(data).sources == {"shop": source}


@pytest.mark.parametrize(
    "written", ["{}", '{ path = "x" }', "{ path = false }", '{ json = "a", query = "b" }', '"a"']
)
def test_a_tenant_without_one_location_is_refused(written: str) -> None:
    told = fault(f'[sources.shop]\nprovider = "stripe"\ntenant = {written}\n')

    assert "tenant" in told


def test_a_source_with_tenants_in_the_path_has_no_fixed_url() -> None:
    calls = '[sources.calls]\nprovider = "twilio"\ntenant = { path = true }\n'
    told = fault(calls + 'url = "https://in.example/webhooks/calls"\n')

    assert told.startswith("[sources.calls] tenant: url fixes the path")
    assert "url" not in load(calls).sources["calls"].settings


def test_what_a_source_says_reaches_the_manifest() -> None:
    sources = load(
        '[sources.shop]\nprovider = "stripe"\nsecret = "stripe-eu"\n'
        'types = ["invoice.*"]\nvolatile = ["attempt"]\n'
    ).sources

    assert sources["shop"] == SourceSpec(
        "shop", "stripe", "stripe-eu", ("invoice.*",), ("attempt",)
    )


def test_the_tables_of_a_declared_source_are_its_settings() -> None:
    spec = load(ACME).sources["acme"]

    assert spec.settings == {
        "signature": {"header": "X-Acme-Signature"},
        "event_id": {"header": "X-Acme-Event-Id"},
    }
    assert providers.load(spec).name == "hmac"


def test_a_declared_source_may_name_its_handshake() -> None:
    spec = load(ACME + 'handshake = "okta"\n').sources["acme"]

    assert providers.load(spec).greet is not None


def test_settings_survive_being_compiled() -> None:
    sources = load(ACME).sources

    again = Manifest.from_data(Manifest(sources=sources).to_data()).sources["acme"]

    assert again == sources["acme"]
    assert providers.load(again).name == "hmac"


@pytest.mark.parametrize(
    "tables",
    [
        'timestamp = { header = "T" }\nsignature.signs = "{timestamp}.{body}"',
        'timestamp = { header = "T", tolerance = "24h" }\nsignature.signs = "{timestamp}{body}"',
        'signature.algorithm = "sha1"\nsignature.encoding = "base64"\nsignature.key = "hex"',
        'event_type = { json = "type" }',
        'event_type = { header = "X-Type" }',
        'event_type = { value = "order" }',
    ],
)
def test_every_key_of_the_declared_scheme_is_known(tables: str) -> None:
    text = ACME.replace('signature = { header = "X-Acme-Signature" }', f"{tables}\n")
    if "signature." in tables:
        text = text.replace("signature.", 'signature.header = "S"\nsignature.', 1)
    else:
        text += 'signature = { header = "S" }\n'

    assert providers.load(load(text).sources["acme"]).name == "hmac"


@pytest.mark.parametrize("event_id", ['json = "data.id"', 'body = "sha256"', 'header = "X-Id"'])
def test_an_id_stands_in_one_of_three_places(event_id: str) -> None:
    text = ACME.replace('header = "X-Acme-Event-Id"', event_id)

    assert "acme" in load(text).sources


def test_secrets_are_those_of_sources_and_handlers_each_once() -> None:
    settings = load(
        'handler_secrets = ["openai", "crm"]\n'
        '[sources.a]\nprovider = "github"\n[sources.b]\nprovider = "github"\nsecret = "a"\n'
    )

    assert settings.secrets == ("a", "crm", "openai")


def test_an_address_may_receive_both_severities() -> None:
    """Each alarm goes to the topic of its severity, so it receives none twice."""
    address = "mailto:a@a.io"
    settings = load(f'[alarms]\nnotify = ["{address}"]\npage = ["{address}"]\n')
    assert settings.alarms == AlarmSpec((address,), (address,), stated=True)


def test_destinations_and_alarms_are_read() -> None:
    settings = load(
        '[destinations.crm]\nbase_url = "https://crm.example/v1/"\n'
        '[alarms]\nnotify = ["mailto:team@example.com"]\npage = ["https://pager.example/x"]\n'
    )

    assert settings.destinations == {"crm": DestinationSpec("crm", "https://crm.example/v1")}
    assert settings.alarms == AlarmSpec(
        ("mailto:team@example.com",), ("https://pager.example/x",), stated=True
    )


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8788", "http://localhost:1", "http://[::1]:80/x", "https://a.example"]
)
def test_only_this_machine_is_spoken_to_in_the_clear(url: str) -> None:
    assert load(f'[destinations.d]\nbase_url = "{url}"\n').destinations["d"].base_url == url


def test_the_sink_stands_for_a_system_in_the_local_stage_only() -> None:
    local = '[stages.local.destinations.crm]\nbase_url = "sink/crm/"\n'
    text = '[destinations.crm]\nbase_url = "https://crm.example"\n' + local
    assert load(text).destinations["crm"].base_url == "https://crm.example"
    assert load(text, stage="local").destinations["crm"].base_url == "sink/crm"
    with pytest.raises(ConfigurationError, match=r"destinations\.crm\.base_url: .* the stage prod"):
        load('[destinations.crm]\nbase_url = "sink"\n', stage="prod")
    # A stage that the file names is judged whichever is loaded.
    with pytest.raises(ConfigurationError, match="which the stage prod does not have"):
        load(text + local.replace("local", "prod"), stage="local")


SHOP = '[sources.shop]\nprovider = "stripe"\n'


def test_a_source_without_a_throttle_has_the_default_one() -> None:
    settings = load(SHOP)

    assert settings.throttle == ThrottleSpec(500.0, 1000)
    assert settings.throttles == {"shop": ThrottleSpec(500.0, 1000)}


def test_a_source_and_a_stage_have_throttles_of_their_own() -> None:
    text = (
        "throttle = { rate = 100, burst = 200 }\n"
        + SHOP
        + 'throttle = { rate = 2.5, burst = 5 }\n[sources.other]\nprovider = "github"\n'
        "[stages.prod]\nthrottle.burst = 300\n[stages.prod.sources.shop]\nthrottle.rate = 4\n"
    )

    assert load(text).throttles == {"shop": ThrottleSpec(2.5, 5), "other": ThrottleSpec(100, 200)}
    prod = load(text, stage="prod")
    assert prod.throttle == prod.throttles["other"] == ThrottleSpec(100, 300)
    assert prod.throttles["shop"] == ThrottleSpec(4, 5)


def test_a_throttle_is_no_setting_of_the_provider() -> None:
    text = SHOP + "throttle = { rate = 1, burst = 1 }\n"

    assert load(text).sources == {"shop": SourceSpec("shop", "stripe", "shop")}


@pytest.mark.parametrize(
    ("throttle", "words"),
    [
        ("5", "throttle: must be a table"),
        ("{ rate = 5 }", "throttle.burst: missing; give requests at once"),
        ("{ burst = 5 }", "throttle.rate: missing; give requests per second"),
        ("{ rate = 0, burst = 5 }", "throttle.rate: input should be greater than 0; give requests"),
        ("{ rate = -1, burst = 5 }", "throttle.rate: input should be greater than 0"),
        ("{ rate = 10001, burst = 5 }", "throttle.rate: input should be less than or equal to"),
        ("{ rate = inf, burst = 5 }", "throttle.rate: input should be a finite number"),
        ("{ rate = nan, burst = 5 }", "throttle.rate: input should be a finite number"),
        ('{ rate = "5/s", burst = 5 }', "throttle.rate: input should be a valid number"),
        ("{ rate = 5, burst = 0 }", "throttle.burst: input should be greater than or equal to 1"),
        ("{ rate = 5, burst = 5001 }", "throttle.burst: input should be less than or equal to"),
        ("{ rate = 5, burst = 1.5 }", "throttle.burst: input should be a valid integer"),
        (
            "{ rate = 5, burst = 5, bursts = 5 }",
            'throttle.bursts: unknown key; did you mean "burst"?',
        ),
    ],
)
def test_a_throttle_that_api_gateway_does_not_take_is_refused(throttle: str, words: str) -> None:
    assert words in fault(f"{SHOP}throttle = {throttle}\n")
    assert words in fault(f"throttle = {throttle}\n{SHOP}")


def test_an_empty_file_is_an_inbox_without_sources() -> None:
    assert load("") == Configuration({}, {}, (), AlarmSpec())


STAGED = """
handler_secrets = ["openai"]
[sources.shop]
provider = "stripe"
types = ["invoice.*"]
[destinations.crm]
base_url = "https://crm.example"
[alarms]
notify = ["mailto:team@example.com"]
[stages.prod]
handler_secrets = []
[stages.prod.sources.shop]
types = ["charge.*"]
[stages.prod.sources.extra]
provider = "github"
[stages.prod.alarms]
page = ["https://pager.example/x"]
[stages.local.destinations.crm]
base_url = "http://127.0.0.1:1"
"""


def test_a_stage_changes_only_what_it_names() -> None:
    prod, local, dev = (load(STAGED, stage=stage) for stage in ("prod", "local", "dev"))

    assert prod.sources["shop"] == SourceSpec("shop", "stripe", "shop", ("charge.*",))
    assert set(prod.sources) == {"shop", "extra"}
    assert prod.destinations["crm"].base_url == "https://crm.example"
    assert prod.alarms == AlarmSpec(
        ("mailto:team@example.com",), ("https://pager.example/x",), stated=True
    )
    assert prod.secrets == ("extra", "shop")
    assert local.destinations["crm"].base_url == "http://127.0.0.1:1"
    assert local.sources == dev.sources
    assert dev.secrets == ("openai", "shop")


def test_a_stage_may_complete_what_the_file_leaves_open() -> None:
    text = '[destinations.crm]\n[stages.prod.destinations.crm]\nbase_url = "https://crm.example"\n'

    assert load(text, stage="prod").destinations["crm"].base_url == "https://crm.example"
    assert fault(text, stage="dev").startswith("[destinations.crm] base_url: missing; give its URL")


@pytest.mark.parametrize("stage", ["prod", "dev"])
def test_a_mistake_of_one_stage_is_found_in_every_other(stage: str) -> None:
    text = '[sources.shop]\nprovider = "stripe"\n[stages.prod.sources.shop]\nprovider = "strip"\n'

    assert fault(text, stage=stage).startswith(
        '(with [stages.prod]) [sources.shop] provider: "strip" is not known; did you mean "stripe"?'
    )


def test_a_mistake_that_no_stage_made_is_not_blamed_on_one() -> None:
    text = '[sources.shop]\nprovider = "strip"\n[stages.dev.destinations.d]\nbase_url = "https://d.example"\n'

    assert fault(text).startswith("[sources.shop] provider: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[sources.acme", "not TOML: "),
        ("\na = = 1", "not TOML: Invalid value (at line 2, column 5); correct it"),
        ("[a]\n[a]\n", "not TOML: "),
        ("[source.acme]", 'source: unknown key; did you mean "sources"?'),
        ("x = 1",
         "x: unknown key; remove it (the keys here are alarms, allow_imports, approvers,"),
        ("sources = 1", "[sources] must be a table; give tables [sources.NAME]"),
        ("[sources]\nacme = 1", "[sources.acme] must be a table; give tables"),
        ("[sources.acme]", '[sources.acme] provider: missing; give the provider, like "stripe"'),
        ("[sources.acme]\nprovider = 1", "[sources.acme] provider: must be text in quotes"),
        ('[sources.acme]\nprovider = "nobody"',
         '[sources.acme] provider: "nobody" is not known; choose one of '
         + ", ".join(sorted(providers.MODULES))),
        ('[sources.Acme]\nprovider = "github"', '[sources.Acme] "Acme" is not a name; use lower-'),
        ('[sources."a b"]\nprovider = "github"', '"a b" is not a name'),
        ('[sources.-a]\nprovider = "github"', '"-a" is not a name'),
        (f'[sources.{"a" * 64}]\nprovider = "github"', "is not a name"),
        ('[sources."\u00e9"]\nprovider = "github"', '"\u00e9" is not a name'),
        ('[sources.a]\nprovider = "github"\nsecret = "A/B"', '[sources.a] secret: "A/B" is not a'),
        ('[sources.a]\nprovider = "github"\ntypes = "push"', "[sources.a] types: must be a list"),
        ('[sources.a]\nprovider = "github"\ntypes = []', "[sources.a] types: "),
        ('[sources.a]\nprovider = "github"\ntypes = [""]', "[sources.a] types.0: "),
        ('[sources.a]\nprovider = "github"\nvolatile = [1]', "[sources.a] volatile.0: "),
        (
            '[sources.a]\nprovider = "github"\nidentical_body = "keep"',
            "[sources.a] identical_body: ",
        ),
        (
            '[sources.a]\nprovider = "stripe"\nidentical_body = "run"',
            "[sources.a] identical_body: the provider signs an id or a time",
        ),
        ('[sources.a]\nprovider = "github"\ntype = ["push"]', "[sources.a] type: unknown key; "),
        ("[destinations.d]", "[destinations.d] base_url: missing; give its URL"),
        ('[alarms]\nwho = []',
         "[alarms] who: unknown key; remove it (the keys here are notify, page)"),
        ('[destinations.d]\nbase_url = "https://d.example"\nrates = "10/s"',
         '[destinations.d] rates: unknown key; did you mean "rate"?'),
        ('[destinations.D]\nbase_url = "https://d.example"', '"D" is not a name'),
        ('[destinations.d]\nbase_url = "d.example"', "[destinations.d] base_url: "),
        ('[destinations.d]\nbase_url = "http://d.example"', "is not encrypted; use https"),
        ('[destinations.d]\nbase_url = "http://127.0.0.1.evil.example"', "is not encrypted"),
        ('[destinations.d]\nbase_url = "ftp://d.example"', "is not encrypted"),
        ('[destinations.d]\nbase_url = "https://u:p@d.example"', "credentials, a query and"),
        ('[destinations.d]\nbase_url = "https://d.example?a=1"', "credentials, a query and"),
        ('[destinations.d]\nbase_url = "https://d.example:x"', "[destinations.d] base_url: "),
        ('[destinations.d]\nbase_url = "https://[d"', "[destinations.d] base_url: "),
        ('[alarms]\nnotify = ["team@example.com"]', '[alarms] notify.0: "team@example.com" is no'),
        ('[alarms]\npage = ["http://pager.example"]', "[alarms] page.0: "),
        ('[alarms]\nnotify = ["mailto:a@a.io", "mailto:a@a.io"]',
         '[alarms] "mailto:a@a.io" is listed twice in notify; remove one'),
        ('[alarms]\npage = ["https://a.io", "mailto:a@a.io", "https://a.io"]',
         '[alarms] "https://a.io" is listed twice in page; remove one'),
        ('[alarms]\npages = []', '[alarms] pages: unknown key; did you mean "page"?'),
        ('handler_secrets = "openai"', "handler_secrets: must be a list; give names"),
        ('handler_secrets = ["Open AI"]', 'handler_secrets.0: "Open AI" is not a name'),
        ("stages = 1", "[stages] must be a table; give"),
        ("[stages.Prod]", '[stages.Prod] "Prod" is not a name'),
        ("[stages.prod.source.a]", '[stages.prod] source: unknown key; did you mean "sources"?'),
        ("[stages.prod.stages.dev]", "[stages.prod] stages: unknown key"),
    ],
    ids=range(46),
)  # fmt: skip
def test_a_mistake_is_one_line_with_table_key_and_remedy(text: str, words: str) -> None:
    assert words in fault(text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('{ header = "X-Acme-Signature" }', "{}",
         "signature.header: missing; give the name of the header with the signature"),
        ('signature = { header = "X-Acme-Signature" }\n', "",
         "signature: missing; give the signature's place and the signed content"),
        ('event_id = { header = "X-Acme-Event-Id" }\n', "",
         "event_id: missing; give one of { header = … }, { json = … }, { body = … }"),
        ('{ header = "X-Acme-Event-Id" }', '{ header = "A", json = "b" }',
         "event_id: give exactly one of header, json, body"),
        ('{ header = "X-Acme-Event-Id" }', "{}",
         "event_id: give exactly one of header, json, body"),
        ('{ header = "X-Acme-Event-Id" }', '{ jsn = "a" }',
         'event_id.jsn: unknown key; did you mean "json"?'),
        ('{ header = "X-Acme-Event-Id" }', '{ body = "md5" }', "event_id.body: input should be"),
        ('{ header = "X-Acme-Event-Id" }', '{ json = "" }', "event_id.json: "),
        ('"X-Acme-Signature"', '"X Acme"', 'signature.header: "X Acme" is not a header\'s name'),
        ('"X-Acme-Signature"', "7", "signature.header: must be text in quotes"),
        ('"X-Acme-Signature"', '"S", algorithm = "md5"', "signature.algorithm: input should"),
        ('"X-Acme-Signature"', '"S", encoding = "b64"', "signature.encoding: input should"),
        ('"X-Acme-Signature"', '"S", key = "raw"', "signature.key: input should be 'text'"),
        ('"X-Acme-Signature"', '"S", sign = "{body}"',
         'signature.sign: unknown key; did you mean "signs"?'),
        ('"X-Acme-Signature"', '"S", signs = "{timestamp}.{body}"',
         "timestamp: missing; name the header of {timestamp}"),
        ('"X-Acme-Signature"', '"S", signs = "{uri}{body}"',
         "signature.signs: {uri} is not a field; choose from {body}, {timestamp}, {id}, {method}"),
        ("event_id =", 'timestamp = { header = "T" }\nevent_id =',
         "timestamp: not signed, so it proves nothing"),
        ("event_id =", 'timestamp = { header = "T", tolerance = "soon" }\nevent_id =',
         'timestamp.tolerance: "soon" is not a duration; write it like "30s", "5m" or "1h"'),
        ("event_id =", 'timestamp = { header = "T", tolerance = 300 }\nevent_id =',
         "timestamp.tolerance: must be text in quotes"),
        ("event_id =", 'timestamp = { header = "T", tolerance = "25h" }\nevent_id =',
         'timestamp.tolerance: "25h" is too long; give at most "24h"'),
        ("event_id =", 'event_type = { value = "" }\nevent_id =', "event_type.value: "),
        ("event_id =", 'eventtype = { value = "a" }\nevent_id =',
         'eventtype: unknown key; did you mean "event_type"?'),
        ("event_id =", "events = 1979-05-27\nevent_id =", "events: unknown key"),
    ],
    ids=range(23),
)  # fmt: skip
def test_a_declared_source_is_told_what_it_lacks(old: str, new: str, words: str) -> None:
    assert old in ACME

    message = fault(ACME.replace(old, new, 1))

    assert message.startswith("[sources.acme] ")
    assert words in message


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("signature = {}", "signature.header: missing; give the name of the header with"),
        ('signature = { header = "S", json = "s" }',
         "signature: give exactly one of header, json, form, query"),
        ("signature = { header = [] }",
         "signature.header: must be text in quotes, or a list of texts; give the name of"),
        ('signature = { header = ["S", "X Acme"] }',
         'signature.header: "X Acme" is not a header\'s name; write it as the provider does'),
        ('signature = { header = "S", signs = [""] }', "signature.signs: must not be empty; give"),
        ('signature = { header = "S", entries = "v1" }',
         'signature.entries: unknown key; did you mean "entry"?'),
        ('signature = { header = "S", partial = "yes" }', "signature.partial: input should be a"),
        ('signature = { header = "S", requires = { "a b" = "1" } }',
         "signature.requires.a b: \"a b\" is not a header's name"),
        ('timestamp = {}', "timestamp.header: missing; give the name of the header with"),
        ('timestamp = { entry = "t", header = "T" }', "timestamp: give exactly one of header, "),
        ('timestamp = { header = "T", format = "days" }', "timestamp.format: input should be"),
        ('timestamp = { header = "T", ahead = "0s" }', 'timestamp.ahead: "0s" is not a duration'),
        ('timestamp = { header = "T", tolerance = "none" }', "timestamp: not signed"),
        ("batch = {}", "batch.json: missing; give the path to the list"),
        ("digest = {}", "digest: give exactly one of header, query"),
        ('url = "https://a.example?b=c"', "url: "),
        ('url = ""', "url: "),
    ],
)  # fmt: skip
def test_a_declared_source_is_told_what_does_not_fit(table: str, words: str) -> None:
    key = table.partition(" ")[0]
    lines = [line for line in ACME.splitlines() if not line.startswith(f"{key} ")]

    message = fault("\n".join([*lines, table]))

    assert message.startswith("[sources.acme] ")
    assert words in message


def test_several_mistakes_are_counted() -> None:
    text = ACME.replace('"X-Acme-Signature"', '"S", key = "raw", encoding = "b64"')

    assert fault(text).endswith("(and 1 more)")


def test_a_missing_file_is_an_error_with_its_path() -> None:
    with pytest.raises(ConfigurationError, match=r"^functions/absent\.toml: .*; put the config"):
        inbox_toml.load(Path("functions/absent.toml"), stage="dev")


def test_a_file_that_is_not_utf8_is_an_error_with_the_place() -> None:
    Path("functions/inbox.toml").write_bytes(b'a = "\xff"')

    with pytest.raises(ConfigurationError, match=r"inbox\.toml: not UTF-8 at byte 5; save it"):
        inbox_toml.load(Path("functions/inbox.toml"), stage="dev")


def test_a_file_elsewhere_is_shown_by_its_whole_path(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("elsewhere") / "inbox.toml"
    path.write_text("x = 1")

    with pytest.raises(ConfigurationError, match=f"^{path} x: unknown key"):
        inbox_toml.load(path, stage="dev")


@pytest.mark.parametrize("stage", ["dev", "local", "prod"])
def test_our_own_file_is_valid_in_every_stage(stage: str) -> None:
    settings = inbox_toml.load(OURS, stage=stage)

    assert {"hmac", "stripe"} <= {spec.provider for spec in settings.sources.values()}
    assert settings.destinations["sink"].base_url == (
        "sink" if stage == "local" else "https://sink.example"
    )


def test_providers_need_neither_pydantic_nor_a_toml_parser() -> None:
    """Ingest's cold start has no time for either."""
    program = (
        "import sys\n"
        "from importlib import import_module\n"
        "from webhook_inbox import providers\n"
        "[import_module(f'webhook_inbox.providers.{m}') for m in providers.MODULES.values()]\n"
        "print({'pydantic', 'tomllib', 'difflib', 'webhook_inbox.configuration.inbox_toml'}"
        " & set(sys.modules))"
    )

    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    assert run.stdout.strip() == b"set()"
