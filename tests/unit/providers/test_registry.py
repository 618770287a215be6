import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.unit.providers.cases import (
    PUBLISHED,
    module_of,
    provider_of,
    samples_of,
    vectors_of,
)
from webhook_inbox import providers
from webhook_inbox.configuration.document import Source
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import SourceSpec

DIRECTORY = Path(providers.__file__).parent
MODULE_NAMES = sorted(path.stem for path in DIRECTORY.glob("*.py") if path.stem != "__init__")


def spec(provider_name: str, **settings: object) -> SourceSpec:
    return SourceSpec("shop", provider_name, "shop", settings=settings)


@pytest.mark.parametrize("name", MODULE_NAMES)
def test_every_module_is_a_provider_with_one_name(name: str) -> None:
    assert list(providers.MODULES.values()).count(name) == 1


@pytest.mark.parametrize("provider_name", PUBLISHED)
def test_every_provider_has_a_valid_vector_and_a_sample(provider_name: str) -> None:
    module = module_of(provider_name)
    valid = [vector for vector in vectors_of(provider_name) if vector["expect"] == "valid"]

    assert valid, f"providers/{module}.py: has no valid vector in tests/vectors/{module}.json"
    assert samples_of(provider_name), (
        f"providers/{module}.py: has no sample in events/ingest/{provider_name}"
    )


@pytest.mark.parametrize("provider_name", PUBLISHED)
def test_a_provider_is_called_as_it_is_registered_and_says_what_a_person_has_to_know(
    provider_name: str,
) -> None:
    provider = provider_of(provider_name)

    assert provider.name == provider_name
    assert provider.facts is not None, f"providers/{module_of(provider)}.py: has no facts"


def test_an_unknown_provider_is_an_error_that_names_the_source_and_the_choices() -> None:
    with pytest.raises(ConfigurationError) as raised:
        providers.load(spec("nobody"))

    choices = ", ".join(sorted(providers.MODULES))
    assert str(raised.value) == (
        f'[sources.shop] provider: "nobody" is not known; choose one of {choices}'
    )


@pytest.mark.parametrize(("given", "meant"), [("strype", "stripe"), ("git-hub", "github")])
def test_a_misspelled_provider_is_guessed(given: str, meant: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        providers.load(spec(given))

    assert str(raised.value) == (
        f'[sources.shop] provider: "{given}" is not known; did you mean "{meant}"?'
    )


def test_a_misspelled_key_is_guessed() -> None:
    with pytest.raises(ConfigurationError) as raised:
        providers.load(spec("stripe", tpyes=["*"]))

    assert str(raised.value) == '[sources.shop] tpyes: unknown key; did you mean "types"?'


def test_every_key_of_a_source_is_one_of_the_registry() -> None:
    assert Source.model_fields.keys() == providers.KEYS


def test_a_key_that_the_provider_does_not_have_is_an_error_that_names_those_it_has() -> None:
    with pytest.raises(ConfigurationError) as raised:
        providers.load(spec("stripe", tolerance="5m"))

    assert str(raised.value) == (
        "[sources.shop] tolerance: unknown key; the keys of this source are "
        "allow, auth, identical_body, personal, provider, retention, secret, tenant, throttle,"
        " types, volatile"
    )


def test_a_sources_volatile_fields_are_added_to_the_providers() -> None:
    source = SourceSpec("s", "stripe", "s", volatile=("attempt", "pending_webhooks"))

    assert providers.load(source).volatile == ("pending_webhooks", "attempt")


def test_only_the_modules_of_loaded_providers_are_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in MODULE_NAMES:
        monkeypatch.delitem(sys.modules, f"webhook_inbox.providers.{name}", raising=False)

    providers.load(spec("cycles"))

    imported = {name for name in MODULE_NAMES if f"webhook_inbox.providers.{name}" in sys.modules}
    assert imported == {"cycles"}


@pytest.mark.parametrize("name", MODULE_NAMES)
def test_a_provider_imports_no_other_provider_and_nothing_heavy(name: str) -> None:
    tree = ast.parse((DIRECTORY / f"{name}.py").read_text())
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {module for module in modules if module.startswith("webhook_inbox")}

    allowed = ("webhook_inbox.providers.schemes", "webhook_inbox.domain")
    assert all(module.startswith(allowed) for module in ours)
    tops = {module.split(".")[0] for module in modules - ours}
    assert tops <= sys.stdlib_module_names | {"cryptography"}


@pytest.mark.parametrize("name", MODULE_NAMES)
def test_every_module_says_how_it_is_signed(name: str) -> None:
    module = import_module(f"webhook_inbox.providers.{name}")

    assert module.__doc__
    assert hasattr(module, "PROVIDER") != callable(getattr(module, "provider", None))
