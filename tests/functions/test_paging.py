"""Which requests count as failures of ingest, which page: no sender's, and each of AWS or the code.

`IntakeFailing` reads this metric beside Lambda's errors and throttles of ingest.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.functions.account import Account
from tests.functions.conftest import Start
from tests.functions.faults import Fault, Faults
from tests.functions.inbox import Inbox
from tests.functions.invocations import PAYLOAD_LIMIT, http_event, payload_size
from webhook_inbox.domain.metrics import INGEST_FAILURES
from webhook_inbox.domain.secrets import APPROVAL_KEY, COMPLETION_KEY, TOKEN_KEY
from webhook_inbox.handlers.completions.tokens import NAME_BYTES
from webhook_inbox.ledger.schema import ID_LIMIT


def completion_token(*parts: str) -> str:
    """Returns a token in the right form, with a wrong signature, for a wait."""
    address = urlsafe_b64encode("#".join(parts).encode()).decode().rstrip("=")
    return f"{address}.{'0' * 43}"


def addresses() -> list[str]:
    """Returns such tokens with the longest and the oddest parts; each is looked up in the table."""
    longest = ["x" * NAME_BYTES] * 3
    return [
        completion_token(*longest, "x" * ID_LIMIT),
        completion_token("\x00", "\u20ac", "#", "\U0010ffff"),
        completion_token("acme", "lab.long", "job", "evt-1"),
    ]


# Of every source and of none: those of the deployed project, of a stranger and of a smoke test.
SOURCES = ("acme", "agents", "cycles", "github", "slack", "stripe", "unknown", "inbox/smoke")
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "\u00c9")
TOKENS = ("x", "v1.x.x", "a.b", "%2F", "\u20ac", "\x00", "x" * 8_000, "", *addresses())
ENDPOINTS = ("completions", "status", "approvals")
VALUES = ("", "x", "t=1,v1=00", "Bearer e30.e30.e30", "Bearer x", "\u00ff", "x" * 8_000)
BODIES = (
    b"",
    b"{}",
    b"[",
    b"\xff\xfe",
    b'"\\ud800"',
    b"[" * 5_000,
    b"1" * 5_000,
    b'{"type":"lab.fine","id":"evt-1"}',
)


@pytest.fixture
def complete(start: Start, account: Account) -> Inbox:
    """An inbox with the keys that a stack generates."""
    for name in (APPROVAL_KEY, COMPLETION_KEY, TOKEN_KEY):
        account.set_secret(name, "a key of the stack")
    return start(account)


def failures(inbox: Inbox) -> int:
    """Returns the number of failures that ingest has counted since the last call."""
    found = [point for point in inbox.output.points() if point.name == INGEST_FAILURES.name]
    assert all(not point.dimensions for point in found)
    return int(sum(value for point in found for value in point.values))


def forged_deliveries(inbox: Inbox) -> Iterator[dict[str, Any]]:
    """Yields requests to each source that nobody with its secret has made."""
    for source in SOURCES:
        known = inbox.manifest.sources.get(source)
        path = f"/webhooks/{source}"
        signed = inbox.sign(source, b"{}", secret="Zm9yZ2Vk") if known else {}
        yield from (http_event(path, method=method, headers=signed) for method in METHODS)
        for body in BODIES:
            yield http_event(path, headers=signed, body=body, binary=True)
            yield http_event(path, body=body, binary=True)
        for value in VALUES:
            headers = dict.fromkeys([*signed, "authorization", "cookie", "x-api-key"], value)
            yield http_event(path, headers=headers, body=b"{}", binary=True)


def forged_tokens() -> Iterator[dict[str, Any]]:
    """Yields requests to the other endpoints with tokens that the inbox has not made."""
    for endpoint in ENDPOINTS:
        for token in TOKENS:
            for method in METHODS:
                event = http_event(f"/{endpoint}/{token}", method=method, body=b"\xff", binary=True)
                yield event | {"pathParameters": {"token": token}}
                yield event | {"pathParameters": None}


def test_no_request_without_a_secret_or_token_counts_as_a_failure(complete: Inbox) -> None:
    answered: set[int] = set()
    for event in (*forged_deliveries(complete), *forged_tokens()):
        answer = complete.request(event)
        answered.add(answer.status)
        assert failures(complete) == 0, (answer.status, answer.body, event)
    assert {400, 401, 404, 405, 503} <= answered


def test_a_source_without_a_secret_is_no_failure_whatever_is_sent(complete: Inbox) -> None:
    """One forged delivery a minute would page."""
    largest = b"1" * (PAYLOAD_LIMIT * 3 // 4 - 4_096)
    for body in (b"{}", largest):
        event = http_event("/webhooks/cycles", body=body, binary=True)
        assert payload_size(event) <= PAYLOAD_LIMIT
        assert (complete.request(event).status, failures(complete)) == (503, 0)


def deliver(inbox: Inbox) -> int:
    return inbox.deliver("lab.fine").status


def read_status(inbox: Inbox) -> int:
    return inbox.request(http_event("/status/a.b", method="GET")).status


def open_link(inbox: Inbox) -> int:
    event = http_event("/approvals/x", method="GET")
    return inbox.request(event | {"pathParameters": {"token": "x"}}).status


def complete_job(inbox: Inbox) -> int:
    token = completion_token("acme", "lab.long", "job", "evt-1")
    event = http_event(f"/completions/{token}", body=b'{"result": 1}', binary=True)
    return inbox.request(event | {"pathParameters": {"token": token}}).status


def bug(_: dict[str, Any]) -> None:
    raise KeyError("a bug")


@pytest.mark.parametrize(
    ("operation", "request_to"),
    [
        ("GetSecretValue", deliver),
        ("PutItem", deliver),
        ("SendMessageBatch", deliver),
        ("GetSecretValue", read_status),
        ("GetSecretValue", open_link),
        ("GetItem", complete_job),
    ],
)
@pytest.mark.parametrize("fault", [Fault.DENIED, Fault.DOWN, Fault.SILENT, Fault.THROTTLED, bug])
def test_each_failure_of_aws_and_each_bug_counts(
    complete: Inbox,
    faults: Faults,
    operation: str,
    request_to: Callable[[Inbox], int],
    fault: Fault | Callable[[dict[str, Any]], None],
) -> None:
    if isinstance(fault, Fault):
        faults.set(operation, fault)
    else:
        faults.rewrite(operation, fault)

    assert (request_to(complete), failures(complete)) == (503, 1)

    faults.clear()
    assert request_to(complete) != 503
    assert failures(complete) == 0


def test_a_function_that_cannot_start_raises(
    start: Start, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lambda counts it as an error of the function, which pages as well."""
    inbox = start(account)
    monkeypatch.delenv("TABLE_NAME")

    with pytest.raises(Exception, match="TABLE_NAME"):
        inbox.deliver("lab.fine")
