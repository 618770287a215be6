"""The first hour with the wheel: init, run, test, extend, synthesize, upgrade.

In an empty directory with a virtual environment that has the wheel and nothing of this clone.
`make package` runs it; the installation needs a package index.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import DEADLINE, eventually
from webhookctl.local.ports import free_port

CLONE = Path(__file__).resolve().parents[2]
SHIPPED = ("functions", "requirements", "webhook_inbox_cdk", "webhookctl")
HIGHER = "99.0.0"
# Generous: each step ends as soon as it can.

SOURCE = """
[sources.shipments]
provider = "hmac"
signature = { header = "X-Signature", prefix = "sha256=", signs = "{body}" }
event_id = { json = "id" }
event_type = { json = "type" }
"""
HANDLER = '''"""Handlers of the source `shipments`."""

from webhook_inbox import Context, Event, Router

shipments = Router("shipments")


@shipments.on("parcel.delivered")
def thank(event: Event, ctx: Context) -> None:
    parcel = event.json()
    ctx.effect("thank", lambda key: {"customer": parcel["customer"], "key": key})
'''
TEST = """from handlers.shipments import thank


def test_a_customer_is_thanked(inbox):
    run = inbox.run(thank, {"id": "p-1", "type": "parcel.delivered", "customer": "c-9"})
    assert run.effects["thank"].committed
"""
BUCKET = """
        from aws_cdk import aws_s3

        bucket = aws_s3.Bucket(self, "Receipts")
        for processor in self.inbox.processors.values():
            bucket.grant_put(processor)
