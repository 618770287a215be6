"""Topics: the call that publishes, in the region of the topic."""

from typing import Any

import pytest

from tests.unit.adapters.aws.fake_client import FakeClient, refusal
from webhook_inbox.adapters.aws import operation
from webhook_inbox.adapters.aws.sns import SnsTopics
from webhook_inbox.domain.errors import Permanent, Transient

TOPIC = "arn:aws:sns:eu-west-1:111122223333:approvals"


def test_a_message_is_published_in_the_topics_own_region() -> None:
    client, regions = FakeClient({"MessageId": "m"}), []

    def of(region: str) -> Any:
        regions.append(region)
        return client

    SnsTopics(of).publish(TOPIC, "Approve refund?", "text")

    assert regions == ["eu-west-1"]
    sent = {"TopicArn": TOPIC, "Subject": "Approve refund?", "Message": "text"}
    assert client.calls == [("publish", sent)]


def test_the_default_client_is_of_the_topics_region(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, str]] = []

    class Session:
        def create_client(self, service: str, *, region_name: str, **_: Any) -> FakeClient:
            made.append((service, region_name))
            return FakeClient({})

    monkeypatch.setattr(operation, "session", Session)
    SnsTopics().publish(TOPIC, "s", "t")

    assert made == [("sns", "eu-west-1")]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (refusal("AuthorizationError", status=403), Permanent, f'allow("sns:Publish", on="{TOPIC}'),
        (refusal("NotFound", status=404), Permanent, "sns publish: NotFound"),
        (refusal("Throttling"), Transient, "Throttling"),
        (refusal("InternalError", status=500), Transient, "InternalError"),
    ],
)
def test_an_error_says_whether_a_retry_helps(
    error: Exception, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as raised:
        SnsTopics(lambda _: FakeClient(error)).publish(TOPIC, "s", "t")
    assert text in str(raised.value)
