"""An operator's payloads, what is answered, and what is changed."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.functions.embedded_metrics import points
from tests.functions.faults import Fault, Faults
from tests.functions.inbox import Inbox
from webhook_inbox.domain.model import Status

ALL = {"status": ["dead_letter"]}
# Runs in other states than these are found by the index of received events, hour by hour.
AN_HOUR_AGO = (datetime.now(UTC) - timedelta(hours=1)).isoformat()


def handed_over(inbox: Inbox) -> list[dict[str, Any]]:
    """Returns what the work queue's messages say."""
    return [json.loads(message["Body"]) for message in inbox.account.receive()]


@pytest.fixture
def dead(inbox: Inbox) -> Inbox:
    """Three dead letters; their messages are in the DLQ."""
    for number in range(3):
        inbox.deliver("lab.permanent", event_id=f"evt-{number}")
        [message] = inbox.account.receive()
        inbox.process(message)
        # SQS does this after further receives; other tests cover the move to the DLQ.
        inbox.account.delete(message)
        inbox.account.clients["sqs"].send_message(
            QueueUrl=inbox.account.dead_letters, MessageBody=message["Body"]
        )
    return inbox


def test_a_dry_run_tells_what_would_be_and_changes_nothing(dead: Inbox) -> None:
    before = dead.account.rows()

    report = dead.invoke("replay", {**ALL, "dry_run": True})

    assert report["dry_run"] is True
    assert (report["matched"], report["counts"]) == (3, {"would_replay": 3})
    assert report["cursor"] is None
    assert dead.account.rows() == before
    assert handed_over(dead) == []
    assert len(dead.account.receive(dead.account.dead_letters)) == 3


def test_dead_letters_are_reset_and_sent_with_the_next_generation(dead: Inbox) -> None:
    report = dead.invoke("replay", {**ALL, "reason": "mended", "requested_by": "jo"})

    assert (report["dry_run"], report["counts"]) == (False, {"replayed": 3})
    sent = handed_over(dead)
    assert sorted(message["event_id"] for message in sent) == ["evt-0", "evt-1", "evt-2"]
    assert {message["generation"] for message in sent} == {1}
    run = dead.account.run("acme", "evt-0", "lab.refuse")
    assert run is not None
    assert (run.status, run.generation, run.attempts_in_round) == (Status.PENDING, 1, 0)
    [entry] = run.replays
    assert (entry["by"], entry["reason"]) == ("jo", "mended")


def test_the_copies_of_what_was_replayed_leave_the_dead_letter_queue(dead: Inbox) -> None:
    report = dead.invoke("replay", ALL)

    assert report["dlq_removed"] == 3
    assert dead.account.receive(dead.account.dead_letters) == []


def test_a_replayed_run_is_attempted_in_a_new_round(dead: Inbox) -> None:
    dead.invoke("replay", {"event_ids": ["evt-0"]})
    [message] = dead.account.receive()

    assert dead.process(message) == [message["MessageId"]]

    run = dead.account.run("acme", "evt-0", "lab.refuse")
    assert run is not None
    assert (run.status, run.attempt_count) == (Status.DEAD_LETTER, 2)


def test_sqs_own_redrive_leads_to_another_attempt(dead: Inbox) -> None:
    """It makes a new message: another id, a later SentTimestamp, a receive count of 1."""
    [first, *_] = dead.account.receive(dead.account.dead_letters)
    dead.account.send(first["Body"])
    [redriven] = dead.account.receive()
    assert redriven["MessageId"] != first["MessageId"]

    dead.process(redriven)

    event_id = json.loads(first["Body"])["event_id"]
    run = dead.account.run("acme", event_id, "lab.refuse")
    assert run is not None
    assert (run.status, run.attempt_count) == (Status.DEAD_LETTER, 2)


FILTERS: list[tuple[dict[str, Any], int]] = [
    ({"source": "acme"}, 3),
    ({"source": "stripe"}, 0),
    ({"type": "lab.*"}, 3),
    ({"type": "invoice.*"}, 0),
    ({"handler": "lab.refuse"}, 3),
    ({"handler": "lab.fine"}, 0),
    ({"error_contains": "422"}, 3),
    ({"error_contains": "503"}, 0),
    ({"event_ids": ["evt-0", "evt-2"]}, 2),
    ({"received_after": "2020-01-01T00:00:00Z"}, 3),
    ({"received_before": "2020-01-01T00:00:00"}, 0),
    ({"limit": 2, "handler": "lab.refuse"}, 2),
    ({"status": ["dead_letter", "failed"]}, 3),
    ({"status": ["dead_letter", "done"], "received_after": AN_HOUR_AGO}, 3),
    ({"status": ["failed"]}, 0),
    ({"where": "type == 'lab.permanent'"}, 3),
    ({"where": "type == 'lab.fine'"}, 0),
    ({"error_class": "KeyError"}, 0),
    ({"error_group": "0123456789ab"}, 0),
    ({"tenant": "t1"}, 0),
    ({"source": "acme", "type": "*", "handler": "lab.refuse", "error_contains": "lab"}, 3),
]


