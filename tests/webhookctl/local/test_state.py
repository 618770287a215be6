import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from webhookctl.local import state

STATE = state.State(
    pid=os.getpid(),
    endpoint="http://127.0.0.1:4566",
    credentials={"AWS_SESSION_TOKEN": "only a test"},
    front="http://127.0.0.1:8787",
    sink="http://127.0.0.1:8788",
    outputs={"TableName": "t"},
    manifest={},
    children={"ministack": 1},
)


def test_a_running_session_is_found(tmp_path: Path) -> None:
    state.write(tmp_path / "new", STATE)
    assert state.read(tmp_path / "new") == STATE
    assert [file.name for file in (tmp_path / "new").iterdir()] == [state.FILE]


def test_only_its_user_reads_the_credentials(tmp_path: Path) -> None:
    state.write(tmp_path, STATE)
    state.write(tmp_path, STATE)
    assert (tmp_path / state.FILE).stat().st_mode & 0o777 == 0o600


def test_one_that_died_without_cleaning_up_is_none(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    state.write(tmp_path, replace(STATE, pid=gone.pid))
    assert state.read(tmp_path) is None


def test_another_users_process_counts_as_running() -> None:
    assert replace(STATE, pid=1).alive


def test_no_file_and_a_damaged_one_are_none(tmp_path: Path) -> None:
    assert state.read(tmp_path) is None
    for text in ("", "{", "[]", '{"pid": 1}'):
        (tmp_path / state.FILE).write_text(text)
        assert state.read(tmp_path) is None


def test_removing_twice_is_fine(tmp_path: Path) -> None:
    state.write(tmp_path, STATE)
    state.remove(tmp_path)
    state.remove(tmp_path)
    assert state.read(tmp_path) is None
