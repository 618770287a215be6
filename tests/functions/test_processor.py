"""Messages and runs end as specified, whatever their handlers do."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from tests.functions.account import MAX_RECEIVE_COUNT, copy_of
from tests.functions.faults import Faults
from tests.functions.inbox import Inbox
from tests.functions.invocations import sqs_event, sqs_record
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.handlers.router import Registered
from webhook_inbox.queue.message import RunMessage

Message = dict[str, Any]


def take(inbox: Inbox, event_type: str, *, event_id: str = "evt-1") -> Message:
    """Delivers an event with one run and returns its message."""
    inbox.deliver(event_type, event_id=event_id)
    [message] = inbox.account.receive()
    return message


def again(message: Message, *, times: int = 1) -> Message:
    """Returns the message as it is when it has come back."""
    count = int(message["Attributes"]["ApproximateReceiveCount"]) + times
    attributes = {**message["Attributes"], "ApproximateReceiveCount": str(count)}
    return {**message, "Attributes": attributes}


def run(inbox: Inbox, handler: str, *, event_id: str = "evt-1", source: str = "acme") -> Run:
    found = inbox.account.run(source, event_id, handler)
    assert found is not None
    return found


def test_a_run_is_done_and_its_message_deleted(inbox: Inbox) -> None:
    message = take(inbox, "lab.fine")

    assert inbox.process(message) == []

    [(event_id, attempt, _)] = inbox.lab.SEEN
    assert (event_id, attempt) == ("evt-1", 1)
    done = run(inbox, "lab.fine")
    assert (done.status, done.attempt_count) == (Status.DONE, 1)
    assert done.code_version == "0123456789ab"
    assert done.attempts[-1].worker.startswith("processor/")


def test_the_common_path_costs_one_read_and_two_writes(inbox: Inbox, faults: Faults) -> None:
    message = take(inbox, "lab.fine")
    faults.clear()

    inbox.process(message)

    # The event, and once in five seconds whether its handler is paused. The first run of a handler
    # in a container asks whether the handler is registered, and the first of all registers it.
    registers = ["GetItem", "UpdateItem"]
    assert faults.calls == ["GetItem", *registers, "GetItem", "UpdateItem", "UpdateItem"]


def test_a_copy_of_a_done_runs_message_is_dropped(inbox: Inbox) -> None:
    message = take(inbox, "lab.fine")
    inbox.process(message)

    assert inbox.process(again(message)) == []

    assert len(inbox.lab.SEEN) == 1


def test_an_async_handler_runs_to_its_end(inbox: Inbox) -> None:
    assert inbox.process(take(inbox, "lab.async")) == []

    assert len(inbox.lab.SEEN) == 1
    assert run(inbox, "lab.later").status is Status.DONE


@pytest.mark.parametrize(
    ("event_type", "handler", "error"),
    [
        ("lab.raise", "lab.burn", "RuntimeError: the lab burns"),
        ("lab.async-raise", "lab.burn_later", "RuntimeError: the async lab burns"),
        ("lab.quit", "lab.leave", "SystemExit: 3"),
        ("lab.unprintable", "lab.mumble", "Unprintable: (its text cannot be printed)"),
    ],
)
def test_a_copy_replaces_the_message_of_a_handler_that_raises(
    inbox: Inbox, event_type: str, handler: str, error: str
) -> None:
    message = take(inbox, event_type)

    assert inbox.process(message) == []

    failed = run(inbox, handler)
    assert failed.generation == 1
    assert (failed.status, failed.last_error) == (Status.FAILED, error)
    assert failed.next_attempt_at is not None
    [line] = inbox.output.logs()[-1:]
    assert (line["level"], line["outcome"], line["attempt"]) == ("WARNING", "failed", 1)
    assert line["reason"] == error


def test_lines_of_one_event_are_correlated_from_the_delivery_to_the_effect(inbox: Inbox) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    body = b'{"type": "lab.raise"}'
    headers = {**inbox.sign("acme", body), "traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    inbox.post("acme", body, headers)
    [message] = inbox.account.receive()
    inbox.process(message)

    received, attempted = inbox.output.logs()
    assert {received["trace_id"], attempted["trace_id"]} == {trace}
    assert {received["event_id"], attempted["event_id"]} == {"evt-1"}
    assert {received["type"], attempted["type"]} == {"lab.raise"}
    assert received["request_id"]
    assert attempted["code_version"] == inbox.account.environment["CODE_VERSION"]
    assert re.fullmatch("[0-9a-f]{16}", attempted["span_id"])
    assert (attempted["error_class"], attempted["error_line"][:16]) == (
        "RuntimeError",
        "handlers/lab.py:",
    )
    assert received["duration_ms"] >= 0
    assert attempted["duration_ms"] >= 0
    [attempt] = run(inbox, "lab.burn").attempts
    assert attempt.worker.endswith(attempted["function_request_id"])
    assert attempt.code_version == attempted["code_version"]


def test_a_handlers_own_lines_name_its_event_and_later_ones_do_not(inbox: Inbox) -> None:
    inbox.process(take(inbox, "lab.talk"))

    said, told = inbox.output.logs()[-2:]
    assert said["message"] == "printing the label"
    assert (said["source"], said["event_id"], said["handler"]) == ("acme", "evt-1", "lab.talk")
    assert said["function_request_id"] == told["function_request_id"]
    # The log group's name says it.
    assert "service" not in {**said, **told}
    inbox.module("processor").logger.info("afterwards")
    [after] = inbox.output.logs()
    assert {"source", "event_id", "handler"}.isdisjoint(after)


def test_the_handlers_traceback_is_in_the_log(inbox: Inbox) -> None:
    inbox.process(take(inbox, "lab.raise"))

    [line] = inbox.output.logs()[-1:]
    assert line["exception_name"] == "RuntimeError"
    assert line["exception"].startswith("Traceback (most recent call last):")
    assert "handlers/lab.py" in line["exception"]
    assert line["exception"].endswith("RuntimeError: the lab burns\n")


def test_a_secret_in_a_handlers_error_reaches_neither_log_nor_ledger(inbox: Inbox) -> None:
    inbox.account.set_secret("vault", "open-sesame-31337")

    inbox.process(take(inbox, "lab.leak"))

    inbox.output.read()
    assert "RuntimeError: the vault refused [secret]" in inbox.output.text
    assert "open-sesame" not in inbox.output.text
    assert "open-sesame" not in repr(inbox.account.rows())


def test_a_permanent_failure_is_dead_at_once_and_ends_in_the_dead_letters(inbox: Inbox) -> None:
    message = take(inbox, "lab.permanent")

    assert inbox.process(message) == [message["MessageId"]]

    dead = run(inbox, "lab.refuse")
    assert (dead.status, dead.last_error) == (Status.DEAD_LETTER, "permanent: 422 from the lab")
    assert inbox.output.logs()[-1]["level"] == "ERROR"
    inbox.work()
    [letter] = inbox.account.receive(inbox.account.dead_letters)
    # Moved by SQS itself: the same message, so the console's redrive works.
    assert (letter["MessageId"], letter["Body"]) == (message["MessageId"], message["Body"])
    assert run(inbox, "lab.refuse").attempt_count == 1


def test_a_run_that_fails_as_often_as_it_may_is_dead(inbox: Inbox) -> None:
    message = take(inbox, "lab.raise")

    for times in range(3):
        dies = [message["MessageId"]] if times == 2 else []
        assert inbox.process(copy_of(message, copies=times)) == dies

    dead = run(inbox, "lab.burn")
    assert (dead.status, dead.attempt_count) == (Status.DEAD_LETTER, 3)
    assert dead.last_error == "exhausted: RuntimeError: the lab burns"
    assert [attempt for _, attempt, _ in inbox.lab.SEEN] == [1, 2, 3]


def test_a_deferred_run_is_parked_and_its_message_deleted(inbox: Inbox) -> None:
    message = take(inbox, "lab.deferred")

    assert inbox.process(message) == []

    parked = run(inbox, "lab.wait")
    assert (parked.status, parked.parked) == (Status.DEFERRED, True)
    assert (parked.attempt_count, parked.last_error) == (0, "the lab is closed")


@pytest.mark.parametrize("body", ["hello", "{}", '{"v":2}', "[" * 100_000, "null", '{"v":1}'])
def test_a_message_that_is_not_ours_is_kept_with_a_reason(inbox: Inbox, body: str) -> None:
    inbox.account.send(body)
    [message] = inbox.account.receive()

    assert inbox.process(message) == [message["MessageId"]]

    [line] = inbox.output.logs()[-1:]
    assert (line["level"], line["outcome"], line["handler"]) == ("ERROR", "foreign", "none")
    assert line["reason"]


def test_a_message_that_is_not_ours_is_no_poison_loop(inbox: Inbox) -> None:
    """It is shown again at once until its receives are used up, and SQS moves it away."""
    inbox.account.send("hello")

    for _ in range(MAX_RECEIVE_COUNT):
        [message] = inbox.account.receive()
        inbox.process(message)

    assert inbox.account.receive() == []
    [letter] = inbox.account.receive(inbox.account.dead_letters)
    assert letter["Body"] == "hello"


def test_a_batch_reports_exactly_what_must_be_kept(inbox: Inbox) -> None:
    kinds = {"lab.fine": False, "lab.raise": False, "lab.permanent": True, "lab.deferred": False}
    kept = {}
    messages = []
    for event_type, keep in kinds.items():
        message = take(inbox, event_type, event_id=event_type.replace(".", "-"))
        messages.append(message)
        kept[message["MessageId"]] = keep
    inbox.account.send("not ours")
    [foreign] = inbox.account.receive()

    reported = inbox.process(*messages, foreign)

    assert sorted(reported) == sorted([*(i for i in kept if kept[i]), foreign["MessageId"]])
    assert run(inbox, "lab.fine", event_id="lab-fine").status is Status.DONE


def test_one_event_with_three_runs_has_each_on_its_own(inbox: Inbox) -> None:
    inbox.deliver("lab.both")
    messages = inbox.account.receive()
    handlers = {m["MessageId"]: json.loads(m["Body"])["handler"] for m in messages}

    assert inbox.process(*messages) == []

    assert sorted(handlers.values()) == ["fragile.touch", "lab.beside", "lab.burn"]
    assert run(inbox, "lab.burn").status is Status.FAILED
    assert run(inbox, "lab.beside").status is Status.DONE
    assert run(inbox, "fragile.touch").status is Status.DONE


@pytest.mark.parametrize(
    "broken",
    [
        {"attributes": {}},
        {"attributes": None},
        {"attributes": {"SentTimestamp": "soon", "ApproximateReceiveCount": "1"}},
        {"receiptHandle": None, "attributes": None},
        {"body": None},
        {"body": 7},
    ],
)
def test_a_record_that_is_not_whole_is_kept_and_its_neighbour_processed(
    inbox: Inbox, broken: dict[str, Any]
) -> None:
    whole = take(inbox, "lab.fine")
    other = {**sqs_record(whole), "messageId": "odd", **broken}

    answer = inbox.invoke("processor", sqs_event([other, sqs_record(whole)]))

    assert answer == {"batchItemFailures": [{"itemIdentifier": "odd"}]}
    assert run(inbox, "lab.fine").status is Status.DONE
    [line] = [line for line in inbox.output.logs() if line.get("outcome") == "foreign"]
    assert line["level"] == "ERROR"


def test_a_record_without_an_id_fails_the_whole_batch(inbox: Inbox) -> None:
    """AWS then keeps every message; an id that is made up would do the same less plainly."""
    whole = sqs_record(take(inbox, "lab.fine"))
    nameless = {name: value for name, value in whole.items() if name != "messageId"}

    with pytest.raises(KeyError, match="messageId"):
        inbox.invoke("processor", sqs_event([whole, nameless]))


def test_an_empty_batch_leaves_nothing_to_keep(inbox: Inbox) -> None:
    assert inbox.invoke("processor", sqs_event([])) == {"batchItemFailures": []}


def test_a_fault_of_our_own_keeps_the_message_and_is_logged(inbox: Inbox, faults: Faults) -> None:
    def bug(_: dict[str, Any]) -> None:
        raise ZeroDivisionError("a bug of ours")

    message = take(inbox, "lab.fine")
    faults.rewrite("UpdateItem", bug)

    assert inbox.process(message) == [message["MessageId"]]

    [line] = inbox.output.logs()[-1:]
    assert (line["level"], line["outcome"]) == ("ERROR", "broken")
    assert "ZeroDivisionError: a bug of ours" in line["exception"]


def test_an_event_that_is_not_there_yet_is_waited_for(inbox: Inbox) -> None:
    inbox.account.send(RunMessage("acme", "evt-9", "lab.fine").encode())
    [message] = inbox.account.receive()

    assert inbox.process(message) == [message["MessageId"]]
    assert inbox.output.logs()[-1]["reason"] == "the event is not there yet"

    inbox.deliver("lab.fine", event_id="evt-9")
    assert inbox.process(again(message)) == []


def test_a_message_of_an_expired_event_is_moved_to_the_dlq(inbox: Inbox) -> None:
    inbox.account.send(RunMessage("acme", "evt-9", "lab.fine").encode())
    [message] = inbox.account.receive()
    sent = int(message["Attributes"]["SentTimestamp"])
    message["Attributes"]["SentTimestamp"] = str(sent - 16 * 60_000)

    assert inbox.process(message) == [message["MessageId"]]

    [line] = inbox.output.logs()[-1:]
    assert (line["outcome"], line["reason"]) == ("foreign", "no such event, or it has expired")


def test_a_handler_of_another_deployment_is_waited_for(inbox: Inbox) -> None:
    inbox.deliver("lab.fine")
    inbox.account.receive()
    inbox.account.send(RunMessage("acme", "evt-1", "lab.of-tomorrow").encode())
    [message] = inbox.account.receive()

    assert inbox.process(message) == []

    waiting = run(inbox, "lab.of-tomorrow")
    assert (waiting.status, waiting.attempt_count) == (Status.DEFERRED, 0)
    assert waiting.last_error == "handler 'lab.of-tomorrow' is not in this deployment"


def test_with_too_little_time_left_no_attempt_is_spent(inbox: Inbox) -> None:
    message = take(inbox, "lab.fine")

    assert inbox.process(message, remaining=2.9) == [message["MessageId"]]

    assert inbox.account.run("acme", "evt-1", "lab.fine") is None
    assert inbox.lab.SEEN == []


@pytest.mark.usefixtures("clock")
def test_the_lease_outlives_the_invocation_and_ends_before_the_message_is_back(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = take(inbox, "lab.fine")
    leases = []

    def look(event: Any, ctx: Any) -> None:
        seen = run(inbox, "lab.fine")
        assert seen.claimed_at is not None
        assert seen.claimed_until is not None
        leases.append((seen.claimed_until - seen.claimed_at, ctx.deadline - seen.claimed_at))

    monkeypatch.setitem(inbox.lab.lab._handlers, "lab.fine", (None, Registered(look)))

    inbox.process(message, remaining=60)

    assert leases == [(timedelta(seconds=65), timedelta(seconds=50))]


def test_each_result_is_counted_by_handler_and_outcome(inbox: Inbox) -> None:
    inbox.process(take(inbox, "lab.fine"), take(inbox, "lab.raise", event_id="evt-2"))

    runs = [point for point in inbox.output.points() if point.name == "Runs"]

    assert [(point.dimensions, point.values) for point in runs] == [
        ({"outcome": "done"}, [1]),
        ({"handler": "lab.fine", "outcome": "done"}, [1]),
        ({"outcome": "failed"}, [1]),
        ({"handler": "lab.burn", "outcome": "failed"}, [1]),
    ]


def test_each_run_is_one_line_with_its_metrics(inbox: Inbox) -> None:
    messages = [take(inbox, "lab.fine", event_id=f"evt-{number}") for number in range(3)]
    inbox.output.read()

    inbox.process(*messages)

    lines = inbox.output.read()
    assert [line["event_id"] for line in lines] == ["evt-0", "evt-1", "evt-2"]
    for line in lines:
        assert (line["message"], line["level"]) == ("message done", "INFO")
        assert (line["Runs"], line["Attempts"]) == ([1], [1])
        assert 0 < line["ReceiptToDone"][0] < 60


def test_the_line_of_a_run_has_no_key_that_is_the_same_in_all(inbox: Inbox) -> None:
    inbox.process(take(inbox, "lab.fine"))

    [line] = inbox.output.read()[-1:]
    powertools = {"location", "cold_start", "function_name", "function_arn", "reason"}
    assert not powertools & line.keys()
    assert len(json.dumps(line, separators=(",", ":"))) < 900


def test_a_run_that_is_not_over_has_neither_attempts_nor_a_time(inbox: Inbox) -> None:
    inbox.process(take(inbox, "lab.raise"))

    assert {point.name for point in inbox.output.points()} <= {
        "Runs",
        "Accepted",
        "AcknowledgementTime",
    }