def test_filters_choose_the_runs(dead: Inbox) -> None:
    for payload, matched in FILTERS:
        report = dead.invoke("replay", {**payload, "dry_run": True})

        assert report["matched"] == len(report["sample"]) == matched, payload
        assert report["counts"] == ({"would_replay": matched} if matched else {}), payload


def test_the_sample_shows_what_a_person_recognises(dead: Inbox) -> None:
    report = dead.invoke("replay", {"dry_run": True, "event_ids": ["evt-1"]})

    assert report["sample"] == [
        {
            "source": "acme",
            "event_id": "evt-1",
            "handler": "lab.refuse",
            "status": "dead_letter",
            "last_error": "permanent: 422 from the lab",
            "outcome": "would_replay",
        }
    ]


def test_a_cursor_goes_on_where_the_limit_ended(dead: Inbox) -> None:
    reports = [dead.invoke("replay", {**ALL, "limit": 2})]
    while reports[-1]["cursor"]:
        reports.append(dead.invoke("replay", {**ALL, "limit": 2, "cursor": reports[-1]["cursor"]}))

    assert [report["matched"] for report in reports][:2] == [2, 1]
    assert sorted(m["event_id"] for m in handed_over(dead)) == ["evt-0", "evt-1", "evt-2"]


def test_a_replay_without_time_does_one_run_and_returns_a_cursor(dead: Inbox) -> None:
    report = dead.invoke("replay", ALL, remaining=10)

    assert (report["matched"], bool(report["cursor"])) == (1, True)
    rest = dead.invoke("replay", {**ALL, "cursor": report["cursor"]}, remaining=300)
    assert (rest["matched"], rest["cursor"]) == (2, None)


def test_done_runs_are_not_replayed_and_an_unknown_id_is_named_missing(inbox: Inbox) -> None:
    inbox.deliver("lab.fine")
    inbox.work()

    report = inbox.invoke("replay", {"event_ids": ["evt-1", "nobody"]})

    assert report["counts"] == {"finished": 1, "missing": 1}
    assert handed_over(inbox) == []


def test_a_done_run_is_replayed_by_force_and_by_name(inbox: Inbox) -> None:
    inbox.deliver("lab.fine")
    inbox.work()

    report = inbox.invoke(
        "replay", {"event_ids": ["evt-1"], "handler": "lab.fine", "force": True, "reason": "agreed"}
    )

    assert report["counts"] == {"replayed": 1}
    inbox.work()
    assert [attempt for _, attempt, _ in inbox.lab.SEEN] == [1, 2]


def test_a_run_that_a_worker_holds_is_left_to_it(inbox: Inbox, faults: Faults) -> None:
    inbox.deliver("lab.fine")
    [message] = inbox.account.receive()
    faults.set("UpdateItem", Fault.DOWN, skip=2)  # registered and claimed, never settled
    inbox.process(message)
    faults.clear()

    report = inbox.invoke("replay", {"event_ids": ["evt-1"]})

    assert report["counts"] == {"in_use": 1}


def test_a_queue_that_fails_leaves_reset_runs_to_the_reconciler(
    dead: Inbox, faults: Faults
) -> None:
    faults.set("SendMessageBatch", Fault.DOWN)

    report = dead.invoke("replay", {"event_ids": ["evt-0"]})

    assert report["counts"] == {"unsent": 1}
    run = dead.account.run("acme", "evt-0", "lab.refuse")
    assert run is not None
    assert (run.status, run.in_due_index) == (Status.PENDING, True)


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"sauce": "acme"}, "replay: sauce: Extra inputs are not permitted"),
        ({"key1": "value1", "key2": "value2"}, "replay: key1: Extra inputs are not permitted;"),
        (
            {"source": "acme", "limit": 0},
            "replay: limit: Input should be greater than or equal to 1",
        ),
        ({"limit": 10_001}, "replay: limit: Input should be less than or equal to 10000"),
        ({"rate_per_second": 501}, "replay: rate_per_second: Input should be less than or equal"),
        ({"received_after": "yesterday"}, "replay: received_after: Input should be a valid"),
        ({"event_ids": []}, "replay: event_ids: Tuple should have at least 1 item"),
        ({"event_ids": "evt-1"}, "replay: event_ids: Input should be a valid tuple"),
        ({}, "replay: no filter is given, and a replay of everything is refused: give status"),
        ({"source": "acme", "force": True}, "replay: force needs event_ids and handler"),
        ({"where": "amount >", "limit": 1}, "replay: where: this is not a JMESPath expression"),
        ({"selection": "0123456789ab"}, "replay: selection: there is no selection 0123456789ab"),
        ({**ALL, "cursor": "AAAA"}, "replay: cursor: this function did not return it"),
        ({**ALL, "cursor": "§"}, "replay: cursor: this function did not return it"),
        ([], "replay: payload: Input should be a valid dictionary"),
        (None, "replay: payload: Input should be a valid dictionary"),
        ("all", "replay: payload: Input should be a valid dictionary"),
    ],
    ids=str,
)
def test_a_payload_that_cannot_be_used_is_an_error_that_says_why_and_changes_nothing(
    inbox: Inbox, payload: Any, text: str
) -> None:
    """Lambda returns the error's type and text to the caller."""
    with pytest.raises(Exception) as failure:  # noqa: PT011 - the bundle's own class
        inbox.invoke("replay", payload)

    assert type(failure.value).__name__ == "InvalidRequestError"
    assert str(failure.value).startswith(text)
    assert inbox.account.rows("event#") == []


