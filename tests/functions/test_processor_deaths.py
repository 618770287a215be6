"""Handlers that take their process with them, in processes of their own on the local runtime."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.functions.account import Account, copy_of, open_account
from tests.functions.bundles import FUNCTIONS
from tests.functions.conftest import Start
from tests.functions.inbox import SECRET, Inbox
from tests.functions.invocations import sqs_event, sqs_record
from tests.waiting import DEADLINE
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.timestamps import to_ms

ROOT = FUNCTIONS.parent
# Seconds of an invocation; an attempt ends two seconds before the end. A handler that does not
# hang has all the time that a slow machine may need.
USUAL = 60.0
SHORT = 8.0
# The end of a lease, for a worker that a slow machine lets start late.
IN_AN_HOUR = to_ms(datetime.now(UTC) + timedelta(hours=1))
WORKER = """
import json, sys
from processor.lambda_function import lambda_handler
from tests.functions.invocations import LambdaContext
answer = lambda_handler(json.load(sys.stdin), LambdaContext("processor", float(sys.argv[1])))
print(json.dumps({"answer": answer}))
"""


@dataclass
class Worker:
    """Runs the processor as Lambda does: one process, one invocation at a time."""

    environment: dict[str, str]

    def begin(self, *messages: dict[str, Any], remaining: float = USUAL) -> subprocess.Popen[str]:
        """Begins an invocation with a batch."""
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(remaining)],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(sqs_event(map(sqs_record, messages))))
        process.stdin.close()
        process.stdin = None
        return process

    def process(self, message: dict[str, Any], *, remaining: float = USUAL) -> "Ended":
        process = self.begin(message, remaining=remaining)
        output, errors = process.communicate(timeout=DEADLINE)
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        return Ended(process.returncode, lines, errors)


@dataclass
class Ended:
    """How a process ended and what it wrote."""

    status: int
    lines: list[dict[str, Any]]
    errors: str

    @property
    def kept(self) -> list[str] | None:
        """The ids to be kept, None where the process ended without an answer."""
        answers = [line["answer"] for line in self.lines if "answer" in line]
        return [f["itemIdentifier"] for f in answers[0]["batchItemFailures"]] if answers else None


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The local runtime: a state that outlives the workers."""
    if find_spec("ministack") is None:
        refuse = pytest.fail if os.environ.get("CI") else pytest.skip
        refuse("ministack is not installed: make setup")
    from webhookctl.local.processes.ministack import Ministack  # noqa: PLC0415 - needs ministack

    ministack = Ministack(tmp_path_factory.mktemp("ministack"))
    # Those of the tests' environment.
    ministack.credentials = dict.fromkeys(ministack.credentials, "test")
    with ministack as running:
        yield running.endpoint


@pytest.fixture
def inbox(endpoint: str, start: Start, monkeypatch: pytest.MonkeyPatch) -> Inbox:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    account = open_account(endpoint, name=f"deaths-{uuid4().hex}")
    account.set_secret("acme", SECRET)
    return start(account)


@pytest.fixture
def worker(inbox: Inbox, bundle: Path) -> Worker:
    path = os.pathsep.join(map(str, (bundle, FUNCTIONS, ROOT)))
    names = {"PYTHONPATH": path, "POWERTOOLS_SERVICE_NAME": "processor"}
    return Worker({**os.environ, **inbox.account.environment, **names})


def message_of(account: Account) -> dict[str, Any]:
    [message] = account.receive()
    return message


def run(inbox: Inbox, handler: str) -> Run:
    found = inbox.account.run("acme", "evt-1", handler)
    assert found is not None
    return found


def test_a_handler_that_hangs_fails_in_time_and_its_process_ends(
    inbox: Inbox, worker: Worker
) -> None:
    """No worker outlives its lease: what still runs after its time would do so unseen."""
    inbox.deliver("lab.hang")
    message = message_of(inbox.account)

    ended = worker.process(message, remaining=SHORT)

    assert (ended.status, ended.kept) == (1, None)
    failed = run(inbox, "lab.hang")
    assert failed.status is Status.FAILED
    assert failed.last_error.startswith("still running after ")
    assert [attempt.outcome for attempt in failed.attempts] == ["timed out"]
    [attempt] = failed.attempts
    assert (attempt.ended_at - attempt.started_at).total_seconds() < SHORT
    assert ended.lines[-1]["message"].startswith("ending the process")
    assert any("Runs" in line for line in ended.lines)

    # Its message comes back, to a process that knows nothing of it: a copy has replaced it.
    assert worker.process(message).kept == []
    retried = worker.process(copy_of(message))

    assert (retried.status, retried.kept) == (0, [])
    assert run(inbox, "lab.hang").status is Status.DONE


def test_a_handler_that_kills_its_process_is_tried_again_when_its_lease_is_over(
    inbox: Inbox, worker: Worker
) -> None:
    inbox.deliver("lab.die")
    message = message_of(inbox.account)

    assert worker.process(message).status == 7

    lost = run(inbox, "lab.die")
    assert (lost.status, lost.attempt_count) == (Status.PROCESSING, 1)
    # Received too early, it must wait: the worker may still be alive.
    inbox.account.change(lost, claimed_until=IN_AN_HOUR)
    assert worker.process(message).kept == [message["MessageId"]]
    assert run(inbox, "lab.die").attempt_count == 1

    inbox.account.change(lost, claimed_until=1)
    retried = worker.process(message)

    assert (retried.status, retried.kept) == (0, [])
    done = run(inbox, "lab.die")
    assert (done.status, done.attempt_count) == (Status.DONE, 2)
    assert [attempt.outcome for attempt in done.attempts] == ["lost", "done"]


def test_a_module_that_hangs_when_it_is_imported_spends_an_attempt_like_a_handler(
    inbox: Inbox, worker: Worker, bundle: Path
) -> None:
    module = bundle / "handlers" / "fragile.py"
    whole = module.read_text()
    module.write_text(f"import time\ntime.sleep(600)\n{whole}")
    inbox.deliver("lab.fragile")
    message = message_of(inbox.account)

    assert worker.process(message, remaining=SHORT).status == 1
    assert run(inbox, "fragile.touch").status is Status.FAILED

    module.write_text(whole)
    assert worker.process(copy_of(message)).kept == []
    assert run(inbox, "fragile.touch").status is Status.DONE
