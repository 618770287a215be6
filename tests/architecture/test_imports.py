"""The import contracts in pyproject.toml are complete and hold."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from importlinter.cli import lint_imports

import webhook_inbox

ROOT = Path(__file__).parents[2]
PYPROJECT = ROOT / "pyproject.toml"
LIBRARY = ROOT / "functions" / "webhook_inbox"
# Modules that no use case may import, because they slow the cold start of ingest.
HEAVY = {
    *("boto3", "botocore", "pydantic", "aws_lambda_powertools", "httpx"),
    *("tomllib", "asyncio", "handlers"),
}
USE_CASES = [
    "ingest.ingest",
    "processor.processor",
    "reconciler.reconciler",
    "replay.replay",
    "adapters.memory",
    "handlers.router",
    "handlers.context",
]


def contracts() -> list[dict[str, Any]]:
    settings = tomllib.loads(PYPROJECT.read_text())["tool"]["importlinter"]
    found: list[dict[str, Any]] = settings["contracts"]
    return found


def test_every_contract_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    code = lint_imports(config_filename=str(PYPROJECT), no_cache=True)
    assert code == 0, capsys.readouterr().out


def test_only_the_processor_may_import_handlers() -> None:
    (rule,) = [c for c in contracts() if c.get("forbidden_modules") == ["handlers"]]
    packages = {
        path.name for path in (ROOT / "functions").iterdir() if (path / "__init__.py").exists()
    }
    functions = packages - {"handlers", "webhook_inbox", "processor"}
    assert functions <= set(rule["source_modules"])


def test_the_types_of_every_cdk_service_that_we_use_are_checked() -> None:
    overrides = tomllib.loads(PYPROJECT.read_text())["tool"]["mypy"]["overrides"]
    (followed,) = [each for each in overrides if each.get("follow_imports") == "normal"]
    used = {
        f"aws_cdk.{alias.name}"
        for top in ("webhook_inbox_cdk", "stacks")
        for path in (ROOT / top).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "aws_cdk"
        for alias in node.names
        if alias.name.startswith("aws_")
    }
    assert len(used) > 10
    assert used <= {*followed["module"]}


def test_the_cdk_contract_covers_every_shipped_package() -> None:
    (rule,) = [c for c in contracts() if "aws_cdk" in c.get("forbidden_modules", [])]
    packages = {
        path.name for path in (ROOT / "functions").iterdir() if (path / "__init__.py").exists()
    }
    assert set(rule["source_modules"]) == packages


def test_the_simulation_imports_no_adapter_function_or_handler() -> None:
    (rule,) = [c for c in contracts() if c.get("source_modules") == ["simulation"]]
    packages = {
        path.name for path in (ROOT / "functions").iterdir() if (path / "__init__.py").exists()
    }
    beside = (packages - {"webhook_inbox"}) | {"stacks", "webhook_inbox_cdk", "webhookctl"}
    world = {"boto3", "botocore", "aws_lambda_powertools"}
    adapters = {
        f"webhook_inbox.adapters.{path.stem}"
        for path in (LIBRARY / "adapters").iterdir()
        if not path.name.startswith("_") and path.name != "memory"
    }
    adapters.add("webhook_inbox.destinations.client")
    assert beside | world | adapters == set(rule["forbidden_modules"])
    assert not rule.get("allow_indirect_imports")


def test_no_shipped_package_imports_the_simulation() -> None:
    layers = next(c["layers"] for c in contracts() if c["type"] == "layers")
    assert layers[0] == "stacks | webhookctl | simulation"  # the top layer
    build = tomllib.loads(PYPROJECT.read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert set(build["packages"]) == {"functions/webhook_inbox", "webhook_inbox_cdk", "webhookctl"}


@pytest.mark.parametrize("module", USE_CASES)
def test_a_use_case_imports_no_heavy_module(module: str) -> None:
    """Only the replay request and the configuration use pydantic."""
    heavy = HEAVY - {"pydantic"} if module == "replay.replay" else HEAVY
    script = (
        f"import sys, webhook_inbox.{module}\n"
        f"print(*sorted({heavy!r} & {{name.partition('.')[0] for name in sys.modules}}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == ""


def test_the_http_client_is_imported_on_first_use() -> None:
    script = (
        "import sys, webhook_inbox.processor.processor\n"
        "from webhook_inbox.destinations.client import factory\n"
        "factory.HttpClients(clock=None)\n"
        "print('httpx' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "False"


def test_every_public_name_resolves() -> None:
    assert set(webhook_inbox.__all__) <= set(dir(webhook_inbox))
    for name in webhook_inbox.__all__:
        assert getattr(webhook_inbox, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Unknown'"):
        webhook_inbox.Unknown  # type: ignore[attr-defined]  # noqa: B018 - the access is the test


def test_importing_the_library_alone_loads_none_of_its_modules() -> None:
    script = (
        "import sys, webhook_inbox\n"
        "print(*(name for name in sys.modules if name.startswith('webhook_inbox.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == ""


def test_the_public_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse((LIBRARY / "__init__.py").read_text())
    shown = next(node for node in tree.body if isinstance(node, ast.If))
    names = {
        alias.name
        for node in shown.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert names == set(webhook_inbox.__all__)
