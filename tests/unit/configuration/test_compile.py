"""The manifest: made of the configuration and the handlers, the same for the same."""

from datetime import date
from pathlib import Path

import pytest

from webhook_inbox.configuration.compile import collect_handlers, compile_manifest, write_module
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import (
    DEFAULT_LANE,
    SPLIT,
    SPLITTER,
    HandlerSpec,
    Manifest,
    SourceSpec,
)

INBOX = """
[sources.stripe]
provider = "stripe"
types = ["invoice.*"]

[sources.github]
provider = "github"
secret = "gh"

[destinations.crm]
base_url = "https://crm.example"
allow = ["placeholder"]

[stages.prod.destinations.crm]
base_url = "https://crm.prod.example"
"""
HANDLERS = """
from webhook_inbox import Router

{source} = Router("{source}")


@{source}.on("*"{more})
def {function}(event, ctx):
    return 1
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A `functions/` with two sources and two handlers."""
    root = tmp_path / "functions"
    (root / "handlers").mkdir(parents=True)
    (root / "inbox.toml").write_text(INBOX)
    (root / "handlers" / "__init__.py").write_text('MODULES = ("stripe_pay", "github_issues")\n')
    write(root, "stripe_pay", source="stripe", function="pay")
    write(root, "github_issues", source="github", function="triage")
    return root


def write(root: Path, module: str, *, source: str, function: str, more: str = "") -> None:
    text = HANDLERS.format(source=source, function=function, more=more)
    (root / "handlers" / f"{module}.py").write_text(text)


def test_manifest_holds_configuration_and_declarations(root: Path) -> None:
    manifest = compile_manifest(root, stage="dev")
    assert manifest.stage == "dev"
    assert list(manifest.sources) == ["stripe", "github"]
    assert manifest.sources["stripe"].types == ("invoice.*",)
    assert manifest.destinations["crm"].base_url == "https://crm.example"
    assert manifest.secrets == ("gh", "stripe")
    assert list(manifest.handlers) == ["stripe.pay", "github.triage"]
    assert manifest.handlers["github.triage"].module == "github_issues"


def test_what_splits_batches_is_there_where_a_provider_sends_them(root: Path) -> None:
    assert SPLIT not in compile_manifest(root, stage="dev").handlers
    settings = root / "inbox.toml"
    settings.write_text(settings.read_text() + '[sources.mail]\nprovider = "sendgrid"\n')
    manifest = compile_manifest(root, stage="dev")
    assert list(manifest.handlers) == ["stripe.pay", "github.triage", SPLIT]
    assert manifest.handlers[SPLIT] == SPLITTER
    assert manifest.lane_of(SPLIT) == DEFAULT_LANE
    assert Manifest.from_data(manifest.to_data()) == manifest


def test_what_splits_batches_wants_no_events(root: Path) -> None:
    (root / "inbox.toml").write_text(INBOX + '[sources.mail]\nprovider = "sendgrid"\n')
    manifest = compile_manifest(root, stage="dev")
    for source in ("mail", "stripe", ""):
        assert SPLIT not in [spec.name for spec in manifest.runs_for(source, "batch")]


def test_stages_have_their_own_values(root: Path) -> None:
    dev, prod = (compile_manifest(root, stage=stage) for stage in ("dev", "prod"))
    assert prod.destinations["crm"].base_url == "https://crm.prod.example"
    assert dev.version != prod.version


def test_the_same_files_make_the_same_manifest(root: Path) -> None:
    assert compile_manifest(root, stage="dev") == compile_manifest(root, stage="dev")


def test_version_changes_with_a_declaration_and_not_with_code(root: Path) -> None:
    first = compile_manifest(root, stage="dev").version
    code = root / "handlers" / "stripe_pay.py"
    code.write_text(code.read_text().replace("return 1", "return 2"))
    assert compile_manifest(root, stage="dev").version == first
    write(root, "stripe_pay", source="stripe", function="pay", more=", max_attempts=9")
    assert compile_manifest(root, stage="dev").version != first


def test_version_is_short_and_names_the_order_too(root: Path) -> None:
    first = compile_manifest(root, stage="dev").version
    (root / "handlers" / "__init__.py").write_text('MODULES = ("github_issues", "stripe_pay")\n')
    second = compile_manifest(root, stage="dev").version
    assert len(first) == len(second) == 12
    assert first != second


