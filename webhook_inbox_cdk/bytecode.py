"""Compiles the modules of a bundle for Lambda's Python, so that it need not compile them.

Lambda cannot write bytecode beside the code, and compiles each module again in every cold start.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from webhook_inbox_cdk import tree

from webhook_inbox.domain.errors import ConfigurationError

# Lambda unpacks bundles there; tracebacks name it.
TASK: Final = "/var/task"
# A release without debug and free-threading options, as Lambda's: others have other bytecode.
_PROBE: Final = """
import importlib.util, sys
if sys.implementation.name == "cpython" and not sys.abiflags:
    if sys.version_info.releaselevel == "final":
        print("%d.%d" % sys.version_info[:2], sys.executable)
        print(importlib.util.MAGIC_NUMBER.hex(), sys.version)
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python of this machine; `build` differs between those that may compile differently."""

    executable: str
    build: str


@cache
def interpreter(python: str) -> Interpreter | None:
    """Returns this machine's Python of a version such as "3.13"; None where it has none.

    It is this process's own, or `python3.13` on the PATH.
    """
    # pyenv's commands refuse a version that is not the chosen one.
    environment = _environment() | {"PYENV_VERSION": python}
    for candidate in filter(None, (sys.executable, shutil.which(f"python{python}"))):
        command = [candidate, "-I", "-c", _PROBE]
        done = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, check=False
        )
        first, _, build = done.stdout.strip().partition("\n")
        version, _, executable = first.partition(" ")
        if version == python:
            return Interpreter(executable, build)
    return None


@cache
def compiler(python: str) -> Interpreter | None:
    """Returns the interpreter that compiles bundles; says once on stderr where there is none."""
    found = interpreter(python)
    if found is None:
        print(  # noqa: T201 - a notice of the synthesis
            "notice: the functions' bundles have no bytecode, and each cold start compiles their"
            f" modules: install Python {python}, so that python{python} is on the PATH",
            file=sys.stderr,
        )
    return found


def compiled(files: Mapping[str, Path], *, by: Interpreter, into: Path) -> dict[str, Path]:
    """Returns the modules among files by name in the bundle, each with its bytecode.

    The modules are copies: bytecode is not compared to its source when it is loaded, so both must
    be of one moment. A module that does not compile has no bytecode: a template, for example, or
    code for another Python.

    Args:
        files: the path of each file by its name in the bundle.
        by: compiles them.
        into: the cache, with a directory for each set of modules.

    Raises:
        ConfigurationError: the interpreter crashed.
    """
    modules = {name: path for name, path in files.items() if name.endswith(".py")}
    if not modules:
        return {}
    target = _place(modules, by, into)
    if not tree.sound(target):
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=into) as scratch:
            made = Path(scratch, "made")
            copies = tree.kept(made)
            tree.lay_out(modules, copies)
            # A source may have been saved since.
            target = _place(dict(tree.files(copies, shown=into.name)), by, into)
            _compile(copies, by)
            tree.keep(made, target)
    return dict(tree.files(tree.kept(target), shown=target.name))


def _place(modules: Mapping[str, Path], by: Interpreter, into: Path) -> Path:
    return into / tree.digest(modules, beside=by.build)[:16]


def _compile(directory: Path, by: Interpreter) -> None:
    """Compiles the modules below a directory; the same modules give the same bytes anywhere."""
    # Lambda's clock and file times are not those of the build, so the source is not looked at.
    options = ("-qq", "--invalidation-mode", "unchecked-hash", "-s", str(directory), "-p", TASK)
    done = subprocess.run(  # noqa: S603
        [by.executable, "-P", "-S", "-m", "compileall", *options, str(directory)],
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    # 1: a module does not compile.
    if done.returncode not in (0, 1):
        raise ConfigurationError(
            f"{by.executable}: compileall ended with {done.returncode}: {done.stderr.strip()}"
        )


def _environment() -> dict[str, str]:
    """Returns this process's environment without the settings of its Python."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept | {"PYTHONHASHSEED": "0"}
