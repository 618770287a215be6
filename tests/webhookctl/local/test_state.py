import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from webhook_inbox.client import local_session
from webhook_inbox.client.errors import OperationError

STATE = local_session.State(
    pid=os.getpid(),
    started=local_session.started(),
    endpoint="http://127.0.0.1:4566",
    credentials={"AWS_SESSION_TOKEN": "only a test"},
    front="http://127.0.0.1:8787",
    sink="http://127.0.0.1:8788",
    outputs={"TableName": "t"},
    manifest={},
    children={"ministack": 1},
)


def test_a_running_session_is_found(tmp_path: Path) -> None:
    local_session.write(tmp_path / "new", STATE)
    assert local_session.read(tmp_path / "new") == STATE
    assert [file.name for file in (tmp_path / "new").iterdir()] == [local_session.FILE]


def test_only_its_user_reads_the_credentials(tmp_path: Path) -> None:
    local_session.write(tmp_path, STATE)
    local_session.write(tmp_path, STATE)
    assert (tmp_path / local_session.FILE).stat().st_mode & 0o777 == 0o600


def test_one_that_died_without_cleaning_up_is_none(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    local_session.write(tmp_path, replace(STATE, pid=gone.pid))
    assert local_session.read(tmp_path) is None


def test_another_process_with_its_number_is_no_session(tmp_path: Path) -> None:
    local_session.write(tmp_path, replace(STATE, started=STATE.started - 3600))
    assert local_session.read(tmp_path) is None


def test_another_users_process_is_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    assert STATE.alive
    monkeypatch.setattr("os.getuid", lambda: os.geteuid() + 1)
    assert not STATE.alive


def test_a_process_that_an_archive_can_name_is_no_session() -> None:
    assert not replace(STATE, pid=1, started=0.0).alive
    assert not replace(STATE, pid=1, started=psutil.boot_time() - 3600).alive


@pytest.mark.parametrize("field", ["endpoint", "front", "sink"])
@pytest.mark.parametrize(
    "url",
    [
        "http://203.0.113.7:4566",
        "http://127.0.0.1:4566@evil.example:80",
        "http://127.0.0.1.evil.example:4566",
        "http://localhost.evil.example:4566",
        "https://127.0.0.1:4566",
        "http://0.0.0.0:4566",
        "",
        "http://127.0.0.1:4566/\n",
    ],
)
def test_a_server_elsewhere_is_refused_with_the_file(tmp_path: Path, field: str, url: str) -> None:
    local_session.write(tmp_path, replace(STATE, **{field: url}))
    with pytest.raises(
        OperationError, match=rf"(?s){tmp_path}/state.json names a server .*: remove"
    ):
        local_session.read(tmp_path)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "[::1]", "localhost"])
def test_every_name_of_loopback_is_accepted(tmp_path: Path, host: str) -> None:
    given = replace(STATE, endpoint=f"http://{host}:4566")
    local_session.write(tmp_path, given)
    assert local_session.read(tmp_path) == given


@pytest.mark.parametrize("name", [".", local_session.FILE])
@pytest.mark.parametrize("mode", [0o720, 0o702])
def test_a_file_that_others_can_change_is_refused(tmp_path: Path, name: str, mode: int) -> None:
    local_session.write(tmp_path, STATE)
    (tmp_path / name).chmod(mode)
    with pytest.raises(OperationError, match=r"can be changed by other users, .*: remove it"):
        local_session.read(tmp_path)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", [".", local_session.FILE])
def test_a_file_of_another_user_is_refused(tmp_path: Path, name: str) -> None:
    local_session.write(tmp_path, STATE)
    os.chown(tmp_path / name, 65534, 65534)
    with pytest.raises(OperationError, match="belongs to another user"):
        local_session.read(tmp_path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    local_session.write(tmp_path / "elsewhere", STATE)
    (tmp_path / ".local").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / local_session.FILE).symlink_to(tmp_path / "elsewhere" / local_session.FILE)
    for directory in (tmp_path / ".local", tmp_path / "here"):
        with pytest.raises(OperationError, match="is a symbolic link"):
            local_session.read(directory)


def test_a_directory_that_the_umask_opened_is_closed(tmp_path: Path) -> None:
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local").chmod(0o775)
    local_session.write(tmp_path / ".local", STATE)
    assert local_session.read(tmp_path / ".local") == STATE


def test_no_file_and_a_damaged_one_are_none(tmp_path: Path) -> None:
    assert local_session.read(tmp_path) is None
    for text in ("", "{", "[]", '{"pid": 1}'):
        (tmp_path / local_session.FILE).write_text(text)
        assert local_session.read(tmp_path) is None


def test_removing_twice_is_fine(tmp_path: Path) -> None:
    local_session.write(tmp_path, STATE)
    local_session.remove(tmp_path)
    local_session.remove(tmp_path)
    assert local_session.read(tmp_path) is None
