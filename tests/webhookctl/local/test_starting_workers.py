"""Workers of the local runtime: their start during a code update, and their log lines."""

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

from tests.webhookctl.local.projects import eventually
from webhookctl.local.processes.guarded_ministack import keep_starting_workers, wait_for_logs

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


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """A worker's two events: its code is unpacked, and its process may start."""
    ready, go, start = threading.Event(), threading.Event(), subprocess.Popen

    def waits(*arguments: Any, **options: Any) -> Any:
        ready.set()
        assert go.wait(30)
        return start(*arguments, **options)

    monkeypatch.setattr(lambda_runtime.subprocess, "Popen", waits)
    yield ready, go
    go.set()


def test_a_worker_that_is_dropped_before_its_process_starts_has_all_its_modules(
    unpacked: tuple[threading.Event, threading.Event],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(lambda_runtime.tempfile, "tempdir", str(tmp_path))
    # The original is restored after the test.
    monkeypatch.setattr(
        lambda_runtime.Worker, "_discard_tmpdir", lambda_runtime.Worker._discard_tmpdir
    )
    keep_starting_workers()
    ready, go = unpacked
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("lambda_function.py", CODE)
        archive.writestr("compiled_manifest.py", "MANIFEST = 'whole'")
    worker = lambda_runtime.Worker("processor", CONFIG, code.getvalue())
    with ThreadPoolExecutor(1) as pool:
        invocation = pool.submit(worker.invoke, {}, "id-1")
        assert ready.wait(30)
        lambda_runtime.kill_workers([worker])
        go.set()
        answer = invocation.result()

    assert (answer["status"], answer.get("result")) == ("ok", "whole"), answer
    assert eventually(lambda: not any(tmp_path.iterdir()))
    assert worker._proc is None


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
