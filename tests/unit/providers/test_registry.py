import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest

from webhook_inbox import providers
from webhook_inbox.errors import ConfigurationError
from webhook_inbox.manifest import SourceSpec

DIRECTORY = Path(providers.__file__).parent
MODULE_NAMES = sorted(path.stem for path in DIRECTORY.glob("*.py") if path.stem != "__init__")


def spec(provider: str, **settings: object) -> SourceSpec:
    return SourceSpec("shop", provider, "shop", settings=settings)


def test_a_name_that_is_registered_twice_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match='"stripe" is registered twice'):
        providers.registry((("stripe", "stripe"), ("stripe", "other")))


def test_every_module_is_registered_once_and_every_entry_has_its_module() -> None:
    assert sorted(providers.MODULES.values()) == MODULE_NAMES


def test_an_unknown_provider_is_an_error_that_names_the_source_and_the_choices() -> None:
    with pytest.raises(ConfigurationError) as raised:
        providers.load(spec("strype"))

    assert str(raised.value) == (
        '[sources.shop] provider: "strype" is not known; choose one of '
        "cycles, github, hmac, shopify, slack, standard-webhooks, stripe"
    )


def test_a_key_that_the_provider_does_not_have_is_an_error_that_names_those_it_has() -> None:
    with pytest.raises(ConfigurationError) as raised:
        providers.load(spec("stripe", tolerance="5m"))

    assert str(raised.value) == (
        "[sources.shop] tolerance: unknown key; the keys of this source are "
        "provider, secret, types, volatile"
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

    allowed = ("schemes", "recipe", "errors", "model", "instants", "durations")
    assert all(module.split(".")[1] in allowed for module in ours)
    assert modules - ours <= {"collections.abc", "datetime", "typing"}


@pytest.mark.parametrize("name", MODULE_NAMES)
def test_every_module_says_how_it_is_signed(name: str) -> None:
    module = import_module(f"webhook_inbox.providers.{name}")

    assert module.__doc__
    assert callable(module.recipe)
