"""Scanners find nothing in the templates and the workflows; exceptions stand beside their cause.

An exception in a template is a call of `waive` in the construct's code, one in a workflow a
comment. The template of a new project is not scanned: its stack is the same construct.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scanners.conftest import Scanned

TOP = Path(__file__).resolve().parents[2]
# checkov pins its own boto3, so it has its own environment: `make .venv-scanners/.ready`.
SCANNERS = TOP / ".venv-scanners" / "bin"
WORKFLOWS = [
    TOP / ".github" / "workflows",
    TOP / "webhookctl" / "template" / "project" / ".github" / "workflows",
]


def scan(*command: str | Path, before: Path = SCANNERS) -> subprocess.CompletedProcess[str]:
    """Runs a scanner without proxies that lead anywhere."""
    if not before.exists() and "CI" not in os.environ:
        pytest.skip("run `make .venv-scanners/.ready`")
    nowhere = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    return subprocess.run(
        [str(before / command[0]), *map(str, command[1:])],
        env={**os.environ, **nowhere},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_last_inbox_has_the_optional_parts(scanned: list[Scanned]) -> None:
    resources = json.loads(scanned[-1].template.read_text())["Resources"].values()
    optional = {"ApiGatewayV2::DomainName", "EC2::VPCEndpoint", "SNS::Topic", "Route53::RecordSet"}
    assert {f"AWS::{kind}" for kind in optional} <= {each["Type"] for each in resources}


def test_cdk_nag_finds_nothing(scanned: list[Scanned]) -> None:
    assert [violation for one in scanned for violation in one.violations] == []


def test_cfn_lint_finds_nothing(scanned: list[Scanned]) -> None:
    templates = [one.template for one in scanned]
    bin_ = Path(sys.executable).parent
    done = scan("cfn-lint", "--regions", "eu-west-1", "--template", *templates, before=bin_)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_checkov_finds_nothing(scanned: list[Scanned]) -> None:
    files = [part for one in scanned for part in ("--file", str(one.template))]
    done = scan("checkov", "--skip-download", "--framework", "cloudformation", *files, "-o", "json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    failed = [
        f"{check['file_path']} {check['resource']}: {check['check_id']} {check['check_name']}"
        for check in report["results"]["failed_checks"]
    ]
    assert failed == []
    assert report["results"]["parsing_errors"] == []
    assert report["summary"]["passed"] > 100, "checkov has read the templates"
    for check in report["results"]["skipped_checks"]:
        assert check["check_result"]["suppress_comment"]


def test_zizmor_finds_nothing() -> None:
    done = scan("zizmor", "--offline", "--no-progress", "--strict-collection", *WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr
