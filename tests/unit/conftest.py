"""What tests of the build share."""

from pathlib import Path

import pytest


@pytest.fixture
def in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors show the file's path from where the reader stands."""
    (tmp_path / "functions").mkdir()
    monkeypatch.chdir(tmp_path)
