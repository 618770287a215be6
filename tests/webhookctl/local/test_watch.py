import os
from pathlib import Path

import pytest

from webhookctl.local.watch import Watch


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "notes.py").write_text("one")
    return tmp_path


def _settled(watch: Watch) -> bool:
    return any([watch.changed(), watch.changed(), watch.changed()])


def test_nothing_happens_while_nothing_changes(directory: Path) -> None:
    assert not _settled(Watch(directory))


def test_an_edit_is_told_once_and_only_when_it_has_settled(directory: Path) -> None:
    watch = Watch(directory)
    (directory / "handlers" / "notes.py").write_text("longer")
    assert [watch.changed() for _ in range(4)] == [False, True, False, False]


def test_a_save_in_several_steps_is_one_change(directory: Path) -> None:
    watch = Watch(directory)
    file = directory / "handlers" / "notes.py"
    file.unlink()
    assert not watch.changed()
    file.write_text("written anew")
    assert [watch.changed() for _ in range(3)] == [False, True, False]


def test_an_edit_of_the_same_size_is_seen(directory: Path) -> None:
    watch = Watch(directory)
    file = directory / "handlers" / "notes.py"
    file.write_text("two")
    os.utime(file, ns=(1, 1))
    assert _settled(watch)


@pytest.mark.parametrize("name", ["inbox.toml", "handlers/new.py", "handlers/deep/er.py"])
def test_a_new_file_is_seen_and_so_is_its_end(directory: Path, name: str) -> None:
    watch = Watch(directory)
    file = directory / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("new")
    assert _settled(watch)
    file.unlink()
    assert _settled(watch)


@pytest.mark.parametrize("name", ["handlers/__pycache__/notes.pyc", "handlers/.notes.py.swp"])
def test_what_python_and_editors_write_is_no_edit(directory: Path, name: str) -> None:
    watch = Watch(directory)
    file = directory / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("x")
    assert not _settled(watch)