def test_a_relative_root_will_do(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    assert compile_manifest(Path("functions"), stage="dev").handlers


def test_a_type_that_the_source_does_not_store_is_refused(root: Path) -> None:
    code = root / "handlers" / "stripe_pay.py"
    code.write_text(code.read_text().replace('"*"', '"invoice.paid", "customer.*"'))
    with pytest.raises(ConfigurationError) as refusal:
        compile_manifest(root, stage="dev")
    assert str(refusal.value) == (
        "functions/handlers/stripe_pay.py: handler 'stripe.pay' is for 'customer.*', and the source"
        " stores only invoice.*: add the type to `types` of [sources.stripe], or remove it from the"
        " handler"
    )


def test_a_handler_of_an_unknown_source_is_refused(root: Path) -> None:
    write(root, "github_issues", source="gitlab", function="triage")
    with pytest.raises(ConfigurationError) as refusal:
        compile_manifest(root, stage="dev")
    assert str(refusal.value) == (
        "functions/handlers/github_issues.py: handler 'gitlab.triage' is for the source 'gitlab',"
        ' which inbox.toml does not have (it has: stripe, github); did you mean "github"?'
        " Otherwise add [sources.gitlab]"
    )


def declares(root: Path, *destinations: str) -> None:
    """Lets a handler say which destinations it calls."""
    more = f", destinations={destinations!r}"
    write(root, "github_issues", source="github", function="triage", more=more)


def test_a_handler_names_the_destinations_that_it_calls(root: Path) -> None:
    declares(root, "crm")
    manifest = compile_manifest(root, stage="dev")
    assert manifest.handlers["github.triage"].destinations == ("crm",)


def test_a_handler_that_calls_an_unknown_destination_is_refused(root: Path) -> None:
    declares(root, "crm", "mail")
    with pytest.raises(ConfigurationError) as refusal:
        compile_manifest(root, stage="dev")
    assert str(refusal.value) == (
        "functions/handlers/github_issues.py: handler 'github.triage' calls the destination"
        " 'mail', which inbox.toml does not have (it has: crm); add [destinations.mail]"
    )


def test_one_name_in_two_modules_is_refused(root: Path) -> None:
    write(root, "github_issues", source="stripe", function="pay")
    with pytest.raises(ConfigurationError) as refusal:
        collect_handlers(root)
    assert str(refusal.value) == (
        "handler 'stripe.pay' is declared in handlers/stripe_pay.py and in"
        " handlers/github_issues.py; rename one"
    )


def test_a_broken_module_and_a_broken_configuration_are_refused(root: Path) -> None:
    (root / "handlers" / "github_issues.py").write_text("1 / 0\n")
    with pytest.raises(ConfigurationError, match=r"github_issues\.py:1: cannot be imported: Zero"):
        compile_manifest(root, stage="dev")
    (root / "inbox.toml").write_text("[sources\n")
    with pytest.raises(ConfigurationError, match=r"inbox\.toml"):
        compile_manifest(root, stage="dev")


def test_time_to_import_is_bounded(root: Path) -> None:
    (root / "handlers" / "github_issues.py").write_text("import time\ntime.sleep(60)\n")
    with pytest.raises(ConfigurationError, match=r"still importing after 0\.5 s"):
        compile_manifest(root, stage="dev", import_timeout=0.5)


def loaded(path: Path) -> Manifest:
    namespace: dict[str, dict[str, object]] = {}
    exec(path.read_text(), namespace)
    return Manifest.from_data(namespace["MANIFEST"])


def test_the_written_module_is_the_manifest(root: Path, tmp_path: Path) -> None:
    manifest = compile_manifest(root, stage="dev")
    path = write_module(manifest, tmp_path)
    assert path == tmp_path / "compiled_manifest.py"
    assert loaded(path) == manifest


def test_the_written_module_keeps_the_order_of_handlers(tmp_path: Path) -> None:
    specs = [
        HandlerSpec(name=name, module="m", function="f", source="s", types=("*",))
        for name in ("z", "a", "m")
    ]
    path = write_module(Manifest(handlers={spec.name: spec for spec in specs}), tmp_path)
    assert list(loaded(path).handlers) == ["z", "a", "m"]


def test_writing_twice_writes_the_same(root: Path, tmp_path: Path) -> None:
    manifest = compile_manifest(root, stage="dev")
    first = write_module(manifest, tmp_path).read_bytes()
    assert write_module(compile_manifest(root, stage="dev"), tmp_path).read_bytes() == first


@pytest.mark.parametrize(
    "text", ["plain", 'qu"ote', "back\\slash", "line\nline", "\u00fcml\u00e4ut \U0001f680"]
)
def test_any_text_survives_being_written(tmp_path: Path, text: str) -> None:
    source = SourceSpec(name="s", provider="hmac", secret="s", settings={"x": {"y": [text, 1.5]}})
    path = write_module(Manifest(sources={"s": source}), tmp_path)
    assert loaded(path).sources["s"].settings == {"x": {"y": [text, 1.5]}}


def test_a_value_without_a_literal_is_refused(tmp_path: Path) -> None:
    source = SourceSpec(name="s", provider="hmac", secret="s", settings={"since": date(2026, 1, 1)})
    with pytest.raises(ConfigurationError, match="quote dates and times"):
        write_module(Manifest(sources={"s": source}), tmp_path)
