"""Workers of the local runtime: those that an update drops, and their log lines."""

import io
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ministack.core import lambda_runtime

from tests.waiting import DEADLINE, eventually
from webhookctl.local.processes.guarded_ministack import finish_invocations, wait_for_logs

CODE = """
import compiled_manifest

def lambda_handler(event, context):
    return compiled_manifest.MANIFEST
"""
CONFIG = {
    "FunctionName": "processor",
    "FunctionArn": "arn:aws:lambda:us-east-1:000000000000:function:processor",
    "Handler": "lambda_function.lambda_handler",
    "Runtime": "python3.13",
    "Timeout": 30,
}


SLOW = """
import os, pathlib, time

def lambda_handler(event, context):
    pathlib.Path(event["begun"]).write_text(str(os.getpid()))
    while not pathlib.Path(event["go"]).exists():
        time.sleep(0.01)
    return "finished"
"""


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The directory of the workers' files; ministack drops workers as in a session."""
    directory = tmp_path / "workers"
    directory.mkdir()
    monkeypatch.setattr(lambda_runtime.tempfile, "tempdir", str(directory))
    # The original is restored after the test.
    monkeypatch.setattr(lambda_runtime, "kill_workers", lambda_runtime.kill_workers)
    finish_invocations()
    return directory


def worker(**modules: str) -> Any:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        for name, text in modules.items():
            archive.writestr(f"{name}.py", text)
    return lambda_runtime.Worker("processor", CONFIG, code.getvalue())


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """A worker's two events: its code is unpacked, and its process may start."""
    ready, go, start = threading.Event(), threading.Event(), subprocess.Popen

    def waits(*arguments: Any, **options: Any) -> Any:
        ready.set()
        assert go.wait(DEADLINE)
        return start(*arguments, **options)

    monkeypatch.setattr(lambda_runtime.subprocess, "Popen", waits)
    yield ready, go
    go.set()


def test_a_worker_that_is_dropped_before_its_process_starts_has_all_its_modules(
    workers: Path, unpacked: tuple[threading.Event, threading.Event]
) -> None:
    ready, go = unpacked
    dropped = worker(lambda_function=CODE, compiled_manifest="MANIFEST = 'whole'")
    with ThreadPoolExecutor(1) as pool:
        invocation = pool.submit(dropped.invoke, {}, "id-1")
        assert ready.wait(DEADLINE)
        lambda_runtime.kill_workers([dropped])
        go.set()
        answer = invocation.result()

    assert (answer["status"], answer.get("result")) == ("ok", "whole"), answer
    assert eventually(lambda: not any(workers.iterdir()))
    assert dropped._proc is None


def test_a_worker_that_is_dropped_during_an_invocation_finishes_it(
    workers: Path, tmp_path: Path
) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    dropped = worker(lambda_function=SLOW)
    with ThreadPoolExecutor(1) as pool:
        invocation = pool.submit(dropped.invoke, {"begun": str(begun), "go": str(go)}, "id-1")
        assert eventually(lambda: begun.exists() and begun.read_text() != "")
        lambda_runtime.kill_workers([dropped])
        go.touch()
        answer = invocation.result()

    assert (answer["status"], answer.get("result")) == ("ok", "finished"), answer
    assert eventually(lambda: not any(workers.iterdir()))
    process = int(begun.read_text())
    assert eventually(lambda: not Path(f"/proc/{process}").exists())


@pytest.fixture
def logging_worker(monkeypatch: pytest.MonkeyPatch) -> Any:
    original = lambda_runtime.Worker._drain_stderr_bounded
    monkeypatch.setattr(lambda_runtime.Worker, "_drain_stderr_bounded", original)
    wait_for_logs()
    return lambda_runtime.Worker("processor", CONFIG, b"")


def test_a_worker_has_all_lines_of_an_invocation(logging_worker: Any) -> None:
    lines = [str(number) for number in range(2000)]
    for line in lines[:1000]:
        logging_worker._stderr_queue.put(line)
    late = threading.Thread(target=lambda: [*map(logging_worker._stderr_queue.put, lines[1000:])])
    late.start()

    # The patience is longer than any pause between two lines here.
    found = logging_worker._drain_stderr_bounded(idle_confirm=1.0, hard_cap=30.0)

    late.join()
    assert found.splitlines() == lines


def test_an_invocation_that_logs_nothing_has_no_line(logging_worker: Any) -> None:
    assert logging_worker._drain_stderr_bounded() == ""


def test_a_worker_that_never_stops_to_log_is_left_after_a_while(logging_worker: Any) -> None:
    stopping = threading.Event()

    def log() -> None:
        while not stopping.is_set():
            logging_worker._stderr_queue.put("again")

    thread = threading.Thread(target=log)
    thread.start()
    found = logging_worker._drain_stderr_bounded(hard_cap=0.05)
    stopping.set()
    thread.join()

    assert "again" in found
