"""`dev` refuses what `check` refuses, and prints a warning once."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhookctl.local import session
from webhookctl.local.deployment.synth import Project
from webhookctl.local.runtime import Runtime, Settings

SOURCE = '[sources.mail]\nprovider = "stripe"\n'
UNHANDLED = f'{SOURCE}allow = ["unhandled"]\n'


def test_an_import_that_the_bundle_does_not_contain_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path, write(tmp_path), tmp_path / ".local")
    (project.functions / "inbox.toml").write_text(SOURCE)
    (project.functions / "handlers" / "__init__.py").write_text('MODULES = ("mail",)\n')
    (project.functions / "handlers" / "mail.py").write_text("import stripe\n")
    with pytest.raises(ConfigurationError, match=r"handlers/mail\.py:1: imports stripe, which"):
        Runtime(project, Settings(8787, 8788), print).reload()


def write(top: Path) -> Path:
    """Writes a `functions/` without handlers and returns it."""
    functions = top / "functions"
    (functions / "handlers").mkdir(parents=True)
    (functions / "handlers" / "__init__.py").write_text("MODULES = ()\n")
    return functions


class Reloading:
    """A runtime that compiles its files and starts nothing."""

    def __init__(self, functions: Path) -> None:
        self.project = SimpleNamespace(functions=functions)

    def reload(self) -> bool:
        self.manifest = compile_manifest(self.project.functions, stage="local")
        return False


def test_a_warning_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    functions = write(tmp_path)
    told: set[str] = set()
    runtime = Reloading(functions)
    printed = []
    for text in (SOURCE, SOURCE, UNHANDLED, SOURCE, "broken"):
        (functions / "inbox.toml").write_text(text)
        session._reload(runtime, told, failed_before=False)
        printed.append(capsys.readouterr().out)
    assert "warning: " in printed[0]
    assert "[sources.mail]: no handler takes its events" in printed[0]
    assert printed[1] == printed[2] == ""
    assert "warning: " in printed[3]
    assert "not reloaded" in printed[4]
