"""Bodies of every kind and size, from the provider's bytes to the handler's."""

import base64
import json
import random
from hashlib import sha256
from pathlib import Path

import pytest

from tests.functions.faults import Faults
from tests.functions.inbox import Answer, Inbox
from tests.functions.invocations import PAYLOAD_LIMIT, http_event, payload_size
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.adapters.system import SystemClock, SystemRandomness
from webhook_inbox.domain.audit import Actor, Proof
from webhook_inbox.domain.ports import Ports
from webhook_inbox.handlers.approvals.decisions import ApprovalOutcome, Approvals
from webhook_inbox.handlers.approvals.hold import ApprovalRequest

FOUR_MEGABYTES = 4 * 1024 * 1024
# The overhead of API Gateway in these tests; real providers send longer headers.
ENVELOPE_LIMIT = 16 * 1024
EVENTS = Path(__file__).parents[2] / "events" / "ingest"
# The figure in the README was measured on the bodies of these sources.
MEASURED = ("acme", "cycles", "github", "shopify", "slack", "standard-webhooks", "stripe")
SAMPLES = [path for name in MEASURED for path in sorted((EVENTS / name).glob("*.json"))]
NOISE = random.Random(20261121)  # the same incompressible bytes in every run


def json_body(size: int) -> bytes:
    """Returns a JSON body of exactly so many bytes, hard to compress."""
    head, tail = b'{"type":"lab.fine","data":"', b'"}'
    noise = base64.b64encode(NOISE.randbytes(size))
    return head + noise[: size - len(head) - len(tail)] + tail


def seen_by_the_handler(inbox: Inbox) -> list[str]:
    inbox.work()
    return [digest for _, _, digest in inbox.lab.SEEN]


def approve(inbox: Inbox, handler: str) -> None:
    """Approves the held run of a handler, as `hold approve` does."""
    account = inbox.account
    ports = Ports(
        table=account.table,
        clock=SystemClock(),
        randomness=SystemRandomness(),
        queues={"default": SqsQueue(account.clients["sqs"], account.queue)},
    )
    approvals = Approvals(inbox.manifest, ports)
    run = inbox.account.run("acme", "evt-1", handler)
    assert run is not None
    decision = approvals.approve(
        ApprovalRequest(run), by=Actor("jo", Proof.CLAIMED), reason="it is ours"
    )
    assert decision.outcome is ApprovalOutcome.APPROVED


def receive_whole(inbox: Inbox, answer: Answer, body: bytes, *, readable: bool) -> None:
    """Checks that the handler sees the body: at once, or when a person approved it."""
    assert (answer.status, answer.json["status"]) == (202, "accepted" if readable else "unreadable")
    if not readable:
        assert seen_by_the_handler(inbox) == []
        approve(inbox, "lab.fine")
    assert sha256(body).hexdigest() in seen_by_the_handler(inbox)


@pytest.mark.parametrize(
    "body",
    [
        '{"type":"lab.fine","naïve":"☃ 🦄"}'.encode(),
        b'\xef\xbb\xbf{"type":"lab.fine"}',
        b'{"type":"lab.fine","half":"\\ud83d"}',
        b'{"type":"lab.fine","type":"lab.fine"}',
    ],
    ids=lambda body: repr(body[:24]),
)
def test_any_signed_body_arrives_byte_by_byte(inbox: Inbox, body: bytes) -> None:
    """The content is the handler's concern."""
    answer = inbox.post("acme", body, inbox.sign("acme", body), binary=True)

    receive_whole(inbox, answer, body, readable=True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"not JSON",
        b"\xff\xfe\x00\x01 no UTF-8 \xc3\x28",
        b'{"type":"\\ud83d"}',
        b'{"type":"lab.fine",}',
        b'{"type":["lab.fine"]}',
        b"null",
        b'{"type":"lab.fine","n":' + b"9" * 5000 + b"}",
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"\x00" * 2_000_000,
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_signed_body_without_a_readable_type_arrives_when_it_is_approved(
    inbox: Inbox, body: bytes
) -> None:
    answer = inbox.post("acme", body, inbox.sign("acme", body), binary=True)

    receive_whole(inbox, answer, body, readable=False)


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"[" * 100_000, b"x" * FOUR_MEGABYTES], ids=lambda b: repr(b[:4])
)
@pytest.mark.parametrize("source", ["acme", "stripe"])
def test_no_unsigned_body_is_more_than_a_rejection(inbox: Inbox, source: str, body: bytes) -> None:
    headers = {"content-type": "application/json", "x-github-event": "push"}

    answer = inbox.post(source, body, headers, binary=True)

    assert (answer.status, answer.json["reason"]) == (401, "missing-signature")
    assert inbox.account.rows("event#") == []


