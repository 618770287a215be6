import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import eventually
from webhookctl.errors import CommandError
from webhookctl.local.ports import accepts, free_port, require_free
from webhookctl.local.processes.process_group import Child, command_line, members

# Has a child of its own, deaf to SIGTERM, and says when both are there.
FAMILY = """
import subprocess, sys, time
deaf = '''
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
draft = Path(sys.argv[1] + ".draft")
draft.write_text(" ".join(sys.argv[1:]))
draft.replace(sys.argv[1])
time.sleep(600)
'''
subprocess.Popen([sys.executable, "-c", deaf, *sys.argv[1:]])
time.sleep(600)
"""


@pytest.fixture
def family(tmp_path: Path) -> Child:
    (tmp_path / "family.py").write_text(FAMILY)
    mark = tmp_path / "mark"
    started = Child(
        ["family", str(mark), "argument"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
    )
    assert eventually(mark.exists)
    return started


def test_a_module_runs_with_its_arguments(family: Child, tmp_path: Path) -> None:
    try:
        assert family.running
        assert (tmp_path / "mark").read_text() == f"{tmp_path / 'mark'} argument"
    finally:
        family.stop()


def test_stopping_ends_grandchildren_that_do_not_listen(family: Child) -> None:
    assert len(members(family.pid)) == 2
    family.stop()
    assert members(family.pid) == []
    assert not family.running
    family.stop()


def test_the_whole_family_ends_with_its_parents_pipe(family: Child) -> None:
    assert family._process.stdin is not None
    family._process.stdin.close()
    assert eventually(lambda: members(family.pid) == [])
    family.stop()


def test_a_leader_that_was_killed_leaves_grandchildren_to_stop(family: Child) -> None:
    os.kill(family.pid, signal.SIGKILL)
    assert eventually(lambda: not family.running)
    assert len(members(family.pid)) == 1
    family.stop()
    assert members(family.pid) == []


def test_its_output_can_go_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "talk.py").write_text("import sys; print('out'); print('err', file=sys.stderr)")
    with (tmp_path / "log").open("wb") as output:
        talking = Child(
            ["talk"], env={**os.environ, "PYTHONPATH": str(tmp_path)}, output=output.fileno()
        )
        assert eventually(lambda: not talking.running)
        talking.stop()
    assert sorted((tmp_path / "log").read_text().split()) == ["err", "out"]


def test_zombies_are_no_members() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], start_new_session=True) as process:
        assert eventually(lambda: members(process.pid) == [])
    assert process.returncode == 0


def test_a_command_line_is_that_of_the_process() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        ended = process.pid
    assert command_line(ended) == ""
    # Which is pytest, or a worker of it.
    assert Path(sys.executable).name in command_line(os.getpid())


def test_a_free_port_is_free_until_it_is_bound() -> None:
    port = free_port()
    require_free(port, purpose="a test", option="--port")
    assert not accepts(port)
    with socket.create_server(("127.0.0.1", port)):
        assert accepts(port)
        with pytest.raises(CommandError) as caught:
            require_free(port, purpose="a test", option="--port")
    assert str(caught.value) == (
        f"port {port} for a test is in use: stop the process that uses it, or choose another"
        " with --port"
    )
