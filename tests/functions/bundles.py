"""The deployed bundles: the handlers and sources of `tests/project`, and those beside this file."""

import compileall
import logging
import shutil
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from webhook_inbox.configuration.compile import compile_manifest, write_module
from webhook_inbox.domain.manifest import MODULE, Manifest

HERE = Path(__file__).parent
FUNCTIONS = HERE.parents[1] / "functions"
PROJECT = HERE.parent / "project"
NAMES = ("ingest", "processor", "replay", "reconciler")
LABORATORY = ("lab", "fragile")


def build(
    directory: Path,
    *,
    sink_url: str,
    sources: str = "",
    laboratory: tuple[str, ...] = LABORATORY,
) -> Manifest:
    """Lays handlers, inbox.toml with more sources, and the compiled manifest out in a directory."""
    shutil.copytree(PROJECT / "handlers", directory / "handlers", ignore=_no_bytecode)
    registry = directory / "handlers" / "__init__.py"
    own = ", ".join(f'"{module}"' for module in laboratory)
    named, _, _ = registry.read_text().rpartition(")")
    registry.write_text(f"{named}, {own})\n")
    for module in laboratory:
        shutil.copy(HERE / "handlers" / f"{module}.py", directory / "handlers")
    settings = (PROJECT / "inbox.toml").read_text()
    (directory / "inbox.toml").write_text(settings + sources)
    manifest = compile_manifest(directory, stage="local").with_sink(sink_url)
    write_module(manifest, directory)
    # Each test has a copy, which need not be compiled again.
    compileall.compile_dir(directory, quiet=1)
    return manifest


def start_cold(function: str) -> ModuleType:
    """Imports a function's entry point anew, as a cold start does."""
    forget(function)
    module = import_module(f"{function}.lambda_function")
    for handler in logging.getLogger(function).handlers:
        assert isinstance(handler, logging.StreamHandler)
        handler.setStream(StandardOutput())
    return module


class StandardOutput:
    """The standard output of the moment: pytest has another one for each phase of a test."""

    def write(self, text: str) -> None:
        sys.stdout.write(text)

    def flush(self) -> None:
        sys.stdout.flush()


def forget(function: str) -> None:
    """Undoes an import of a function, and of what its bundle holds."""
    held = {function, MODULE, "handlers"} if function == "processor" else {function, MODULE}
    for name in list(sys.modules):
        if name.partition(".")[0] in held:
            del sys.modules[name]
    # Powertools sets a logger of one name up once, with the standard output of that moment.
    logger = logging.getLogger(function)
    logger.handlers.clear()
    for name in [name for name in vars(logger) if name == "init" or name.startswith("powertools")]:
        delattr(logger, name)


def _no_bytecode(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]
