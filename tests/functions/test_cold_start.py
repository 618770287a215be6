"""The modules that a cold start of ingest loads; each costs milliseconds."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.functions.account import Account
from tests.functions.bundles import FUNCTIONS
from tests.waiting import DEADLINE
from webhook_inbox.domain.manifest import Manifest

# The modules, and a mark if the collector is on afterwards.
COLLECTS = "(garbage is collected)"
LIST_MODULES = f"""
import gc, json, sys
import {{function}}
print(json.dumps([*sorted(sys.modules), *["{COLLECTS}"] * gc.isenabled()]))
"""
# The library's packages that ingest loads.
INGEST_PACKAGES = {"adapters", "domain", "ingest", "ledger", "providers", "queue"}
# How many modules of the library each function loads at most.
MODULES = {"ingest": 54, "processor": 111, "replay": 49, "reconciler": 57}


Load = Callable[..., set[str]]


@pytest.fixture(scope="module")
def load(built: tuple[Path, Manifest]) -> Load:
    """Returns the modules that a function loads; each function is started once."""
    queue = "https://sqs.us-east-1.amazonaws.com/123456789012/inbox-default"
    account = Account({}, table_name="inbox", bucket="bodies", queue=queue, dead_letters=queue)
    path = os.pathsep.join((str(built[0]), str(FUNCTIONS)))

    @cache
    def modules(function: str, *, module: str = "lambda_function", without: str = "") -> set[str]:
        own = {"PYTHONPATH": path, "POWERTOOLS_SERVICE_NAME": function}
        environment = {**os.environ, **account.environment, **own}
        environment.pop(without, None)
        ended = subprocess.run(
            [sys.executable, "-c", LIST_MODULES.format(function=f"{function}.{module}")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=True,
        )
        return set(json.loads(ended.stdout))

    return modules


def test_ingest_loads_no_library_that_it_does_not_use(load: Load) -> None:
    modules = load("ingest")

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
        "aws_lambda_powertools",
        "botocore",
        "email",
        "http.client",
        "urllib3",
    ):
        assert absent not in modules, absent
    assert "compiled_manifest" in modules


@pytest.mark.parametrize("module", ["approvals", "completions", "event_status"])
def test_what_ingest_loads_later_needs_no_library(load: Load, module: str) -> None:
    """Ingest's bundle has only those of providers: the first link would find others missing."""
    more = load("ingest", module=module) - load("ingest")

    tops = {name.partition(".")[0] for name in more} - set(sys.stdlib_module_names)
    assert tops == {"ingest", "webhook_inbox"}


def test_ingest_loads_no_handler_and_of_the_library_only_its_own(load: Load) -> None:
    modules = load("ingest")

    tops = {name.partition(".")[0] for name in modules}
    assert tops.isdisjoint({"handlers", "processor", "replay", "reconciler", "stacks"})
    # Loaded with their first request, which is no delivery.
    others = {"approval_page", "approvals", "completions", "event_status"}
    assert modules.isdisjoint({f"ingest.{name}" for name in others})
    library = {name for name in modules if name.startswith("webhook_inbox.")}
    assert {name.split(".")[1] for name in library} <= INGEST_PACKAGES


@pytest.mark.parametrize("function", list(MODULES))
def test_a_function_loads_no_more_of_the_library_than_its_bound(load: Load, function: str) -> None:
    library = [n for n in load(function) if n.partition(".")[0] == "webhook_inbox"]

    assert len(library) <= MODULES[function], "\n".join(sorted(library))


def test_ingest_imports_a_provider_when_its_first_delivery_comes(load: Load) -> None:
    modules = load("ingest")

    assert not {name for name in modules if name.startswith("webhook_inbox.providers.")}


@pytest.mark.parametrize("function", ["processor", "replay", "reconciler"])
def test_no_function_imports_a_handler_when_it_starts(load: Load, function: str) -> None:
    """So that a broken one breaks its own runs, and neither a replay nor a reconciling."""
    modules = load(function)

    assert "handlers" not in {name.partition(".")[0] for name in modules}
    assert "boto3" not in modules
    assert "aws_lambda_powertools.utilities.batch" not in modules
    assert "typer" not in modules
    assert not [name for name in modules if name.startswith("webhook_inbox.configuration")]


def test_a_function_without_its_environment_says_which_variable(load: Load) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failure:
        load("ingest", without="TABLE_NAME")

    assert "the variable TABLE_NAME is not set; deploy the stack again" in failure.value.stderr


def test_ingest_collects_garbage_once_it_is_loaded(load: Load) -> None:
    """The collector is off during the imports only."""
    assert COLLECTS in load("ingest")
