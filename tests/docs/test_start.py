"""The code of README.md and docs/start.md, in a project that `webhookctl init` writes."""

import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from webhook_inbox_cdk.contents import processor_requirements

from tests.docs.blocks import Block, blocks
from tests.docs.pages import README, ROOT, START
from webhook_inbox.configuration.check_warnings import warnings
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.testing import Fake, Inbox
from webhookctl.__main__ import main

TEST = "def test_"


def code(language: str) -> list[Block]:
    """Returns the blocks of both pages in reading order."""
    return [
        block for page in (README, START) for block in blocks(page) if block.language == language
    ]


def handler_code() -> str:
    return "\n\n".join(block.text for block in code("python") if TEST not in block.text)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new project, with the pages' sources, handlers and tests added as they say."""
    top = tmp_path_factory.mktemp("start") / "inbox"
    with pytest.raises(SystemExit) as ended:
        main(["init", str(top)])
    assert not ended.value.code
    functions = top / "functions"
    with (functions / "inbox.toml").open("a", encoding="utf-8") as file:
        file.writelines("\n" + block.text for block in code("toml"))
    registry = functions / "handlers" / "__init__.py"
    registry.write_text('MODULES = ("orders", "shipments")\n', encoding="utf-8")
    (functions / "handlers" / "shipments.py").write_text(handler_code(), encoding="utf-8")
    tests = [block.text for block in code("python") if TEST in block.text]
    (top / "tests" / "test_shipments.py").write_text("\n\n".join(tests), encoding="utf-8")
    return top


@pytest.fixture(scope="module")
def shipments(project: Path) -> Path:
    """The project's functions."""
    return project / "functions"


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
    files = processor_requirements(shipments)
    assert compile_manifest(shipments, stage="dev", requirements=files).handlers
    manifest = compile_manifest(shipments, stage="local", requirements=files)
    assert [spec.name for spec in manifest.runs_for("shipments", "parcel.delivered")] == [
        "shipments.thank",
        "shipments.record",
    ]
    named = {
        name for block in code("toml") for name in tomllib.loads(block.text).get("sources", {})
    }
    assert named <= manifest.sources.keys()
    # The second source is an example without handlers, of which the page says that it is a warning.
    [warning] = warnings(shipments, manifest)
    assert "[sources.invoices]: no handler takes its events" in warning


@pytest.mark.parametrize(("status", "ends"), [(201, "done"), (503, "failed")])
def test_the_first_handler_does_what_the_readme_says(
    module: ModuleType, status: int, ends: str
) -> None:
    sink = Fake().answers(status)
    inbox = Inbox(module.shipments, destinations={"mailer": sink})
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
    inbox = Inbox(module.shipments, destinations={"mailer": Fake()})
    assert inbox.run("shipments.record", {"id": "p-1", **parcel}).status == status


def test_the_pages_tests_pass_in_the_project(project: Path) -> None:
    paths = (project / "functions", ROOT / "functions", ROOT)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
    # Three of the pages, and the one that the project begins with.
    assert "4 passed" in done.stdout
