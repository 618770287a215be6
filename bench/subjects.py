"""Builds the measured handlers as Lambda gets them: the inbox's bundle, and the baselines."""

import json
import os
import platform as machine
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from webhook_inbox_cdk.bundle import Workshop
from webhook_inbox_cdk.platform import PYTHONS, Platform

from bench.deliveries import ROOT, SECRETS
from webhook_inbox.adapters.environment import IngestEnvironment
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.manifest import Manifest

VENV: Final = ROOT / ".venv-bench"
PYTHON: Final = VENV / "bin" / "python"
BUILD: Final = ROOT / ".build"
ARCHITECTURES: Final = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}
INBOX: Final = "inbox"
BARE: Final = "bare"
BASELINES: Final = {
    BARE: "bare",
    "Idempotency": "idempotent",
    "FastAPI": "web_framework",
    "PutEvents": "event_bus",
}
QUEUE: Final = "https://sqs.us-east-1.amazonaws.com/123456789012/bench-default"
# The document of secrets that ingest reads.
DOCUMENT: Final = json.dumps(SECRETS)


@dataclass(frozen=True, slots=True)
class Subject:
    """A handler.

    Attributes:
        name: what it is called in tables.
        module: its entry point.
        path: the directories that it is imported from.
        log: the file that its output goes to.
    """

    name: str
    module: str
    path: str
    log: Path


@dataclass(frozen=True, slots=True)
class Subjects:
    """The inbox, the baselines and the manifest that the inbox is compiled from."""

    manifest: Manifest
    all: tuple[Subject, ...]
    python: str


def build(directory: Path) -> Subjects:
    """Lays the handlers out in a directory, with bytecode, and returns them; the inbox is first."""
    python = _output(PYTHON, "-c", "import platform; print(platform.python_version())")
    [libraries] = VENV.glob("lib/python*/site-packages")
    manifest = compile_manifest(ROOT / "functions", stage="dev")
    shutil.copytree(_bundle(manifest, python.rpartition(".")[0]), directory / "inbox")
    target = directory / "baselines" / "bench" / "baselines"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "bench" / "baselines", target, ignore=ignored)
    (target.parent / "__init__.py").touch()
    # The inbox's bundle has its own bytecode where this machine could compile it.
    shipped = any((directory / "inbox").rglob("*.pyc"))
    bare = directory / "baselines" if shipped else directory
    _output(*(PYTHON, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", bare))

    def subject(name: str, module: str, home: str) -> Subject:
        path = os.pathsep.join((str(directory / home), str(libraries)))
        return Subject(name, module, path, directory / f"{module}.log")

    inbox = subject(INBOX, "ingest.lambda_function", "inbox")
    others = (subject(n, f"bench.baselines.{m}", "baselines") for n, m in BASELINES.items())
    return Subjects(manifest, (inbox, *others), python)


def variables(subject: Subject, endpoint: str) -> Mapping[str, str]:
    """Returns a measured process's whole environment."""
    environment = IngestEnvironment(
        metrics_namespace="WebhookInbox/bench",
        queue_url=QUEUE,
        queue_prefix="bench-",
        table_name="bench",
        bucket_name="bench-bodies",
        secret_document="webhook-inbox/bench/sources",  # noqa: S106 - its name
        generated_keys={"token-key": "arn:token-key"},
    )
    return {
        **environment.variables(),
        **{f"{source.upper()}_SECRET": secret for source, secret in SECRETS.items()},
        "IDEMPOTENCY_TABLE": "idempotency",
        "EVENT_BUS_NAME": "bench",
        "POWERTOOLS_SERVICE_NAME": "ingest",
        "AWS_LAMBDA_FUNCTION_NAME": "ingest",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
        "AWS_LAMBDA_LOG_FORMAT": "JSON",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "not-a-secret",
        "AWS_SESSION_TOKEN": "x" * 400,
        "AWS_ENDPOINT_URL": endpoint,
        "PYTHONPATH": subject.path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
    }


def _bundle(manifest: Manifest, python: str) -> Path:
    """Returns ingest's bundle; without wheels for a Python that Lambda does not run."""
    wheels = python in PYTHONS
    architecture = ARCHITECTURES[machine.machine()]
    platform = Platform(python, architecture) if wheels else Platform()
    workshop = Workshop(ROOT / "functions", manifest, BUILD, wheels=wheels, platform=platform)
    return workshop.make("ingest").directory


def _output(*command: str | Path) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout.strip()