def test_a_replay_is_logged_counted_and_audited(dead: Inbox) -> None:
    dead.output.read()

    dead.invoke("replay", {"source": "acme", "reason": "mended", "requested_by": "jo"})

    entries = dead.output.read()
    *_, line = [entry for entry in entries if "_aws" not in entry]
    assert line["request"]["reason"] == "mended"
    assert line["counts"] == {"replayed": 3}
    assert [point for entry in entries for point in points(entry)] == [("ReplayedRuns", [3], {})]
    [audit] = dead.account.rows("audit#")
    assert (audit["by"], audit["reason"]) == ("jo", "mended")


def test_each_replayed_run_is_a_line_with_its_trace_actor_and_selection(inbox: Inbox) -> None:
    body, trace = b'{"type": "lab.permanent"}', "4bf92f3577b34da6a3ce929d0e0e4736"
    headers = inbox.sign("acme", body, event_id="evt-1", event_type="lab.permanent")
    inbox.post("acme", body, {**headers, "traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    [message] = inbox.account.receive()
    inbox.process(message)
    selection = inbox.invoke("replay", {**ALL, "dry_run": True, "fix": True})["selection"]
    inbox.output.read()

    payload = {"selection": selection, "reason": "mended", "requested_by": "jo"}
    inbox.invoke("replay", {**payload, "on_behalf_of": "INC-7"})
    inbox.work()

    lines = inbox.output.logs()
    line, page = lines[:2]
    [attempt] = [each for each in lines if each["message"] == "message dead"]
    assert page["message"] == "replay"
    names = ("source", "event_id", "handler", "type", "generation", "trace_id")
    assert [line[name] for name in names] == [attempt[name] for name in names]
    assert line["trace_id"] == trace
    replayed = {"message": "run replayed", "outcome": "replayed", "reason": "mended"}
    actor = {"actor": "jo", "proof": "claimed", "on_behalf_of": "INC-7", "selection": selection}
    assert line.items() >= {"level": "INFO", **replayed, **actor}.items()
    assert line["function_request_id"] == page["function_request_id"]


def test_runs_are_logged_without_a_trace_while_the_ledger_does_not_answer(
    dead: Inbox, faults: Faults
) -> None:
    # The first is the search's.
    faults.set("BatchGetItem", Fault.DOWN, skip=1)
    dead.output.read()

    report = dead.invoke("replay", ALL)

    assert report["counts"] == {"replayed": 3}
    lines = [line for line in dead.output.logs() if line["message"] == "run replayed"]
    assert [line["trace_id"] for line in lines] == ["", "", ""]


def test_a_run_whose_message_was_not_sent_is_a_warning(dead: Inbox, faults: Faults) -> None:
    faults.set("SendMessageBatch", Fault.DOWN)
    dead.output.read()

    dead.invoke("replay", {"event_ids": ["evt-0"]})

    [line] = [line for line in dead.output.logs() if "outcome" in line]
    assert (line["level"], line["outcome"], line["event_id"]) == ("WARNING", "unsent", "evt-0")


def test_a_page_that_failed_midway_is_answered_and_counted(dead: Inbox, faults: Faults) -> None:
    faults.set("UpdateItem", Fault.DOWN, skip=1)
    dead.output.read()

    report = dead.invoke("replay", {**ALL, "rate_per_second": 500})
    faults.clear()

    assert (report["counts"], "UpdateItem" in report["failed"]) == ({"replayed": 1}, True)
    assert dead.output.points() == [("ReplayedRuns", [1], {}), ("ReplayInterrupted", [1], {})]
    rest = dead.invoke("replay", {**ALL, "cursor": report["cursor"]})
    assert (rest["counts"], rest["cursor"]) == ({"replayed": 2}, None)


def test_a_dry_run_counts_and_logs_nothing_as_replayed(dead: Inbox) -> None:
    dead.output.read()

    dead.invoke("replay", {**ALL, "dry_run": True})

    lines = dead.output.read()
    assert [line["message"] for line in lines] == ["replay"]
    assert [point for line in lines for point in points(line)] == []
    assert dead.account.rows("audit#") == []


def test_a_selection_is_fixed_and_replayed_once(dead: Inbox) -> None:
    fixed = dead.invoke("replay", {**ALL, "dry_run": True, "fix": True})
    payload = {"selection": fixed["selection"], "reason": "mended", "requested_by": "jo"}

    first = dead.invoke("replay", payload)
    second = dead.invoke("replay", payload)

    assert (first["counts"], second["counts"]) == ({"replayed": 3}, {"already_replayed": 3})
    assert len(handed_over(dead)) == 3
