import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import eventually
from tests.webhookctl.local.assemblies import assemble
from webhookctl.errors import CommandError
from webhookctl.local.deployment.assembly import Assembly
from webhookctl.local.deployment.deploy import Deployer
from webhookctl.local.processes.ministack import Ministack, scrubbed
from webhookctl.local.processes.process_group import members


def _stuck_worker(ministack: Ministack, directory: Path) -> None:
    """Leaves a function that hangs in ministack's hands, deaf to SIGTERM."""
    code = """
import signal, time
from pathlib import Path

def lambda_handler(event, context):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(event["mark"]).touch()
    time.sleep(600)
"""
    outputs = Deployer(ministack.client).deploy(Assembly.read(assemble(directory, code=code)))
    mark = directory / "begun"
    ministack.client("lambda").invoke(
        FunctionName=outputs["FunctionName"],
        InvocationType="Event",
        Payload=json.dumps({"mark": str(mark)}).encode(),
    )
    assert eventually(mark.exists)


def test_it_answers_on_loopback_and_leaves_no_process(tmp_path: Path) -> None:
    with Ministack(tmp_path) as ministack:
        assert ministack.endpoint.startswith("http://127.0.0.1:")
        assert ministack.client("sts").get_caller_identity()["Account"] == "000000000000"
        assert members(ministack.pid) == [ministack.pid]
    assert not ministack.running
    assert members(ministack.pid) == []


def test_stopping_ends_a_worker_that_hangs_and_ignores_sigterm(tmp_path: Path) -> None:
    with Ministack(tmp_path) as ministack:
        _stuck_worker(ministack, tmp_path / "assembly")
        assert len(members(ministack.pid)) == 2
    assert members(ministack.pid) == []


def test_stopping_twice_is_fine_and_its_temporary_files_are_gone(tmp_path: Path) -> None:
    ministack = Ministack(tmp_path).start()
    ministack.stop()
    ministack.stop()
    assert [file.name for file in tmp_path.iterdir()] == ["ministack.log"]


PARENT = """
import sys, time
from pathlib import Path
from tests.webhookctl.local.test_ministack import _stuck_worker
from webhookctl.local.processes.ministack import Ministack
directory = Path(sys.argv[1])
ministack = Ministack(directory).start()
_stuck_worker(ministack, directory / "assembly")
print(ministack.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_survives_however_its_parent_dies(tmp_path: Path, number: int) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    with parent:
        assert parent.stdout is not None
        group = int(parent.stdout.readline())
        assert len(members(group)) == 2
        parent.send_signal(number)
    assert eventually(lambda: members(group) == [])


def test_a_child_that_is_killed_alone_is_noticed(tmp_path: Path) -> None:
    with Ministack(tmp_path) as ministack:
        os.kill(ministack.pid, signal.SIGKILL)
        assert eventually(lambda: not ministack.running)


def test_a_taken_port_is_not_mistaken_for_ours(tmp_path: Path) -> None:
    with Ministack(tmp_path / "first") as first:
        second = Ministack(tmp_path / "second", port=first.port)
        with pytest.raises(CommandError, match=f"port {first.port} for ministack is in use"):
            second.start()


def test_an_early_end_is_one_line_that_names_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {"PATH": os.environ["PATH"], "GATEWAY_PORT": "none"}
    monkeypatch.setattr("webhookctl.local.processes.ministack.scrubbed", lambda *_, **__: broken)
    ministack = Ministack(tmp_path)
    with pytest.raises(CommandError, match=r"exited while starting: see .*ministack\.log$"):
        ministack.start()
    assert "GATEWAY_PORT" in ministack.log.read_text() or "none" in ministack.log.read_text()


def test_the_developers_environment_does_not_reach_the_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = {
        "AWS_PROFILE": "production",
        "AWS_SESSION_TOKEN": "real",
        "AWS_ACCESS_KEY_ID": "AKIAREAL",
        "AWS_ENDPOINT_URL": "http://192.0.2.1:1",
        "HTTPS_PROXY": "http://192.0.2.1:2",
        "MINISTACK_ACCOUNT_ID": "999999999999",
        "PERSIST_STATE": "1",
    }
    for name, value in foreign.items():
        monkeypatch.setenv(name, value)
    own = Ministack(tmp_path).credentials
    made = scrubbed(tmp_path, port=4566, credentials=own)
    assert made["BIND_HOST"] == "127.0.0.1"
    assert set(made) & set(foreign) == {"AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"}
    assert {name: made[name] for name in own} == own


def test_our_own_clients_ignore_the_developers_profile(
    ministack: Ministack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "absent")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://192.0.2.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:2")
    assert ministack.client("sts").get_caller_identity()["Account"] == "000000000000"
