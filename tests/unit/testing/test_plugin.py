"""The plugin's fixtures in a project of their own, in a pytest process of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[3] / "functions"
HANDLERS = """
from webhook_inbox import Router

shop = Router("shop")


@shop.on("paid", destinations=["crm"])
def note(event, ctx):
    ctx.http("crm").post("/notes", json=event.json(), effect="note")
"""
INBOX = """
[sources.shop]
provider = "standard-webhooks"

[destinations.crm]
base_url = "https://crm.acme.com"
"""
PASSES = """
from handlers.shop import note


def test_an_order_is_noted(inbox, fake):
    fake("crm").answers(503)
    run = inbox.run(note, {"id": "o-1", "type": "paid"}).settle()
    assert (run.status, len(fake("crm").done)) == ("done", 1)
    assert fake("crm") is inbox.destinations["crm"]


def test_the_next_test_has_another_inbox(inbox, fake):
    assert (inbox.runs(note), fake("crm").requests) == ([], [])
"""
UNUSED = """
def test_a_response_is_not_used(inbox, fake):
    fake("crm").answers(503)
"""
MISSPELT = """
def test_a_name_is_wrong(fake):
    fake("cmr").answers(503)
"""
FAILS = """
def test_fails_itself(inbox, fake):
    fake("crm").answers(503)
    assert 1 == 2
"""
OWN = """
import pytest


@pytest.fixture
def inbox():
    return "mine"


def test_a_local_fixture_replaces_it(inbox):
    assert inbox == "mine"
"""
CHEAP = """
import sys


def test_nothing_is_imported():
    assert "webhook_inbox.testing.plugin" in sys.modules
    assert not {"httpx", "pydantic", "webhook_inbox.testing.inbox"} & sys.modules.keys()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as `webhookctl init` writes it, as far as tests need it."""
    handlers = tmp_path / "functions" / "handlers"
    handlers.mkdir(parents=True)
    (handlers / "__init__.py").write_text('MODULES = ("shop",)\n')
    (handlers / "shop.py").write_text(HANDLERS)
    (tmp_path / "functions" / "inbox.toml").write_text(INBOX)
    (tmp_path / "tests").mkdir()
    options = '[tool.pytest.ini_options]\ntestpaths = ["tests"]\npythonpath = ["functions"]\n'
    (tmp_path / "pyproject.toml").write_text(options)
    return tmp_path


def run(project: Path, test: str) -> tuple[int, str]:
    (project / "tests" / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-p", "webhook_inbox.testing.plugin", "-q"]
    # Without other plugins, and without this one's entry point, which would register it twice.
    env = {"PYTHONPATH": str(LIBRARY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": "/usr/bin"}
    ended = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize("test", [PASSES, OWN, CHEAP], ids=["passes", "own", "cheap"])
def test_tests_pass(project: Path, test: str) -> None:
    status, output = run(project, test)
    assert status == 0, output


def test_an_unused_response_fails_the_test_at_its_line(project: Path) -> None:
    status, output = run(project, UNUSED)
    assert status == 1
    assert "tests/test_it.py:3: answers(503) of 'crm' was not used" in output
    assert "1 failed" in output
    assert "plugin.py" not in output


def test_a_wrong_name_is_corrected_at_its_line(project: Path) -> None:
    status, output = run(project, MISSPELT)
    assert status == 1
    assert """no destination 'cmr' (did you mean "crm"?)""" in output
    assert "tests/test_it.py:3: KitError" in output
    assert "inbox.py" not in output


def test_a_test_that_fails_is_not_blamed_for_more(project: Path) -> None:
    status, output = run(project, FAILS)
    assert (status, "was not used" in output) == (1, False)


def test_a_test_outside_a_project_is_told_so(project: Path) -> None:
    (project / "functions" / "inbox.toml").unlink()
    status, output = run(project, UNUSED)
    assert status == 1
    assert "no functions/inbox.toml above" in output


def test_a_project_above_the_rootdir_is_not_imported(project: Path) -> None:
    inner = project / "inner"
    (inner / "tests").mkdir(parents=True)
    (inner / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    mark = project / "imported"
    (project / "functions" / "handlers" / "shop.py").write_text(f"open({str(mark)!r}, 'w')\n")
    status, output = run(inner, UNUSED)
    assert status == 1
    assert f"no functions/inbox.toml above {inner}/tests/test_it.py in {inner}" in output
    assert not mark.exists()
