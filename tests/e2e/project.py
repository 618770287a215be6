"""The deployed project: the handlers and sources of `tests/project`, and those beside this file."""

import shutil
from pathlib import Path

from webhook_inbox.configuration.handler_modules import registered_modules

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
PROJECT = HERE.parent / "project"
LABORATORY = HERE / "functions"


def write_functions(directory: Path) -> Path:
    """Writes `handlers/` and `inbox.toml`, the examples and the test handlers combined."""
    handlers = directory / "handlers"
    for part in (PROJECT, LABORATORY):
        shutil.copytree(
            part / "handlers",
            handlers,
            ignore=shutil.ignore_patterns("__pycache__"),
            dirs_exist_ok=True,
        )
    modules = registered_modules(PROJECT) + registered_modules(LABORATORY)
    (handlers / "__init__.py").write_text(f"MODULES = {modules!r}\n")
    sources = [(part / "inbox.toml").read_text() for part in (PROJECT, LABORATORY)]
    (directory / "inbox.toml").write_text("\n".join(sources))
    return directory


def lay_beside(functions: Path, name: str) -> Path:
    """Lays a copy of a function beside the handlers, where a build takes it from.

    Returns its entry point.
    """
    target = functions / name
    shutil.copytree(
        REPOSITORY / "functions" / name,
        target,
        ignore=shutil.ignore_patterns("__pycache__"),
        dirs_exist_ok=True,
    )
    return target / "lambda_function.py"


def shift_reconciler(functions: Path) -> None:
    """Gives the reconciler a clock that can be set."""
    entry = lay_beside(functions, "reconciler")
    shutil.copyfile(HERE / "shifted_clock.py", entry.parent / "shifted_clock.py")
    text = entry.read_text()
    shifted = text.replace(
        "clock: Final = SystemClock()",
        "from reconciler.shifted_clock import ShiftedClock\n\nclock: Final = ShiftedClock()",
    )
    assert shifted != text, "the reconciler takes its clock from elsewhere now"
    entry.write_text(shifted)
