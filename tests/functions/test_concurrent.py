"""A lane with `runs_per_invocation`: the runs of a batch begin together, each ends for itself."""

import json
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest
from moto import mock_aws

from tests.contract.resources import create_queues
from tests.functions.account import Account, open_account
from tests.functions.bundles import build
from tests.functions.embedded_metrics import points
from tests.functions.inbox import SECRET, Inbox
from tests.waiting import DEADLINE
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import Status
from webhookctl.local.processes import sink

LANE = "waiting"
# Seconds of an invocation of a handler that hangs: it is abandoned two seconds before the end. The
# clock stands still, so that no run begins too late beside it.
REMAINING = 6.0
HANDLER = "waiting.meet"
CONCURRENT = """
[lanes.waiting]
runs_per_invocation = 3
"""


class WaitingAccount(Account):
    """An account with a second lane; its processor is that lane's."""

    @property
    def environment(self) -> dict[str, str]:
        dead = {LANE: self.dead_letters.rpartition("/")[2]}
        return {**super().environment, "DLQ_NAMES": json.dumps(dead), "LANE": LANE}


@pytest.fixture(scope="module")
def built(_sink: sink.Sink, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    directory = tmp_path_factory.mktemp("concurrent") / "functions"
    manifest = build(
        directory, sink_url="http://127.0.0.1:1", sources=CONCURRENT, laboratory=(LANE,)
    )
    return directory, manifest


@pytest.fixture
def account() -> Iterator[Account]:
    with mock_aws():
        plain = open_account()
        queue, dead = create_queues(plain.clients["sqs"], f"inbox-{LANE}", max_receive_count=5)
        opened = WaitingAccount(
            plain.clients, plain.table_name, plain.bucket, queue, dead, standard=plain.queue
        )
        opened.set_secret("acme", SECRET)
        yield opened


def delivered(inbox: Inbox, *told: str) -> list[dict[str, Any]]:
    """Delivers an event for each; returns their messages in the same order."""
    for number, each in enumerate(told):
        answer = inbox.deliver("meeting", event_id=f"evt-{number}", told=each)
        assert answer.status == 202
    messages = inbox.account.receive()
    return sorted(messages, key=lambda message: json.loads(message["Body"])["event_id"])


def statuses(inbox: Inbox, number: int) -> list[Status | None]:
    runs = [inbox.account.run("acme", f"evt-{n}", HANDLER) for n in range(number)]
    return [run.status if run else None for run in runs]


def test_the_runs_of_a_batch_are_made_at_the_same_time(inbox: Inbox) -> None:
    """None of the handlers returns before three have begun."""
    messages = delivered(inbox, "meet", "meet", "meet")

    assert inbox.process(*messages) == []

    assert statuses(inbox, 3) == [Status.DONE] * 3


def test_each_run_has_its_own_log_lines_and_result(inbox: Inbox) -> None:
    messages = delivered(inbox, "meet", "fail", "meet")
    inbox.output.read()

    assert inbox.process(*messages) == []

    assert statuses(inbox, 3) == [Status.DONE, Status.FAILED, Status.DONE]
    entries = inbox.output.read()
    logs = [entry for entry in entries if "message" in entry]
    outcomes = {e["event_id"]: e["outcome"] for e in logs if "outcome" in e}
    assert outcomes == {"evt-0": "done", "evt-1": "failed", "evt-2": "done"}
    # The handler's own lines as well.
    own = {entry["event_id"]: entry["told"] for entry in logs if entry.get("message") == "met"}
    assert own == {"evt-0": "meet", "evt-1": "fail", "evt-2": "meet"}
    counted = [point for entry in entries for point in points(entry)]
    runs = [p for p in counted if p.name == "Runs" and "handler" in p.dimensions]
    assert sorted(p.dimensions["outcome"] for p in runs) == ["done", "done", "failed"]


def test_a_line_after_the_batch_has_no_key_of_a_run(inbox: Inbox) -> None:
    inbox.process(*delivered(inbox, "meet", "meet", "meet"))
    inbox.output.read()

    inbox.module("processor").logger.info("later")

    [later] = inbox.output.logs()
    assert {"event_id", "handler", "source"}.isdisjoint(later)


def test_only_the_messages_of_failed_receives_are_kept(inbox: Inbox) -> None:
    """A message of a run that another message has leased, and a foreign one, end beside it."""
    [message] = delivered(inbox, "alone")
    foreign = {**message, "Body": "{}", "MessageId": "foreign"}

    kept = inbox.process(message, {**message, "MessageId": "copy"}, foreign)

    assert "foreign" in kept
    assert statuses(inbox, 1) == [Status.DONE]
    run = inbox.account.run("acme", "evt-0", HANDLER)
    assert run is not None
    assert run.attempt_count == 1


def test_more_records_than_processors_are_handled_in_turns(inbox: Inbox) -> None:
    """Such a batch comes from a mapping that was changed by hand."""
    messages = delivered(inbox, *["meet"] * 6)

    assert inbox.process(*messages) == []

    assert statuses(inbox, 6) == [Status.DONE] * 6


@pytest.mark.usefixtures("clock")
def test_a_handler_that_does_not_stop_ends_the_process_after_the_others(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = delivered(inbox, "hang", "alone", "alone")
    module = inbox.module("processor")
    seen: list[list[Status | None]] = []

    def end(status: int) -> NoReturn:
        seen.append(statuses(inbox, 3))
        raise SystemExit(status)

    monkeypatch.setattr(os, "_exit", end)
    inbox.output.read()
    with pytest.raises(SystemExit):
        inbox.process(*messages, remaining=REMAINING)

    assert seen == [[Status.FAILED, Status.DONE, Status.DONE]]
    # The metrics were written before the end, and they are of all runs.
    runs = [p for p in inbox.output.points() if p.name == "Runs" and "handler" in p.dimensions]
    assert sum(sum(point.values) for point in runs) == 3
    import_module("handlers.waiting").HANGING.set()
    for thread in module.executor._abandoned:
        thread.join(DEADLINE)


@pytest.mark.usefixtures("clock")
def test_a_handler_that_does_not_stop_ends_the_process_if_a_result_cannot_be_logged(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The invocation fails then, and the next one of the process would run beside the handler."""
    messages = delivered(inbox, "hang", "alone")
    module = inbox.module("processor")

    def end(status: int) -> NoReturn:
        raise SystemExit(status)

    def fail(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("the log is broken")

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr("processor.batch.observe", fail)
    with pytest.raises(SystemExit):
        inbox.process(*messages, remaining=REMAINING)

    import_module("handlers.waiting").HANGING.set()
    for thread in module.executor._abandoned:
        thread.join(DEADLINE)
