"""Fixtures that unit tests share."""

from pathlib import Path

import pytest

from tests.unit.support.world import World


@pytest.fixture
def world() -> World:
    """An inbox with two sources, a handler each, and a clock at midnight."""
    return World()


@pytest.fixture
def in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors show the file's path from where the reader stands."""
    (tmp_path / "functions").mkdir()
    monkeypatch.chdir(tmp_path)
