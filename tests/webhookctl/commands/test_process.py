"""The command line as a process: what it imports, how it ends."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.waiting import DEADLINE

# Only for building, testing and the local runtime.
HEAVY = ("aws_cdk", "jsii", "ministack", "pytest", "moto", "httpx", "stacks")
IMPORTED = f"""
import sys
from webhookctl.__main__ import main
try:
    main(sys.argv[1:])
finally:
    print(*sorted(set(sys.modules) & set({HEAVY!r})), "end", file=sys.stderr)
"""


def run(*command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )


@pytest.mark.parametrize("words", [["--help"], ["dev", "--help"], ["check"]])
def test_it_works_without_what_only_a_repository_needs(words: list[str], checkout: Path) -> None:
    ended = run("-c", IMPORTED, *words)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.splitlines()[-1] == "end"


def test_so_does_a_look_at_aws_and_an_endpoint_that_is_silent_is_one_line() -> None:
    ended = run(
        *("-c", IMPORTED, "inbox", "list", "--stack", "Inbox"),
        AWS_ENDPOINT_URL="http://127.0.0.1:1",
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    said, imported = ended.stderr.splitlines()
    assert said.startswith("webhookctl: cloudformation DescribeStacks: EndpointConnectionError")
    assert imported == "end"


def test_the_version_is_told() -> None:
    ended = run("-m", "webhookctl", "--version")
    assert (ended.returncode, ended.stdout) == (0, f"webhookctl {version('webhook-inbox')}\n")


def test_a_wrong_call_is_status_two() -> None:
    assert run("-m", "webhookctl", "replay", "--limit", "0").returncode == 2


def test_a_reader_that_leaves_early_is_no_traceback(checkout: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        ended = subprocess.run(
            [sys.executable, "-m", "webhookctl", "check"],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
    assert ended.returncode == 141
    assert ended.stderr == ""


def test_a_terminal_without_unicode_is_no_error(checkout: Path) -> None:
    (checkout / "inbox.toml").write_text('[sources.acme]\nprovider = "strïpe"\n')
    ended = run("-m", "webhookctl", "check", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ended.returncode == 1
    assert "str\\xefpe" in ended.stderr
