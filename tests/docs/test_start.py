"""The code of README.md and docs/start.md runs as one module and one test file."""

import importlib.util
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.blocks import Block, blocks
from tests.docs.pages import README, ROOT, START
from webhook_inbox.configuration.check_warnings import warnings
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.configuration.handler_modules import registered_modules
from webhook_inbox.testing import Fake, Inbox

TEST = "def test_"


def code(language: str) -> list[Block]:
    """Returns the blocks of both pages in reading order."""
    return [
        block for page in (README, START) for block in blocks(page) if block.language == language
    ]


def handler_code() -> str:
    return "\n\n".join(block.text for block in code("python") if TEST not in block.text)


@pytest.fixture(scope="module")
def shipments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's functions, with the pages' sources and handlers added as they say."""
    functions = tmp_path_factory.mktemp("start") / "functions"
    shutil.copytree(ROOT / "functions", functions, ignore=shutil.ignore_patterns("__pycache__"))
    with (functions / "inbox.toml").open("a", encoding="utf-8") as file:
        file.writelines("\n" + block.text for block in code("toml"))
    registry = functions / "handlers" / "__init__.py"
    modules = (*registered_modules(functions), "shipments")
    (functions / "handlers" / "shipments.py").write_text(handler_code(), encoding="utf-8")
    registry.write_text(f"MODULES = {modules!r}\n", encoding="utf-8")
    return functions


@pytest.fixture
def module(shipments: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    file = shipments / "handlers" / "shipments.py"
    spec = importlib.util.spec_from_file_location("handlers.shipments", file)
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    monkeypatch.setitem(sys.modules, "handlers.shipments", made)
    return made


def test_the_sources_and_handlers_compile(shipments: Path) -> None:
    manifest = compile_manifest(shipments, stage="local")
    assert [spec.name for spec in manifest.runs_for("shipments", "parcel.delivered")] == [
        "shipments.thank",
        "shipments.record",
    ]
    named = {name for block in code("toml") for name in tomllib.loads(block.text)["sources"]}
    assert named <= manifest.sources.keys()
    # The second source is an example without handlers, of which the page says that it is a warning.
    [warning] = warnings(shipments, manifest)
    assert "[sources.invoices]: no handler takes its events" in warning


@pytest.mark.parametrize(("status", "ends"), [(201, "done"), (503, "failed")])
def test_the_first_handler_does_what_the_readme_says(
    module: ModuleType, status: int, ends: str
) -> None:
    sink = Fake().answers(status)
    inbox = Inbox(module.shipments, destinations={"sink": sink})
    parcel = {"id": "p-1", "customer": "c-9"}

    run = inbox.run("shipments.thank", parcel, event_id="p-1", event_type="parcel.delivered")

    assert run.status == ends
    (request,) = sink.requests
    assert (request.path, request.json) == ("/thanks", {"customer": "c-9"})
    assert request.headers["idempotency-key"] == "thank:shipments.thank:shipments:p-1"


@pytest.mark.parametrize(
    ("parcel", "status"),
    [
        ({"type": "parcel.lost", "customer": "c-9"}, "done"),
        ({"type": "parcel.lost", "test": True}, "skipped"),
        ({"type": "parcel.lost"}, "dead_letter"),
        ({"type": "parcel.booked", "customer": "c-9"}, "failed"),
    ],
)
def test_the_exception_decides(module: ModuleType, parcel: dict[str, object], status: str) -> None:
    inbox = Inbox(module.shipments, destinations={"sink": Fake()})
    assert inbox.run("shipments.record", {"id": "p-1", **parcel}).status == status


def page_tests() -> list[str]:
    return [
        line.removeprefix("def ").partition("(")[0]
        for block in code("python")
        for line in block.text.splitlines()
        if line.startswith(TEST)
    ]


@pytest.mark.parametrize("name", page_tests())
def test_the_pages_tests_pass(module: ModuleType, name: str) -> None:
    namespace: dict[str, Callable[[], None]] = {}
    for block in code("python"):
        if TEST in block.text:
            exec(compile(block.text, block.text[:40], "exec"), namespace)
    namespace[name]()


def test_the_pages_have_tests() -> None:
    assert len(page_tests()) == 3
