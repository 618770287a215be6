"""The reconciler finds and sends lost runs; its clock is set ahead."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from tests.e2e.inquiry import Inquiry, fresh
from tests.e2e.whole_inbox import WholeInbox
from webhook_inbox import providers
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore
from webhook_inbox.adapters.system import SystemClock, SystemRandomness
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.ports import Outgoing, Ports
from webhook_inbox.domain.secret_document import SOURCES
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.reconciler.received import CURSORS
from webhook_inbox.reconciler.reconciler import SWEEPS

EVERY_FIFTH = "0,5,10,15,20,25,30,35,40,45,50,55"
OF_THE_DLQ = "37"


class DeadQueue:
    """A queue that takes nothing."""

    fifo = False

    def send(self, messages: Sequence[Outgoing]) -> Sequence[Outgoing]:
        return messages


def accept_without_sending(inbox: Inquiry, type_: str) -> str:
    """Stores an event with ingest's own code, and loses its messages."""
    store = SecretsManagerStore(
        inbox.client("secretsmanager"), inbox.documents.id(SOURCES), keys={}
    )
    ports = Ports(
        table=inbox.table,
        blobs=S3Blobs(inbox.client("s3"), inbox.outputs["BucketName"]),
        clock=SystemClock(),
        randomness=SystemRandomness(),
        queues=dict.fromkeys(inbox.manifest.lanes, DeadQueue()),
        secret_store=store,
    )
    ingest = Ingest(inbox.manifest, ports, providers=providers.load)
    event_id, body = fresh(), b"{}"
    headers = inbox.signed("lab", type_, body, event_id=event_id)
    delivery = Delivery("lab", "POST", "/webhooks/lab", "", headers, body, datetime.now(UTC))
    assert ingest.receive(delivery).outcome is IngestOutcome.UNAVAILABLE
    return event_id


def start_over(inbox: Inquiry) -> None:
    """Removes the cursors, which a pass with the shifted clock has moved past the present."""
    for name in (CURSORS, SWEEPS):
        inbox.table.delete(name)


def reconcile(inbox: Inquiry, minutes: str) -> dict[str, int]:
    """Invokes the reconciler in one of these minutes; returns what it counted."""
    start_over(inbox)
    inbox.set_variables("ReconcilerFunctionName", CLOCK_MINUTES=minutes)
    report = inbox.invoke("ReconcilerFunctionName", {})
    assert report["complete"], report
    assert report["errors"] == []
    counts: dict[str, int] = report["counts"]
    return counts


def tidy(inbox: Inquiry) -> None:
    """Lets the reconciler find what others left behind: the next pass counts what is ours."""
    reconcile(inbox, EVERY_FIFTH)


def test_runs_whose_messages_were_lost_are_sent(inbox: WholeInbox) -> None:
    tidy(inbox)
    twin = accept_without_sending(inbox, "task")
    other_lane = accept_without_sending(inbox, "patient")
    assert inbox.runs("lab", twin) == {}

    assert reconcile(inbox, EVERY_FIFTH)["adopted"] == 2

    assert [run.attempt_count for run in inbox.settled("lab", twin).runs] == [1]
    assert [run.attempt_count for run in inbox.settled("lab", other_lane).runs] == [1]
    assert "adopted" not in reconcile(inbox, EVERY_FIFTH)


def test_the_next_delivery_sends_what_was_lost(inbox: WholeInbox) -> None:
    event_id = accept_without_sending(inbox, "task")

    answer = inbox.deliver("lab", "task", b"{}", event_id=event_id)

    assert answer.json["status"] == "duplicate"
    inbox.settled("lab", event_id)


def test_two_reconcilers_at_once_send_a_run_once(inbox: WholeInbox) -> None:
    tidy(inbox)
    event_id = accept_without_sending(inbox, "task")
    start_over(inbox)

    reports = inbox.at_once(3, lambda: inbox.invoke("ReconcilerFunctionName", {}))

    assert sum(report["counts"].get("adopted", 0) for report in reports) == 1
    inbox.settled("lab", event_id)
    assert [effect["requests"] for effect in inbox.effects(event_id).values()] == [1]


def test_a_run_whose_message_was_lost_is_sent_again(inbox: WholeInbox) -> None:
    tidy(inbox)
    event_id = accept_without_sending(inbox, "task")
    inbox.lose_pending("lab", event_id, "lab.work")

    assert reconcile(inbox, EVERY_FIFTH)["resent"] == 1

    inbox.settled("lab", event_id)


def test_a_copy_of_a_finished_run_leaves_the_dlq(inbox: WholeInbox) -> None:
    event_id = inbox.accept("task")
    inbox.settled("lab", event_id)
    reference = {
        "v": 1,
        "source": "lab",
        "event_id": event_id,
        "handler": "lab.work",
        "generation": 0,
    }
    inbox.client("sqs").send_message(QueueUrl=inbox.dlq(), MessageBody=json.dumps(reference))

    assert reconcile(inbox, OF_THE_DLQ)["dlq_removed"] >= 1

    assert inbox.dead_letters(event_id) == []
