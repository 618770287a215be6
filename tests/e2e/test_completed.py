"""A job that the sink receives with a token and completes over HTTP."""

import json
from typing import Any

from tests.e2e.http_call import Answer, call, insist
from tests.e2e.whole_inbox import WholeInbox
from tests.waiting import eventually
from webhook_inbox.domain.model import Run, Status

PRESS = "press.bind"


def job(inbox: WholeInbox, event_id: str, name: str = "print") -> str:
    """Waits until the sink has a job of an event, and returns where its end is told."""

    def look() -> dict[str, Any] | None:
        return inbox.effects(event_id).get(f"{name}:{PRESS}:lab:{event_id}")

    found = eventually(look, what=f"a job of {event_id}")
    assert found is not None
    return str(found["body"]["callback"])


def tell(inbox: WholeInbox, path: str, end: Any) -> Answer:
    body = end if isinstance(end, bytes) else json.dumps(end).encode()
    headers = {"Content-Type": "application/json"}
    url = inbox.front_url + path
    return insist(lambda: call(url, "POST", body=body, headers=headers, trust=inbox.trust))


def waits(inbox: WholeInbox, event_id: str, *, attempts: int = 0) -> Run:
    run = inbox.becomes(event_id, PRESS, Status.DEFERRED)
    assert (run.waits_for, run.attempt_count) == ("completion of print", attempts)
    return run


def bound(inbox: WholeInbox, event_id: str) -> Any:
    """Returns what was bound in the end."""
    inbox.settled("lab", event_id)
    return inbox.effects(event_id)[f"bind:{PRESS}:lab:{event_id}"]["body"]


def test_a_job_is_completed_over_http_and_its_run_goes_on(inbox: WholeInbox) -> None:
    event_id = inbox.accept("print")
    path = job(inbox, event_id)
    waits(inbox, event_id)

    answer = tell(inbox, path, {"result": {"pages": 3}})

    assert answer.status == 200
    assert answer.json["status"] in {"recorded", "repeated"}
    assert bound(inbox, event_id) == {"printed": {"pages": 3}}
    assert inbox.run(event_id, PRESS).attempt_count == 1
    assert tell(inbox, path, {"result": {"pages": 3}}).json == {"status": "repeated"}
    assert tell(inbox, path, {"result": {"pages": 4}}).status == 409


def test_a_job_that_failed_is_started_anew_and_completed(inbox: WholeInbox) -> None:
    event_id = inbox.accept("print")
    first = job(inbox, event_id)
    waits(inbox, event_id)
    assert tell(inbox, first, {"error": "out of paper", "retry": True}).status == 200

    second = job(inbox, event_id, "print:2")
    waits(inbox, event_id, attempts=1)

    assert second != first
    assert tell(inbox, first, {"result": 1}).status == 410
    assert tell(inbox, second, {"result": 2}).status == 200
    assert bound(inbox, event_id) == {"printed": 2}
    assert inbox.run(event_id, PRESS).attempt_count == 2


def test_an_invalid_completion_changes_nothing(inbox: WholeInbox) -> None:
    event_id = inbox.accept("print")
    path = job(inbox, event_id)
    before = waits(inbox, event_id)

    assert tell(inbox, path[:-4] + "AAAA", {"result": 1}).status == 404
    assert tell(inbox, "/completions/guess", {"result": 1}).status == 404
    assert tell(inbox, path, {"results": 1}).status == 400
    assert tell(inbox, path, b"\xff").status == 400
    assert call(inbox.front_url + path).status in {404, 405}
    assert inbox.run(event_id, PRESS) == before

    assert tell(inbox, path, {"result": None}).status == 200
    assert bound(inbox, event_id) == {"printed": None}


def test_no_log_of_the_inbox_holds_a_token(inbox: WholeInbox) -> None:
    event_id = inbox.accept("print")
    path = job(inbox, event_id)
    waits(inbox, event_id)
    tell(inbox, path, {"result": 1})
    bound(inbox, event_id)
    forged = f"{inbox.front_url}/webhooks/lab"
    insist(lambda: call(forged, "POST", body=b"{}", headers={}, trust=inbox.trust))

    secret = path.rpartition(".")[2]
    logs = inbox.client("logs")
    groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
    lines = [
        event["message"]
        for group in groups
        for event in logs.filter_log_events(logGroupName=group)["events"]
    ]
    # A metric is there, so a line would be; the local runtime leaves out what is well.
    assert any('"Rejected"' in line for line in lines)
    assert not any(secret in line for line in lines)
    assert secret not in repr(inbox.rows(f"event#lab#{event_id}"))
