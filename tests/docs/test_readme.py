"""What the README says is run or parsed by the code it speaks of."""

import importlib.util
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from scripts import reference, source_reference
from stacks.queue import DEAD_RETENTION, RETENTION
from tests.docs.blocks import blocks
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.configuration.handler_modules import registered_modules
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.ledger.schema import EVENT_LIFE, ID_LIMIT, RUN_LIFE
from webhook_inbox.providers import MODULES
from webhook_inbox.testing import Fake, Inbox
from webhookctl.__main__ import app

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = blocks(README)
COMMANDS = [
    pytest.param(line, id=f"line {block.line}: {line[:60]}")
    for block in BLOCKS
    if block.language == "sh"
    for line in block.text.splitlines()
]
# Other people's programs, which the README tells how to point here.
FOREIGN = {"stripe", "gh", "cloudflared", "ngrok"}
CDK = "aws-cdk@2.1148.1"


def test_the_readme_has_commands() -> None:
    assert len(COMMANDS) > 15


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_given(command: str) -> None:
    words = shlex.split(command.partition(" < ")[0])
    check = {
        "make": _check_make,
        ".venv/bin/webhookctl": _check_webhookctl,
        "npx": _check_cdk,
        "curl": _check_addresses,
        "echo": lambda words: None,
    }
    program = words[0]
    if program in FOREIGN:
        _check_addresses(words)
    else:
        check[program](words)


def _check_make(words: list[str]) -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert words[1] in targets
    for word in words[2:]:
        name, _, arguments = word.partition("=")
        assert name == "ARGS"
        _parse(["dev", *shlex.split(arguments)])


def _check_webhookctl(words: list[str]) -> None:
    _parse(words[1:])
    for word in words[1:]:
        if word.startswith("events/"):
            assert (ROOT / word).is_file()
    if "--source" in words:
        named = inbox_toml.load(ROOT / "functions" / "inbox.toml", stage="local").sources
        assert words[words.index("--source") + 1] in {*named, "shipments"}


def _check_cdk(words: list[str]) -> None:
    assert words[1:3] == ["--yes", CDK]
    assert words[3] in {"bootstrap", "deploy", "destroy"}


def _check_addresses(words: list[str]) -> None:
    for port in re.findall(r"127\.0\.0\.1:(\d+)", " ".join(words)):
        assert port in {"8787", "8788"}


def _parse(words: list[str]) -> None:
    """Parses a command line without running it; wrong options raise."""
    command: Any = typer.main.get_command(app)
    words = [word for word in words if not re.fullmatch(r"/tmp/.*", word)] + _stand_in(words)
    context = command.make_context("webhookctl", list(words), resilient_parsing=False)
    while hasattr(command, "commands"):
        name, command, words = command.resolve_command(
            context, [*context._protected_args, *context.args]
        )
        context = command.make_context(name, list(words), parent=context)


def _stand_in(words: list[str]) -> list[str]:
    return [str(README)] if any(word.startswith("/tmp/") for word in words) else []


@pytest.fixture(scope="module")
def shipments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's functions, with the README's source and handler added as it says."""
    functions = tmp_path_factory.mktemp("readme") / "functions"
    shutil.copytree(ROOT / "functions", functions, ignore=shutil.ignore_patterns("__pycache__"))
    source = next(block.text for block in BLOCKS if block.language == "toml")
    handler = next(block.text for block in BLOCKS if block.language == "python")
    with (functions / "inbox.toml").open("a", encoding="utf-8") as file:
        file.write("\n" + source)
    registry = functions / "handlers" / "__init__.py"
    modules = (*registered_modules(functions), "shipments")
    (functions / "handlers" / "shipments.py").write_text(handler, encoding="utf-8")
    registry.write_text(f"MODULES = {modules!r}\n", encoding="utf-8")
    return functions


@pytest.fixture
def thank(shipments: Path) -> ModuleType:
    file = shipments / "handlers" / "shipments.py"
    spec = importlib.util.spec_from_file_location("shipments", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_first_source_and_handler_compile(shipments: Path) -> None:
    manifest = compile_manifest(shipments, stage="local")
    assert [spec.name for spec in manifest.runs_for("shipments", "parcel.delivered")] == [
        "shipments.thank"
    ]


@pytest.mark.parametrize(("status", "ends"), [(201, "done"), (503, "failed")])
def test_the_first_handler_does_what_is_said(thank: ModuleType, status: int, ends: str) -> None:
    sink = Fake().answers(status)
    inbox = Inbox(thank.shipments, destinations={"sink": sink})
    parcel = {"id": "p-1", "customer": "c-9"}

    run = inbox.run("shipments.thank", parcel, event_id="p-1", event_type="parcel.delivered")

    assert run.status == ends
    (request,) = sink.requests
    assert (request.path, request.json) == ("/thanks", {"customer": "c-9"})
    assert request.headers["idempotency-key"] == "thank:shipments.thank:shipments:p-1"


def test_every_provider_is_named() -> None:
    assert all(f"`{name}`" in TEXT for name in MODULES)


def test_the_limits_are_the_code_s() -> None:
    defaults = HandlerSpec("n", "m", "f", "s", ("*",))
    for claim in (
        f"kept for {EVENT_LIFE.days} days, their runs for {RUN_LIFE.days}",
        f"keeps messages for {RETENTION} days",
        f"queue for {DEAD_RETENTION}.",
        f"over {ID_LIMIT} bytes",
        f"up to {defaults.timeout:.0f} s by default",
        f"{defaults.max_attempts} attempts over up to 9.8 hours",
    ):
        assert claim in " ".join(TEXT.split())


def test_the_reference_is_fresh() -> None:
    assert reference.FILE.read_text(encoding="utf-8") == reference.render()


def test_the_reference_tells_every_key_and_field_of_a_source() -> None:
    assert source_reference.KEYS.keys() == source_reference.known_keys()
    assert source_reference.FIELDS.keys() == source_reference.known_fields()


def test_the_references_examples_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "inbox.toml"
    path.write_text(source_reference.EXAMPLES, encoding="utf-8")

    sources = inbox_toml.load(path, stage="dev").sources

    assert source_reference.EXAMPLES in reference.FILE.read_text(encoding="utf-8")
    assert {spec.provider for spec in sources.values()} == source_reference.DECLARED


def test_every_path_it_names_is_there() -> None:
    named = re.findall(r"`((?:functions|stacks|events|docs|tests|webhookctl)/[\w./-]*)`", TEXT)
    assert named
    to_be_written = "functions/handlers/shipments.py"
    assert all((ROOT / path).exists() for path in named if path != to_be_written)
