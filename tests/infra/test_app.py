"""`python app.py` as people and the CDK command line run it: no credentials and no network."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from webhook_inbox_cdk.bytecode import interpreter
from webhook_inbox_cdk.platform import Platform

from stacks.inbox_stack import InboxStack
from tests.infra.conftest import write_functions
from tests.infra.template import Template, named
from tests.waiting import DEADLINE
from webhook_inbox.domain.errors import ConfigurationError

TOP = Path(__file__).resolve().parents[2]


def unshare() -> list[str]:
    """The command that takes the network away, where this machine allows it."""
    command = ["unshare", "--net", "--map-root-user"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], check=False).returncode:
        return []
    return command


def scrubbed(tmp_path: Path, **more: str) -> dict[str, str]:
    """An environment without credentials, and with proxies that lead nowhere."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "AWS_EC2_METADATA_DISABLED": "true",
        **more,
    }


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what an app is made of, with an integrator's handlers."""
    top = tmp_path_factory.mktemp("project")
    for name in ("app.py", "cdk.json"):
        shutil.copy(TOP / name, top)
    shutil.copytree(TOP / "stacks", top / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    functions = write_functions(top)
    for name in ("ingest", "processor", "reconciler", "replay", "webhook_inbox"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(TOP / "functions" / name, functions / name, ignore=ignore)
    return top


def run(
    project: Path, environment: dict[str, str], *before: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "app.py"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


@pytest.fixture(scope="module")
def assembly(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The laptop's assembly, synthesized without credentials and network."""
    out = tmp_path_factory.mktemp("assembly")
    context = json.dumps({"stage": "local"})
    outdir = str(out / "cdk.out")
    # The CDK's own check of the template is that of `shipped`.
    quick = {"CDK_VALIDATION": "false"}
    environment = scrubbed(out, CDK_OUTDIR=outdir, CDK_CONTEXT_JSON=context, **quick)
    done = run(project, environment, *unshare())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return out / "cdk.out"


def test_app_synthesizes_without_credentials_and_network(assembly: Path) -> None:
    template = Template.of(assembly, "WebhookInbox-local")
    assert named(template.outputs["Stage"]) == "local"


def test_assembly_asks_for_no_account_no_region_and_no_look_up(assembly: Path) -> None:
    manifest = json.loads((assembly / "manifest.json").read_text())
    assert "missing" not in manifest
    environment = manifest["artifacts"]["WebhookInbox-local"]["environment"]
    assert environment == "aws://unknown-account/unknown-region"


def test_laptop_s_bundles_hold_our_sources_only(assembly: Path) -> None:
    for asset in assembly.glob("asset.*"):
        assert not [p.name for p in asset.iterdir() if "powertools" in p.name or "info" in p.name]
        assert (asset / "compiled_manifest.py").is_file()


def test_laptop_s_template_is_the_account_s(assembly: Path, dev: Template) -> None:
    def stable(ids: dict[str, str]) -> set[str]:
        # CDK builds the first two from the stack's name; nothing depends on them. The laptop has no
        # dashboard, nor the metric that only it reads.
        named = ("AllowEventRule", "PermissionApiScoped", "InboxDashboard", "ThrottledByRoute")
        return {name for name in ids if not any(part in name for part in named)}

    assert stable(Template.of(assembly, "WebhookInbox-local").ids) == stable(dev.ids)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """This repository's bundles for an account, by function, made without a network.

    `make setup` has fetched the wheels; where it could not, there is nothing to look at.
    """
    fetched = subprocess.run(
        [sys.executable, "-m", "webhook_inbox_cdk.vendor"],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    if fetched.returncode and "CI" not in os.environ:
        pytest.skip(fetched.stderr.strip())
    out = tmp_path_factory.mktemp("prod")
    context = json.dumps({"stage": "prod"})
    done = run(TOP, scrubbed(out, CDK_OUTDIR=str(out), CDK_CONTEXT_JSON=context), *unshare())
    # Without the functions' Python, one notice.
    notices = 0 if interpreter(Platform().python) else 1
    assert (done.returncode, len(done.stderr.splitlines())) == (0, notices), done.stderr
    functions = Template.of(out, "WebhookInbox-prod").all("AWS::Lambda::Function").values()
    return {
        function["Handler"].partition(".")[0]: out / f"asset.{_digest(function)}"
        for function in functions
    }


def _digest(function: dict[str, Any]) -> str:
    return str(function["Code"]["S3Key"]).removesuffix(".zip")


def test_bundles_hold_what_each_function_imports_and_no_more(shipped: dict[str, Path]) -> None:
    libraries = {
        name: {"pydantic", "httpx", "aws_lambda_powertools"} & {p.name for p in asset.iterdir()}
        for name, asset in shipped.items()
    }
    assert libraries == {
        "ingest": set(),
        "reconciler": {"aws_lambda_powertools"},
        "replay": {"aws_lambda_powertools", "pydantic"},
        "processor": {"aws_lambda_powertools", "pydantic", "httpx"},
    }


def test_shipped_machine_code_is_lambda_s(shipped: dict[str, Path]) -> None:
    built = [path for asset in shipped.values() for path in asset.rglob("*.so")]
    assert built
    for path in built:
        # A file of the stable ABI does not name the machine in its name; its ELF header does: 183.
        assert {"cpython-313-aarch64-linux-gnu", "abi3"} & set(path.name.split("."))
        assert int.from_bytes(path.read_bytes()[18:20], "little") == 183


def test_bundles_hold_the_bytecode_of_lambda_s_python_and_no_other(
    shipped: dict[str, Path],
) -> None:
    compiles = interpreter(Platform().python) is not None
    for asset in shipped.values():
        modules = {path.relative_to(asset).with_suffix("") for path in asset.rglob("*.py")}
        compiled = [path.relative_to(asset) for path in asset.rglob("*.pyc")]
        assert {path.suffixes[-2:] == [".cpython-313", ".pyc"] for path in compiled} <= {True}
        found = {path.parent.parent / path.name.split(".cpython")[0] for path in compiled}
        assert found == (modules if compiles else set())


def test_reservations_below_what_sqs_hands_out_are_refused(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path), context={"stage": "local", "reserved_concurrency": "1"})
    with pytest.raises(ConfigurationError, match=r"^reserved_concurrency 1 is below the 5 work"):
        InboxStack(app)


def test_a_number_that_is_none_is_refused(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path), context={"stage": "local", "log_retention": "many"})
    with pytest.raises(ConfigurationError, match="context log_retention: 'many' is not a whole"):
        InboxStack(app)


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [("python", "3.14", "3.13 and 3.12"), ("architecture", "arm", "arm64 and x86_64")],
)
def test_a_platform_that_is_not_supported_is_refused(
    tmp_path: Path, name: str, value: str, known: str
) -> None:
    app = App(outdir=str(tmp_path), context={"stage": "local", name: value})
    with pytest.raises(ConfigurationError) as refusal:
        InboxStack(app)
    assert str(refusal.value) == (
        f"{name} is {value!r}; the functions support {known}: correct `-c {name}=…`, the context in"
        f" cdk.json, or InboxProps.{name}"
    )


def test_context_sets_the_functions_up(tmp_path: Path) -> None:
    vpc = {"id": "vpc-1", "availability_zones": ["a", "b"], "private_subnet_ids": ["s-a", "s-b"]}
    vpc["gateway_endpoints"] = ["rtb-1", "rtb-2"]
    numbers = {"reserved_concurrency": "5", "processor_memory": "768"}
    numbers |= {"ingest_memory": "640", "log_retention": "14"}
    context = {
        "stage": "prod",
        "local": "true",
        "snapstart": "true",
        **numbers,
        "vpc": json.dumps(vpc),
    }
    context |= {"python": "3.12", "architecture": "x86_64"}
    app = App(outdir=str(tmp_path), context=context)
    stack = InboxStack(app)
    assembly = app.synth()
    template = Template.of(Path(assembly.directory), "WebhookInbox-prod")
    endpoints = template.all("AWS::EC2::VPCEndpoint").values()
    assert [named(each["ServiceName"]) for each in endpoints] == [
        "com.amazonaws.${AWS::Region}.dynamodb",
        "com.amazonaws.${AWS::Region}.s3",
    ]
    assert all(each["RouteTableIds"] == ["rtb-1", "rtb-2"] for each in endpoints)
    notes = [entry.data for entry in stack.inbox.node.metadata if entry.type == "aws:cdk:info"]
    assert any("the processors run in a VPC" in note for note in notes)
    function = template.function("processor")
    assert (function["MemorySize"], template.function("ingest")["MemorySize"]) == (768, 640)
    assert {each["RetentionInDays"] for each in template.all("AWS::Logs::LogGroup").values()} == {
        14
    }
    assert template.one("AWS::Lambda::Alias")["Name"] == "live"
    assert function["ReservedConcurrentExecutions"] == 5
    assert function["VpcConfig"]["SubnetIds"] == ["s-a", "s-b"]
    assert (function["Runtime"], function["Architectures"]) == ("python3.12", ["x86_64"])


def test_a_broken_handler_is_one_line_and_a_failing_exit(project: Path, tmp_path: Path) -> None:
    top = tmp_path / "broken"
    shutil.copytree(project, top, ignore=shutil.ignore_patterns("cdk.out"))
    (top / "functions" / "handlers" / "billing.py").write_text("import nothing_like_it\n")
    done = run(top, scrubbed(tmp_path))
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("functions/handlers/billing.py:1: imports nothing_like_it, which")
