"""`dev` prints a warning once, and again where it has gone and returned."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from webhook_inbox.configuration.compile import compile_manifest
from webhookctl.local import session

SOURCE = '[sources.mail]\nprovider = "stripe"\n'
UNHANDLED = f'{SOURCE}allow = ["unhandled"]\n'


class Reloading:
    """A runtime that compiles its files and starts nothing."""

    def __init__(self, functions: Path) -> None:
        self.project = SimpleNamespace(functions=functions)

    def reload(self) -> bool:
        self.manifest = compile_manifest(self.project.functions, stage="local")
        return False


def test_a_warning_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    functions = tmp_path / "functions"
    (functions / "handlers").mkdir(parents=True)
    (functions / "handlers" / "__init__.py").write_text("MODULES = ()\n")
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
