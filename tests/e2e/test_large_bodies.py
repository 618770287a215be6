"""Four megabytes arrive whole: over HTTP, through S3, in the handler."""

import json
import random
from hashlib import sha256

import pytest

from tests.e2e.inquiry import fresh
from tests.e2e.whole_inbox import WholeInbox

SIZE = 4 * 1024 * 1024
RANDOMNESS = random.Random(20261121)


def large_json() -> bytes:
    """JSON as providers send it: quotes to be escaped, and letters of several bytes."""
    line = {"sku": "A-1", "name": "Größe 42 ½ „blau“", "note": 'say "hi"\n'}
    lines = [{**line, "n": RANDOMNESS.random()} for _ in range(SIZE // 95)]
    return json.dumps({"lines": lines}, ensure_ascii=False).encode().ljust(SIZE)


def large_binary() -> bytes:
    return RANDOMNESS.randbytes(SIZE)


BODIES = [
    pytest.param(large_json(), "application/json", id="json"),
    pytest.param(large_binary(), "application/octet-stream", id="binary"),
    pytest.param(b"\xff\xfe not UTF-8", "application/json", id="no-utf-8"),
    pytest.param(b"\x00\x01\x02", "text/plain", id="control-characters"),
    pytest.param(b"[" * 100_000, "application/json", id="deeply-nested"),
    pytest.param(b"", "application/json", id="empty"),
]


@pytest.mark.parametrize(("body", "kind"), BODIES)
def test_a_body_reaches_its_handler_to_the_byte(inbox: WholeInbox, body: bytes, kind: str) -> None:
    event_id = fresh()
    headers = inbox.signed("lab", "digest", body, event_id=event_id)

    answer = inbox.post("lab", body, {**headers, "content-type": kind})

    assert answer.was_accepted, answer
    found = inbox.settled("lab", event_id)
    assert found.event.body == body
    (effect,) = inbox.effects(event_id).values()
    assert effect["body"] == {"sha256": sha256(body).hexdigest(), "size": len(body)}


def test_a_large_body_lies_in_the_bucket_under_its_own_hash(inbox: WholeInbox) -> None:
    body, event_id = large_binary(), fresh()
    inbox.post("lab", body, inbox.signed("lab", "digest", body, event_id=event_id))

    stored = [entry["Key"] for entry in _objects(inbox)]

    [key] = [key for key in stored if key.endswith(f"-{sha256(body).hexdigest()}")]
    assert key.startswith("bodies/lab/")
    inbox.settled("lab", event_id)


def test_the_gateway_rejects_bodies_too_large_for_a_function(inbox: WholeInbox) -> None:
    body = b"\x00" * (5 * 1024 * 1024)  # 6.7 MB in base64
    headers = inbox.signed("lab", "digest", body, event_id=fresh())

    answer = inbox.post("lab", body, {**headers, "content-type": "application/octet-stream"})

    assert answer.status == 413


def _objects(inbox: WholeInbox) -> list[dict[str, str]]:
    listing = inbox.client("s3").list_objects_v2(Bucket=inbox.outputs["BucketName"])
    return list(listing["Contents"])