def test_a_body_in_base64_is_the_bytes_and_not_their_spelling(inbox: Inbox) -> None:
    body = b'{"type":"lab.fine"}'
    headers = inbox.sign("acme", body)

    assert inbox.post("acme", body, headers, binary=True).json["status"] == "accepted"
    assert inbox.post("acme", body, headers, binary=False).json["status"] == "duplicate"


def test_a_body_that_says_base64_and_is_not_is_malformed(inbox: Inbox) -> None:
    event = http_event("/webhooks/acme", headers=inbox.sign("acme", b"x"), body=b"x", binary=True)

    answer = inbox.request({**event, "body": "§ no base64"})

    assert (answer.status, answer.json["reason"]) == (400, "malformed")


def test_a_small_body_costs_no_call_to_s3(inbox: Inbox, faults: Faults) -> None:
    inbox.deliver("lab.fine")
    inbox.work()

    assert {"PutObject", "GetObject"}.isdisjoint(faults.calls)
    assert inbox.account.objects() == []


def test_a_large_body_is_put_once_however_often_it_comes(inbox: Inbox, faults: Faults) -> None:
    body = json_body(100_000)
    headers = inbox.sign("acme", body)

    assert inbox.post("acme", body, headers).json["status"] == "accepted"
    assert inbox.post("acme", body, headers).json["status"] == "duplicate"

    assert faults.calls.count("PutObject") == 1
    [key] = inbox.account.objects()
    assert key.startswith("bodies/acme/")
    assert key.endswith(f"-{sha256(body).hexdigest()}")


@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
def test_a_body_of_4_mb_arrives_whole(inbox: Inbox, binary: bool) -> None:
    """And the invocation that carries it is within what Lambda takes, escapes and base64 too."""
    body = NOISE.randbytes(FOUR_MEGABYTES) if binary else json_body(FOUR_MEGABYTES)
    headers = inbox.sign("acme", body)
    if binary:
        headers["content-type"] = "application/octet-stream"
    event = http_event("/webhooks/acme", headers=headers, body=body)
    assert event["isBase64Encoded"] is binary
    assert payload_size(event) + ENVELOPE_LIMIT < PAYLOAD_LIMIT

    answer = inbox.request(event)

    assert len(body) == FOUR_MEGABYTES
    receive_whole(inbox, answer, body, readable=not binary)


def escapes(body: bytes) -> float:
    """Returns by how much a text body grows within the invocation's JSON."""
    return len(json.dumps(body.decode(), ensure_ascii=False).encode()) / len(body)


def test_the_largest_binary_body_is_4_7_mb() -> None:
    """Base64 makes four bytes of three: 4,706,304 bytes fit beside 16 KB of everything else."""
    headers = {"content-type": "application/octet-stream"}
    largest = (PAYLOAD_LIMIT - ENVELOPE_LIMIT) // 4 * 3

    fits = http_event("/webhooks/acme", headers=headers, body=bytes(largest))
    does_not = http_event("/webhooks/acme", headers=headers, body=bytes(largest + ENVELOPE_LIMIT))

    assert largest == 4_706_304
    assert payload_size(fits) <= PAYLOAD_LIMIT < payload_size(does_not)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_the_largest_json_body_is_5_3_mb_as_providers_write_it(sample: Path) -> None:
    """Quotes, backslashes and line ends take two bytes each, other letters what they took."""
    pretty = sample.read_bytes()
    compact = json.dumps(json.loads(pretty), separators=(",", ":"), ensure_ascii=False).encode()

    for body in (pretty, compact):
        assert 5_300_000 < (PAYLOAD_LIMIT - ENVELOPE_LIMIT) / escapes(body) < 5_700_000


def test_the_largest_json_body_of_any_content_is_3_1_mb() -> None:
    """The worst there can be: nothing but quotes, backslashes and line ends."""
    largest = (PAYLOAD_LIMIT - ENVELOPE_LIMIT) // 2
    headers = {"content-type": "application/json"}

    for character in (b'"', b"\\", b"\n"):
        event = http_event("/webhooks/acme", headers=headers, body=character * largest)
        assert payload_size(event) <= PAYLOAD_LIMIT

    assert largest == 3_137_536
