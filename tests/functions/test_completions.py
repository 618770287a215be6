"""POST /completions/{token}: the answers, and the continuation of the run."""

import json
from pathlib import Path
from typing import Any

import pytest

from ingest.completions import STATUSES
from tests.functions.faults import Fault, Faults
from tests.functions.inbox import Answer, Inbox
from tests.functions.invocations import http_event
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.secrets import COMPLETION_KEY

JSON = {"content-type": "application/json"}
REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"


@pytest.fixture
def job(inbox: Inbox) -> str:
    """The path of a job that is under way."""
    inbox.account.set_secret(COMPLETION_KEY, "a-key-that-the-stack-made")
    inbox.deliver("lab.long")
    inbox.work()
    [path] = inbox.lab.JOBS
    return str(path)


def tell(inbox: Inbox, path: str, body: Any, *, binary: bool = False) -> Answer:
    """Tells what came of a job, as API Gateway hands it over."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    event = http_event(path, headers=JSON, body=text, binary=binary)
    token = path.rpartition("/")[2]
    event |= {"routeKey": "POST /completions/{token}", "pathParameters": {"token": token}}
    return inbox.request(event)


def status(inbox: Inbox) -> Status:
    run = inbox.account.run("acme", "evt-1", "lab.long")
    assert run is not None
    return run.status


def test_a_completed_job_lets_its_run_go_on(inbox: Inbox, job: str) -> None:
    assert status(inbox) is Status.DEFERRED

    answer = tell(inbox, job, {"result": {"pages": 3}})
    inbox.work()

    assert (answer.status, answer.json) == (200, {"status": "recorded"})
    assert answer.headers["cache-control"] == "no-store"
    assert status(inbox) is Status.DONE
    assert inbox.lab.RESULTS == [{"pages": 3}]


def test_a_base64_body_and_a_path_under_a_stage_are_read_as_well(inbox: Inbox, job: str) -> None:
    text = json.dumps({"result": 1}).encode()
    event = http_event("/prod" + job, body=text, binary=True)
    del event["pathParameters"]

    assert inbox.request(event).status == 200


@pytest.mark.parametrize(
    ("body", "code", "outcome"),
    [
        ({"result": 1}, 200, "recorded"),
        ({"error": "out of paper"}, 200, "recorded"),
        ({"error": "out of paper", "retry": True}, 200, "recorded"),
        ({}, 400, "malformed"),
        (b"{", 400, "malformed"),
        ({"result": "x" * 256 * 1024}, 413, "too-large"),
    ],
)
def test_each_end_has_its_status(
    inbox: Inbox, job: str, body: Any, code: int, outcome: str
) -> None:
    answer = tell(inbox, job, body)

    assert (answer.status, answer.json["status"]) == (code, outcome)


def test_the_reference_has_every_status() -> None:
    rows = [line for line in REFERENCE.read_text().splitlines() if line.startswith("| ")]
    for outcome, code in STATUSES.items():
        assert any(row.startswith(f"| {code} |") and f"`{outcome}`" in row for row in rows), outcome


@pytest.mark.parametrize(
    "broken",
    [
        {"pathParameters": 7},
        {"body": 7},
        {"isBase64Encoded": True, "body": "no base64!"},
        {"body": None},
        {"pathParameters": {}, "rawPath": "/completions/"},
        {"requestContext": None},
    ],
)
def test_an_invocation_by_hand_that_is_no_request_changes_nothing(
    inbox: Inbox, job: str, broken: dict[str, Any]
) -> None:
    event = {**http_event(job, headers=JSON, body=b'{"result": 1}'), **broken}
    event["pathParameters"] = broken.get("pathParameters", {"token": "no-token"})

    assert inbox.request(event).status in {400, 404}
    assert status(inbox) is Status.DEFERRED


def test_a_second_end_is_repeated_or_a_conflict(inbox: Inbox, job: str) -> None:
    tell(inbox, job, {"result": 1})

    assert tell(inbox, job, {"result": 1}).json == {"status": "repeated"}
    answer = tell(inbox, job, {"result": 2})
    assert (answer.status, answer.json["status"]) == (409, "conflict")


@pytest.mark.parametrize("twist", ["guess", "other end", "half"])
def test_a_forged_token_is_not_found_and_writes_nothing(
    inbox: Inbox, faults: Faults, job: str, twist: str
) -> None:
    forged = {
        "guess": "/completions/wp-login.php",
        "other end": job[:-1] + ("A" if job[-1] != "A" else "B"),
        "half": job.partition(".")[0],
    }[twist]
    before = inbox.account.rows()
    faults.clear()

    answer = tell(inbox, forged, {"result": 1})

    assert (answer.status, answer.json["status"]) == (404, "unknown")
    assert inbox.account.rows() == before
    assert faults.calls in ([], ["GetItem"])


@pytest.mark.parametrize("operation", ["GetItem", "UpdateItem", "SendMessageBatch"])
def test_an_outage_is_answered_503_and_the_repetition_heals_it(
    inbox: Inbox, faults: Faults, job: str, operation: str
) -> None:
    faults.set(operation, Fault.THROTTLED)
    answer = tell(inbox, job, {"result": 1})
    assert (answer.status, answer.json["status"]) == (503, "unavailable")
    assert answer.headers["retry-after"] == "5"

    faults.clear()
    assert tell(inbox, job, {"result": 1}).status == 200
    inbox.work()
    assert status(inbox) is Status.DONE


def test_neither_log_nor_metric_nor_table_holds_the_token(inbox: Inbox, job: str) -> None:
    token = job.rpartition("/")[2]
    secret = token.partition(".")[2]
    for body in ({"result": f"at {job}"}, {"error": job}, b"{", {"result": 1}):
        tell(inbox, job, body)
    tell(inbox, job + "x", {"result": 1})
    inbox.work()

    inbox.output.read()
    assert secret not in inbox.output.text
    assert all(secret not in repr(row) for row in inbox.account.rows())
    assert all(secret not in message["Body"] for message in inbox.account.receive())


def test_a_completion_is_logged_with_what_it_completes(inbox: Inbox, job: str) -> None:
    inbox.output.read()
    tell(inbox, job, {"result": 1})

    [line] = inbox.output.read()
    assert (line["message"], line["handler"], line["effect"], line["event_id"]) == (
        "completion recorded",
        "lab.long",
        "render",
        "evt-1",
    )


def test_deliveries_go_on_as_ever_beside_completions(inbox: Inbox, job: str) -> None:
    tell(inbox, job, {"result": 1})

    assert inbox.deliver("lab.fine", event_id="evt-2").status == 202
    assert inbox.request(http_event("/webhooks/completions")).status == 404
