"""A worker that makes several runs is killed, on the local runtime."""

import json
import signal
import subprocess
from uuid import uuid4

import pytest

from tests.contract.resources import create_queues
from tests.functions.account import open_account
from tests.functions.conftest import Start
from tests.functions.inbox import SECRET, Inbox
from tests.functions.test_concurrent import (
    HANDLER,
    LANE,
    WaitingAccount,
    built,
    delivered,
    statuses,
)
from tests.functions.test_processor_deaths import IN_AN_HOUR, Worker, endpoint, worker
from tests.waiting import DEADLINE, eventually
from webhook_inbox.domain.model import Run, Status

__all__ = ["built", "endpoint", "worker"]


@pytest.fixture
def inbox(endpoint: str, start: Start, monkeypatch: pytest.MonkeyPatch) -> Inbox:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    name = f"concurrent-{uuid4().hex}"
    plain = open_account(endpoint, name=name)
    lane = create_queues(plain.clients["sqs"], f"{name}-{LANE}", max_receive_count=5)
    names = plain.table_name, plain.bucket
    account = WaitingAccount(plain.clients, *names, *lane, standard=plain.queue)
    account.set_secret("acme", SECRET)
    return start(account)


def kept(process: subprocess.Popen[str]) -> list[str]:
    """Waits for a worker's answer; returns the ids of the messages that stay."""
    output, _ = process.communicate(timeout=DEADLINE)
    [answer] = [json.loads(line)["answer"] for line in output.splitlines() if '"answer"' in line]
    return sorted(failure["itemIdentifier"] for failure in answer["batchItemFailures"])


def runs(inbox: Inbox) -> list[Run]:
    found = [inbox.account.run("acme", f"evt-{number}", HANDLER) for number in range(3)]
    return [run for run in found if run is not None]


def test_a_killed_worker_loses_the_attempts_that_had_not_ended_and_no_other(
    inbox: Inbox, worker: Worker
) -> None:
    """The response is lost, so the message of the run that was settled comes back as well."""
    messages = delivered(inbox, "alone", "hang", "hang")
    ids = [message["MessageId"] for message in messages]
    before = [Status.DONE, Status.PROCESSING, Status.PROCESSING]

    killed = worker.begin(*messages)
    eventually(lambda: statuses(inbox, 3) == before, what=lambda: str(statuses(inbox, 3)))
    killed.kill()
    killed.communicate()

    assert killed.returncode == -signal.SIGKILL
    # Received before the leases are over: the worker may still be alive.
    for run in runs(inbox)[1:]:
        inbox.account.change(run, claimed_until=IN_AN_HOUR)
    assert kept(worker.begin(*messages)) == sorted(ids[1:])
    assert statuses(inbox, 3) == before
    for run in runs(inbox)[1:]:
        inbox.account.change(run, claimed_until=1)
    assert kept(worker.begin(*messages)) == []
    assert statuses(inbox, 3) == [Status.DONE] * 3
    outcomes = [[attempt.outcome for attempt in run.attempts] for run in runs(inbox)]
    assert outcomes == [["done"], ["lost", "done"], ["lost", "done"]]
