"""Each function's own role is enough for all it does, where policies are enforced."""

import random
from pathlib import Path

import pytest

from tests.e2e.guarded_inbox import GuardedInbox
from tests.e2e.http_call import call
from tests.e2e.inquiry import fresh
from tests.e2e.test_reconciled import (
    EVERY_FIFTH,
    OF_THE_DLQ,
    accept_without_sending,
    reconcile,
    tidy,
)
from webhook_inbox.domain.model import Status

LARGE = random.Random(1).randbytes(64 * 1024)


def test_policies_are_enforced(guarded: GuardedInbox) -> None:
    event_id, headers = _signed(guarded, b"{}")
    with guarded.without("IngestFunctionName", "dynamodb:PutItem"):
        # Once: without this right a delivery has no other answer.
        url = f"{guarded.front_url}/webhooks/lab"
        answer = call(url, "POST", body=b"{}", headers=headers, trust=guarded.trust)
        assert answer.status == 503
    assert guarded.overview("lab", event_id) is None


@pytest.mark.parametrize("body", [b"{}", LARGE], ids=["inline", "spilled"])
def test_an_event_is_accepted_and_done(guarded: GuardedInbox, body: bytes) -> None:
    event_id, headers = _signed(guarded, body)
    headers["content-type"] = "application/octet-stream"

    answer = guarded.post("lab", body, headers)

    assert answer.was_accepted, answer
    assert guarded.settled("lab", event_id).event.body == body
    # A duplicate reads where a new event only writes.
    assert guarded.post("lab", body, headers).json["status"] == "duplicate"


def test_a_run_is_retried_moved_to_the_dlq_and_replayed(guarded: GuardedInbox, gate: Path) -> None:
    event_id = guarded.accept("task", mood="raise", **{"while": str(gate)})
    run = guarded.becomes(event_id, "lab.work", Status.DEAD_LETTER)
    guarded.moved_to_dlq(event_id, id_=run.message_id)
    gate.unlink()

    report = guarded.replay(source="lab", error_contains="own words")

    assert report["counts"] == {"replayed": 1}
    assert report["dlq_removed"] >= 1
    guarded.settled("lab", event_id)


def test_the_reconciler_finds_and_sends_what_was_lost(guarded: GuardedInbox) -> None:
    tidy(guarded)
    event_id = accept_without_sending(guarded, "patient")

    assert reconcile(guarded, EVERY_FIFTH)["adopted"] == 1

    guarded.settled("lab", event_id)


def test_the_reconciler_sends_an_overdue_run_again(guarded: GuardedInbox) -> None:
    tidy(guarded)
    event_id = accept_without_sending(guarded, "task")
    guarded.lose_pending("lab", event_id, "lab.work")

    assert reconcile(guarded, EVERY_FIFTH)["resent"] == 1

    guarded.settled("lab", event_id)


def test_the_reconciler_clears_the_dlq(guarded: GuardedInbox, gate: Path) -> None:
    event_id = guarded.accept("task", mood="raise", **{"while": str(gate)})
    run = guarded.becomes(event_id, "lab.work", Status.DEAD_LETTER)
    letter = guarded.moved_to_dlq(event_id, id_=run.message_id)
    gate.unlink()
    guarded.client("sqs").send_message(QueueUrl=guarded.queue(), MessageBody=letter["Body"])
    guarded.settled("lab", event_id)

    assert reconcile(guarded, OF_THE_DLQ)["dlq_removed"] >= 1
    assert guarded.dead_letters(event_id) == []


def _signed(inbox: GuardedInbox, body: bytes) -> tuple[str, dict[str, str]]:
    event_id = fresh()
    return event_id, inbox.signed("lab", "digest", body, event_id=event_id)
