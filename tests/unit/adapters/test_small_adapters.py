"""Secrets, bodies, metrics, time and randomness, where no backend can be made to answer so."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from tests.unit.adapters.aws.fake_client import FakeClient, refusal
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore
from webhook_inbox.adapters.aws.sqs import OldestMessage
from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.adapters.system import SystemClock, SystemRandomness
from webhook_inbox.domain.errors import Unavailable

GONE = refusal("ResourceNotFoundException")


def fetch(*answers: Any) -> tuple[str, ...]:
    return SecretsManagerStore(FakeClient(*answers), "inbox/dev/").fetch("stripe")


def test_a_secret_is_asked_for_by_prefix_and_stage() -> None:
    client = FakeClient({"SecretString": "a"}, {"SecretString": "b"})

    assert SecretsManagerStore(client, "inbox/dev/").fetch("stripe") == ("a", "b")

    assert [parameters for _, parameters in client.calls] == [
        {"SecretId": "inbox/dev/stripe", "VersionStage": "AWSCURRENT"},
        {"SecretId": "inbox/dev/stripe", "VersionStage": "AWSPREVIOUS"},
    ]


@pytest.mark.parametrize(
    ("answers", "values"),
    [
        ((GONE,), ()),
        ((refusal("InvalidRequestException"),), ()),
        (({"SecretString": "a"}, GONE), ("a",)),
        (({"SecretString": "a"}, {"SecretString": "a"}), ("a",)),
        (({"SecretBinary": "ü".encode()}, GONE), ("ü",)),
        (({"SecretString": ""}, GONE), ()),
        (({"SecretString": "a"}, {"SecretString": ""}), ("a",)),
        # A blank current value revokes the previous one as well.
        (({"SecretString": ""}, {"SecretString": "old"}), ()),
        (({"SecretString": " "}, {"SecretString": "old"}), ()),
        (({"SecretString": "a"}, {"SecretString": " "}), ("a",)),
        (({"SecretBinary": b""}, {}), ()),
    ],
)
def test_only_values_that_are_there_and_not_empty_are_live(answers: Any, values: Any) -> None:
    assert fetch(*answers) == values


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "DecryptionFailure", "ThrottlingException"]
)
def test_a_secret_that_cannot_be_read_is_not_an_absent_one(code: str) -> None:
    with pytest.raises(Unavailable, match=code):
        fetch(refusal(code))
    with pytest.raises(Unavailable, match=code):
        fetch({"SecretString": "a"}, refusal(code))


def test_a_secret_that_is_no_text_is_refused_without_showing_it() -> None:
    with pytest.raises(Unavailable) as refused:
        fetch({"SecretBinary": b"\xffhush"})

    assert "hush" not in repr(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


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