"""


def build(source: Path, directory: Path) -> Path:
    """Builds the wheel of a source tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(source)]
    subprocess.run(command, check=True, timeout=DEADLINE)
    [wheel] = directory.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Workplace:
    """A virtual environment and an empty directory, without this clone."""

    top: Path
    environment: Mapping[str, str]

    @property
    def project(self) -> Path:
        return self.top / "demo"

    def run(self, *command: str, cwd: Path | None = None, **more: str) -> str:
        """Runs a command in the project; returns its output."""
        done = subprocess.run(
            command,
            cwd=cwd or self.project,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def synthesize(self) -> dict[str, Any]:
        """Synthesizes as the CDK CLI does, with the command of cdk.json; returns the template."""
        command = json.loads((self.project / "cdk.json").read_text())["app"].split()
        self.run(*command, CDK_OUTDIR="cdk.out", CDK_CONTEXT_JSON=json.dumps({"stage": "dev"}))
        template = self.project / "cdk.out" / "WebhookInbox-demo-dev.template.json"
        resources: dict[str, Any] = json.loads(template.read_text())["Resources"]
        return resources

    def install(self, wheel: str, *options: str) -> None:
        python = ("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        self.run(*python, *options, wheel, cwd=self.top)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    top = tmp_path_factory.mktemp("first-hour")
    subprocess.run([sys.executable, "-m", "venv", str(top / "venv")], check=True, timeout=DEADLINE)
    node = Path(shutil.which(os.environ.get("JSII_NODE", "node")) or "/").parent
    # pip's settings name the index; nothing else of this process is passed on.
    pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    path = os.pathsep.join((str(top / "venv" / "bin"), str(node), "/usr/bin", "/bin"))
    environment = {**pip, "PATH": path, "HOME": str(top)}
    for name in ("PIP_CONFIG_FILE", "XDG_CONFIG_HOME", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        environment |= {name: os.environ[name]} if name in os.environ else {}
    return Workplace(top, environment)


@pytest.fixture(scope="module")
def project(workplace: Workplace) -> Workplace:
    """The project that `init` writes with the installed wheel."""
    wheel = build(CLONE, workplace.top / "wheels")
    workplace.install(f"{wheel}[cdk,dev]")
    workplace.run("webhookctl", "init", "demo", "--alarms", "none", cwd=workplace.top)
    return workplace


@dataclass
class Session:
    """A running `webhookctl dev`."""

    workplace: Workplace
    output: Path
    alive: Callable[[], bool]

    def await_line(self, pattern: str) -> str:
        """Returns the first match in the session's output."""
        found = await_value(lambda: re.search(pattern, self.output.read_text()), self.alive)
        return str(found.group())

    def send(self, file: str, source: str) -> None:
        self.workplace.run(
            "webhookctl", "--local", "send", file, "--source", source, "--times", "3"
        )

    def await_done(self, event_id: str) -> dict[str, Any]:
        """Returns the single run of an event once it has ended."""

        def ended() -> dict[str, Any] | None:
            shown = self.workplace.run(
                "webhookctl", "--local", "inbox", "inspect", event_id, "--json"
            )
            [run] = json.loads(shown)["runs"]
            return run if run["status"] == "done" else None

        found: dict[str, Any] = await_value(ended, self.alive)
        return found


def await_value(look: Callable[[], Any], alive: Callable[[], bool]) -> Any:
    """Returns the first value of `look`; fails when the session ends or the time is over."""

    def look_while_alive() -> Any:
        found = look()
        assert found or alive(), "the session ended"
        return found

    return eventually(look_while_alive)


@pytest.fixture(scope="module")
def session(project: Workplace) -> Iterator[Session]:
    """`webhookctl dev` in the project, ended with Ctrl-C."""
    output = project.top / "session.log"
    command = ["webhookctl", "dev", "--port", str(free_port()), "--sink-port", str(free_port())]
    program = shutil.which(command[0], path=project.environment["PATH"])
    assert program
    with output.open("w") as file:
        child = subprocess.Popen(
            [program, *command[1:]],
            cwd=project.project,
            env=dict(project.environment),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        running = Session(project, output, lambda: child.poll() is None)
        running.await_line(r"Ready in [\d.]+ s")
        yield running
        child.send_signal(signal.SIGINT)
        assert child.wait(DEADLINE) == 0, output.read_text()
    finally:
        child.kill()
        child.wait()


def test_nothing_of_this_clone_is_used(project: Workplace) -> None:
    code = "import webhook_inbox, webhook_inbox_cdk, webhookctl; print(webhookctl.__file__)"
    assert str(project.top) in project.run("python", "-c", code)


def test_its_own_tests_pass(project: Workplace) -> None:
    assert "1 passed" in project.run("pytest", "-q")


def test_its_configuration_is_valid(project: Workplace) -> None:
    project.run("webhookctl", "check", "--stage", "dev", "--strict")


def test_it_synthesizes(project: Workplace) -> None:
    kinds = {resource["Type"] for resource in project.synthesize().values()}
    assert {"AWS::Lambda::Function", "AWS::DynamoDB::GlobalTable", "AWS::SQS::Queue"} <= kinds


def test_it_runs_and_an_event_is_handled_once(session: Session) -> None:
    session.send("events/ingest/shop/order.paid__first.json", "shop")
    shown = session.workplace.run("webhookctl", "--local", "inbox", "list", "--json")
    [event_id] = set(re.findall(r'"event_id": "([^"]+)"', shown))
    assert len(session.await_done(event_id)["attempts"]) == 1


def test_a_new_source_and_handler_are_loaded(session: Session) -> None:
    project = session.workplace.project
    (project / "functions" / "handlers" / "shipments.py").write_text(HANDLER)
    registry = project / "functions" / "handlers" / "__init__.py"
    registry.write_text('MODULES = ("orders", "shipments")\n')
    inbox = project / "functions" / "inbox.toml"
    inbox.write_text(inbox.read_text() + SOURCE)
    parcel = project / "parcel.json"
    parcel.write_text('{"id": "p-1", "type": "parcel.delivered", "customer": "c-9"}')
    session.await_line(r"/webhooks/shipments")

    session.send("parcel.json", "shipments")

    assert session.await_done("p-1")["status"] == "done"
    (project / "tests" / "test_shipments.py").write_text(TEST)
    assert "2 passed" in session.workplace.run("pytest", "-q")


def test_another_construct_has_its_place(project: Workplace) -> None:
    stack = project.project / "stacks" / "inbox_stack.py"
    stack.write_text(stack.read_text() + BUCKET)
    resources = project.synthesize()
    [bucket] = [name for name in resources if name.startswith("Receipts")]
    policies = [r for r in resources.values() if r["Type"] == "AWS::IAM::Policy"]
    assert any(bucket in json.dumps(policy) for policy in policies)


def test_a_higher_version_is_an_upgrade(project: Workplace) -> None:
    """The last test of this file: it changes the installation."""
    source = project.top / "source"
    for name in SHIPPED:
        shutil.copytree(CLONE / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    (source / "docs").mkdir()
    for name in ("LICENSE", "README.md", "docs/runbook.md"):
        shutil.copy(CLONE / name, source / name)
    settings = (CLONE / "pyproject.toml").read_text()
    changed, count = re.subn(r'(?m)^version = ".*"$', f'version = "{HIGHER}"', settings)
    assert count == 1
    (source / "pyproject.toml").write_text(changed)

    project.install(str(build(source, project.top / "higher")), "--upgrade")

    assert project.run("webhookctl", "--version").split() == ["webhookctl", HIGHER]
    assert "passed" in project.run("pytest", "-q")
    project.synthesize()
