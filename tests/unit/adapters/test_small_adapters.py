"""Secrets, bodies, metrics, time and randomness, where no backend can be made to answer so."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from tests.unit.adapters.aws.fake_client import FakeClient, refusal
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.secrets_manager import SecretDocument, SecretsManagerStore
from webhook_inbox.adapters.aws.sqs import OldestMessage
from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.adapters.system import SystemClock, SystemRandomness
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.secrets import COMPLETION_KEY, TOKEN_KEY

GONE = refusal("ResourceNotFoundException")
DOCUMENT = "webhook-inbox/dev/sources"
KEYS = {TOKEN_KEY: "arn:of:the:key"}


def store(*answers: Any) -> SecretsManagerStore:
    return SecretsManagerStore(FakeClient(*answers), DOCUMENT, keys=KEYS)


def test_all_secrets_are_one_call() -> None:
    client = FakeClient({"SecretString": '{"stripe": ["b", "a"], "github": "c"}'})

    secrets = SecretsManagerStore(client, DOCUMENT, keys=KEYS).fetch()

    assert secrets == {"stripe": ("b", "a"), "github": ("c",)}
    asked = {"SecretId": DOCUMENT, "VersionStage": "AWSCURRENT"}
    assert [parameters for _, parameters in client.calls] == [asked]


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "InvalidRequestException"])
def test_without_a_document_no_secret_is_set(code: str) -> None:
    assert store(refusal(code)).fetch() == {}
    assert store(refusal(code)).generated(TOKEN_KEY) == ""


def test_a_generated_key_is_read_by_its_arn_and_only_where_the_stack_has_one() -> None:
    client = FakeClient({"SecretString": "key"}, {"SecretString": "the one before"})
    made = SecretsManagerStore(client, DOCUMENT, keys=KEYS)

    assert made.generated(TOKEN_KEY) == "key"
    assert made.generated(TOKEN_KEY, previous=True) == "the one before"
    assert made.generated(COMPLETION_KEY) == ""
    assert [parameters for _, parameters in client.calls] == [
        {"SecretId": KEYS[TOKEN_KEY], "VersionStage": "AWSCURRENT"},
        {"SecretId": KEYS[TOKEN_KEY], "VersionStage": "AWSPREVIOUS"},
    ]
    assert store(GONE).generated(TOKEN_KEY, previous=True) == ""
    assert store({"SecretString": " "}).generated(TOKEN_KEY) == ""


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "DecryptionFailure", "ThrottlingException"]
)
def test_a_secret_that_cannot_be_read_is_not_an_absent_one(code: str) -> None:
    with pytest.raises(Unavailable, match=code):
        store(refusal(code)).fetch()
    with pytest.raises(Unavailable, match=code):
        store(refusal(code)).generated(TOKEN_KEY)


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ({"SecretBinary": b"\xffhush"}, r"is binary \(SecretBinary\); store it as text"),
        ({"SecretString": "hush"}, "is not JSON; store an object like"),
        ({"SecretString": '["hush"]'}, "is not a JSON object; store one like"),
        ({"SecretString": '{"stripe": {"key": "hush"}}'}, "has a malformed 'stripe'; give a text"),
        ({"SecretString": '{"stripe": ["hush", 1]}'}, "has a malformed 'stripe'; give a text"),
        ({"SecretString": '{"stripe": ["hush", "a", "b"]}'}, "a list of two"),
    ],
)
def test_a_malformed_document_is_refused_without_showing_it(answer: Any, cause: str) -> None:
    with pytest.raises(Unavailable, match=f"the secret {DOCUMENT} .*{cause}") as refused:
        SecretDocument(FakeClient(answer), DOCUMENT).read()

    assert "hush" not in repr(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_a_document_that_was_moved_back_to_an_earlier_version_can_be_changed() -> None:
    """Its successor's id is used up, and that of the next attempt is not."""
    read = {"SecretString": "{}", "VersionId": "1"}
    successor = {"SecretString": "{}", "VersionId": "2", "VersionStages": ["AWSPREVIOUS"]}
    client = FakeClient(read, refusal("ResourceExistsException"), successor, read, {})

    SecretsManagerStore(client, DOCUMENT, keys=KEYS).replace("stripe", "a")

    tokens = [sent["ClientRequestToken"] for _, sent in client.calls if "SecretString" in sent]
    assert len(set(tokens)) == 2
    assert all(32 <= len(token) <= 64 for token in tokens)


