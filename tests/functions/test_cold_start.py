"""The modules that a cold start of ingest loads; each costs milliseconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.functions.account import Account
from tests.functions.bundles import FUNCTIONS

LIST_MODULES = """
import json, sys
import {function}.lambda_function
print(json.dumps(sorted(sys.modules)))
"""
# The library's packages that ingest loads.
INGEST_PACKAGES = {"adapters", "domain", "ingest", "ledger", "providers", "queue"}
# How many modules of the library each function loads at most.
MODULES = {"ingest": 45, "processor": 98, "replay": 46, "reconciler": 53}


@pytest.fixture
def loaded(account: Account, bundle: Path) -> "Loaded":
    return Loaded(account, bundle)


class Loaded:
    """Tells what a function loads."""

    def __init__(self, account: Account, bundle: Path) -> None:
        self._environment = {
            **os.environ,
            **account.environment,
            "PYTHONPATH": os.pathsep.join((str(bundle), str(FUNCTIONS))),
        }

    def by(self, function: str) -> set[str]:
        program = LIST_MODULES.format(function=function)
        environment = {**self._environment, "POWERTOOLS_SERVICE_NAME": function}
        ended = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        return set(json.loads(ended.stdout))


def test_ingest_loads_no_library_that_it_does_not_use(loaded: Loaded) -> None:
    modules = loaded.by("ingest")

    for absent in (
        "pydantic",
        "cryptography",
        "jwt",
        "typer",
        "rich",
        "httpx",
        "tomllib",
        "boto3",
        "aws_xray_sdk",
        "asyncio",
        "pkgutil",
        "secrets",
        "aws_lambda_powertools.utilities.batch",
        "aws_lambda_powertools.utilities.idempotency",
        "aws_lambda_powertools.utilities.parameters",
    ):
        assert absent not in modules, absent
    assert {"aws_lambda_powertools", "botocore", "compiled_manifest"} <= modules


def test_ingest_loads_no_handler_and_of_the_library_only_its_own(loaded: Loaded) -> None:
    modules = loaded.by("ingest")

    tops = {name.partition(".")[0] for name in modules}
    assert tops.isdisjoint({"handlers", "processor", "replay", "reconciler", "stacks"})
    library = {name for name in modules if name.startswith("webhook_inbox.")}
    assert {name.split(".")[1] for name in library} <= INGEST_PACKAGES


@pytest.mark.parametrize("function", list(MODULES))
def test_a_function_loads_no_more_of_the_library_than_its_bound(
    loaded: Loaded, function: str
) -> None:
    library = [n for n in loaded.by(function) if n.partition(".")[0] == "webhook_inbox"]

    assert len(library) <= MODULES[function], "\n".join(sorted(library))


def test_ingest_imports_a_provider_when_its_first_delivery_comes(loaded: Loaded) -> None:
    modules = loaded.by("ingest")

    assert not {name for name in modules if name.startswith("webhook_inbox.providers.")}


@pytest.mark.parametrize("function", ["processor", "replay", "reconciler"])
def test_no_function_imports_a_handler_when_it_starts(loaded: Loaded, function: str) -> None:
    """So that a broken one breaks its own runs, and neither a replay nor a reconciling."""
    modules = loaded.by(function)

    assert "handlers" not in {name.partition(".")[0] for name in modules}
    assert "typer" not in modules
    assert not [name for name in modules if name.startswith("webhook_inbox.configuration")]


def test_a_function_without_its_environment_says_which_variable(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    del loaded._environment["TABLE_NAME"]

    with pytest.raises(subprocess.CalledProcessError) as failure:
        loaded.by("ingest")

    assert "the variable TABLE_NAME is not set; deploy the stack again" in failure.value.stderr
