"""GET /status/{token}: the answers; the token is in no output."""

from typing import Any

import pytest

from tests.functions.faults import Fault, Faults
from tests.functions.inbox import Answer, Inbox
from tests.functions.invocations import http_event
from webhook_inbox.domain.secrets import TOKEN_KEY

# A status is counted by API Gateway alone; Powertools warns of an invocation without a metric.
pytestmark = pytest.mark.filterwarnings("ignore:No application metrics")
HOST = {"host": "hooks.example"}


@pytest.fixture
def path(inbox: Inbox) -> str:
    """The path of the status of an event that is received."""
    inbox.account.set_secret(TOKEN_KEY, "a-key-that-the-stack-made")
    body = b'{"type": "lab.fine"}'
    answer = inbox.post("agents", body, inbox.sign("agents", body) | HOST)
    assert (answer.status, answer.json["status"]) == (202, "accepted")
    base, _, path = answer.json["status_url"].partition("/status/")
    assert base == "https://hooks.example"
    return f"/status/{path}"


def read(inbox: Inbox, path: str, **changes: Any) -> Answer:
    event = http_event(path, method="GET", headers=HOST)
    token = path.rpartition("/")[2]
    event |= {"routeKey": "GET /status/{token}", "pathParameters": {"token": token}}
    return inbox.request({**event, **changes})


def test_a_status_is_read_and_never_stored_by_a_cache(inbox: Inbox, path: str) -> None:
    answer = read(inbox, path)

    assert answer.status == 200
    assert answer.json.keys() == {"status", "received_at"}
    assert answer.json["status"] == "skipped"
    assert answer.headers["cache-control"] == "no-store"
    assert read(inbox, "/prod" + path, pathParameters=None).json == answer.json


@pytest.mark.parametrize("changed", [{"pathParameters": {"token": 7}}, {"pathParameters": {}}])
def test_a_wrong_token_is_not_found(inbox: Inbox, path: str, changed: dict[str, Any]) -> None:
    for answer in (read(inbox, path[:-1]), read(inbox, "/status/wp-login.php", **changed)):
        assert (answer.status, answer.json) == (404, {"status": "unknown"})
        assert answer.headers["cache-control"] == "no-store"


def test_an_outage_is_answered_503(inbox: Inbox, faults: Faults, path: str) -> None:
    faults.set("GetItem", Fault.THROTTLED)
    answer = read(inbox, path)
    assert (answer.status, answer.json) == (503, {"status": "unavailable"})
    assert answer.headers["retry-after"] == "5"


def test_the_token_is_in_no_output_and_no_row(inbox: Inbox, faults: Faults, path: str) -> None:
    read(inbox, path)
    read(inbox, path + "x")
    read(inbox, path, pathParameters=7)
    faults.set("GetItem", Fault.THROTTLED)
    read(inbox, path)
    inbox.output.read()
    subject, _, proof = path.rpartition("/")[2].partition(".")
    for part in (subject, proof):
        assert part not in inbox.output.text
        assert part not in repr(inbox.account.rows())