def test_writers_who_are_always_late_give_up() -> None:
    read = {"SecretString": "{}", "VersionId": "1"}
    taken = [refusal("ResourceExistsException"), refusal("ResourceNotFoundException"), read]

    with pytest.raises(Unavailable, match=r"other writers changed .*; repeat the change"):
        store(read, *taken * 10).replace("stripe", "a")


class BrokenStream:
    def read(self) -> bytes:
        raise ReadTimeoutError(endpoint_url="https://s3", error="e")


def test_a_body_that_breaks_off_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="s3 GetObject: ReadTimeoutError"):
        S3Blobs(FakeClient({"Body": BrokenStream()}), "bodies").get("k")


def test_a_body_is_absent_only_if_s3_says_so() -> None:
    assert S3Blobs(FakeClient(refusal("NoSuchKey", status=404)), "bodies").get("k") is None
    for code in ("AccessDenied", "NoSuchBucket"):
        with pytest.raises(Unavailable, match=code):
            S3Blobs(FakeClient(refusal(code)), "bodies").get("k")


def test_a_put_that_fails_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="s3 PutObject: SlowDown"):
        S3Blobs(FakeClient(refusal("SlowDown", status=503)), "bodies").put("k", b"x")


def point(minute: int, seconds: float) -> dict[str, Any]:
    at = datetime(2026, 1, 1, 0, minute, tzinfo=UTC)
    return {"Timestamp": at, "Maximum": seconds, "Unit": "Seconds"}


@pytest.mark.parametrize(
    ("answer", "age"),
    [
        ({}, None),
        ({"Datapoints": []}, None),
        ({"Datapoints": [point(3, 60.0)]}, timedelta(minutes=1)),
        # CloudWatch gives them in no order: the latest counts, not the last or the largest.
        (
            {"Datapoints": [point(3, 900.0), point(5, 30.0), point(4, 60.0)]},
            timedelta(seconds=30),
        ),
    ],
)
def test_the_age_is_that_of_the_latest_datapoint(answer: Any, age: timedelta | None) -> None:
    assert OldestMessage(FakeClient(answer), ManualClock())("work") == age


def test_the_age_is_asked_for_by_name_up_to_now() -> None:
    client, clock = FakeClient({}), ManualClock()

    OldestMessage(client, clock)("work")

    [(_, parameters)] = client.calls
    assert parameters["Dimensions"] == [{"Name": "QueueName", "Value": "work"}]
    assert parameters["EndTime"] == clock.now()
    assert parameters["StartTime"] < clock.now()


def test_metrics_that_cannot_be_read_are_unavailable() -> None:
    with pytest.raises(Unavailable, match="cloudwatch GetMetricStatistics"):
        OldestMessage(FakeClient(refusal("AccessDenied")), ManualClock())("work")


def test_the_systems_time_is_aware_and_goes_on() -> None:
    clock = SystemClock()
    before = datetime.now(UTC)

    clock.sleep(0.001)

    assert clock.now() - before >= timedelta(milliseconds=1)
    assert clock.now().utcoffset() == timedelta(0)


def test_the_systems_tokens_are_128_bits_and_never_the_same() -> None:
    tokens = {SystemRandomness().token() for _ in range(100)}

    assert len(tokens) == 100
    assert all(len(token) == 32 and int(token, 16) >= 0 for token in tokens)
