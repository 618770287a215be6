"""Failed runs are retried, moved to the DLQ by SQS, and finished by a replay."""

import json
from pathlib import Path

import pytest

from tests.e2e.inquiry import fresh
from tests.e2e.project import REPOSITORY
from tests.e2e.whole_inbox import WholeInbox
from webhook_inbox.domain.model import Status

PAYLOADS = sorted((REPOSITORY / "events" / "replay").glob("*.json"))
WORDS = "exhausted: RuntimeError: the handler's own words"


@pytest.fixture
def dead(inbox: WholeInbox, gate: Path) -> str:
    """An event whose run was given up while the gate existed; the gate is gone now."""
    event_id = inbox.accept("task", mood="raise", **{"while": str(gate)})
    run = inbox.becomes(event_id, "lab.work", Status.DEAD_LETTER)
    inbox.moved_to_dlq(event_id, id_=run.message_id)
    gate.unlink()
    return event_id


def test_a_failing_handler_is_tried_again_then_given_up_and_its_message_moved_by_sqs(
    inbox: WholeInbox, gate: Path
) -> None:
    event_id = inbox.accept("task", mood="raise", **{"while": str(gate)})

    run = inbox.becomes(event_id, "lab.work", Status.DEAD_LETTER)

    assert [attempt.outcome for attempt in run.attempts] == ["failed", "dead"]
    assert (run.attempt_count, run.last_error) == (2, WORDS)
    inbox.moved_to_dlq(event_id, id_=run.message_id)
    dead = [run.event_id for _, run in inbox.ledger.dead_runs() if run is not None]
    assert dead.count(event_id) == 1


def test_replay_finishes_it_after_the_fix_under_the_same_idempotency_key(
    inbox: WholeInbox, dead: str
) -> None:
    (key,) = inbox.effects(dead)
    assert inbox.effects(dead)[key]["requests"] == 2

    report = inbox.replay(source="lab", event_ids=[dead], reason="mended", requested_by="test")

    assert report["counts"] == {"replayed": 1}
    (run,) = inbox.settled("lab", dead).runs
    # The second attempt and the replay each had a message of their own.
    assert (run.attempt_count, run.generation) == (3, 2)
    assert [(entry["by"], entry["reason"]) for entry in run.replays] == [("test", "mended")]
    assert {key: effect["requests"] for key, effect in inbox.effects(dead).items()} == {key: 3}


def test_replay_selects_the_dead_by_their_error_and_a_dry_run_changes_nothing(
    inbox: WholeInbox, dead: str
) -> None:
    before = inbox.run(dead, "lab.work")

    report = inbox.replay(source="lab", error_contains="own words", dry_run=True)

    assert dead in [entry["event_id"] for entry in report["sample"]]
    assert inbox.run(dead, "lab.work") == before
    assert inbox.replay(handler="lab.work", type="task")["counts"]["replayed"] >= 1
    inbox.settled("lab", dead)


def test_replay_drops_the_copy_in_the_dlq(inbox: WholeInbox, dead: str) -> None:
    inbox.replay(source="lab", event_ids=[dead])

    assert inbox.dead_letters(dead) == []
    inbox.settled("lab", dead)


def test_a_finished_run_is_not_replayed(inbox: WholeInbox) -> None:
    event_id = inbox.accept("task")
    before = inbox.settled("lab", event_id)

    assert inbox.replay(event_ids=[event_id])["counts"] == {"finished": 1}
    assert inbox.overview("lab", event_id) == before


def test_the_redrive_of_sqs_leads_to_another_round(inbox: WholeInbox, dead: str) -> None:
    before = inbox.run(dead, "lab.work")
    letters = inbox.dead_letters(dead, hidden_for=600)
    assert before.message_id in [letter["MessageId"] for letter in letters]

    # As StartMessageMoveTask does: the same body, a new message in every other respect.
    sqs = inbox.client("sqs")
    sent = sqs.send_message(QueueUrl=inbox.queue(), MessageBody=letters[0]["Body"])
    for letter in letters:
        sqs.delete_message(QueueUrl=inbox.dlq(), ReceiptHandle=letter["ReceiptHandle"])

    (run,) = inbox.settled("lab", dead).runs
    assert (run.attempt_count, run.attempts_in_round) == (3, 1)
    assert run.status is Status.DONE
    assert sent["MessageId"] != before.message_id
    assert [effect["requests"] for effect in inbox.effects(dead).values()] == [3]
    assert inbox.dead_letters(dead) == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("text of another application: MARK", id="text"),
        pytest.param('{"v": 99, "source": "lab"}', id="version"),
        pytest.param('{"v": 1, "source": "lab", "event_id": "", "generation": 0}', id="field"),
    ],
)
def test_a_message_that_is_not_ours_ends_in_the_dlq_and_not_in_a_loop(
    inbox: WholeInbox, body: str
) -> None:
    mark = fresh()
    text = body.replace("MARK", mark) if "{" not in body else body[:-1] + f', "x": "{mark}"}}'
    sqs = inbox.client("sqs")
    sent = sqs.send_message(QueueUrl=inbox.queue(), MessageBody=text)

    assert inbox.moved_to_dlq(mark)["MessageId"] == sent["MessageId"]
    event_id = inbox.accept("task")
    inbox.settled("lab", event_id)
    assert len(inbox.dead_letters(mark)) == 1


def test_a_bad_replay_payload_is_refused_with_the_field_and_the_remedy(inbox: WholeInbox) -> None:
    answer = inbox.client("lambda").invoke(
        FunctionName=inbox.outputs["ReplayFunctionName"], Payload=json.dumps({"limt": 3}).encode()
    )

    assert "FunctionError" in answer
    assert "limt: Extra inputs are not permitted" in answer["Payload"].read().decode()


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda file: file.stem)
def test_the_payloads_for_the_console_are_taken(inbox: WholeInbox, payload: Path) -> None:
    asked = {**json.loads(payload.read_text()), "dry_run": True}

    assert inbox.invoke("ReplayFunctionName", asked)["dry_run"] is True
