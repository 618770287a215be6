"""Only Meta: subscribing by a verify token, and many changes in one delivery."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.providers.deliveries import NOW, delivery
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer
from webhook_inbox.providers.meta import PROVIDER

SECRET = json.dumps({"secret": "app-secret", "verify_token": "my-token"})
QUERY = "hub.mode=subscribe&hub.verify_token=my-token&hub.challenge=1158201444"


def subscribing(query: str = QUERY, *, method: str = "GET") -> Delivery:
    return replace(delivery({}, b"", method=method), query=query)


def greeted(sent: Delivery, *secrets: str) -> Answer | None:
    assert PROVIDER.greet is not None
    return PROVIDER.greet(sent, secrets or (SECRET,))


def posted(*entries: object, kind: str = "whatsapp_business_account") -> Delivery:
    return delivery({}, json.dumps({"object": kind, "entry": list(entries)}).encode())


def parts_of(sent: Delivery) -> list[Delivery] | None:
    assert PROVIDER.batch is not None
    parts = PROVIDER.batch(sent)
    return None if parts is None else list(parts)


def change(**value: Any) -> dict[str, Any]:
    return {"id": "1", "changes": [{"field": "messages", "value": value}]}


def test_an_endpoint_is_subscribed_by_its_verify_token() -> None:
    answer = greeted(subscribing())

    assert answer is not None
    assert (answer.status, answer.body) == (200, b"1158201444")
    assert answer.content_type.startswith("text/plain")


def test_the_previous_verify_token_still_counts() -> None:
    answer = greeted(subscribing(), json.dumps({"verify_token": "new"}), SECRET)

    assert answer is not None
    assert answer.status == 200


@pytest.mark.parametrize("secret", [SECRET, "app-secret", "", '{"secret":"s","verify_token":""}'])
@pytest.mark.parametrize("token", ["", "&hub.verify_token=", "&hub.verify_token=app-secret"])
def test_another_verify_token_is_forbidden(secret: str, token: str) -> None:
    query = "hub.mode=subscribe&hub.challenge=1" + token

    answer = greeted(subscribing(query), secret)

    assert answer is not None
    assert (answer.status, answer.body) == (403, b"")


@pytest.mark.parametrize(
    "sent",
    [
        subscribing(method="POST"),
        subscribing(""),
        subscribing(QUERY.replace("subscribe", "unsubscribe")),
        subscribing(QUERY.replace("1158201444", "%00")),
        subscribing(QUERY.replace("1158201444", "1" * 2000)),
    ],
    ids=["post", "no-query", "other-mode", "control", "long"],
)
def test_nothing_else_is_answered(sent: Delivery) -> None:
    assert greeted(sent) is None


def test_a_delivery_of_one_change_is_the_event_itself() -> None:
    assert parts_of(posted(change(messages=[{"id": "wamid.1"}]))) is None


def test_every_message_state_and_change_becomes_an_event_of_its_own() -> None:
    sent = posted(
        change(messages=[{"id": "wamid.1", "timestamp": "1700000000"}, {"id": "wamid.2"}]),
        change(statuses=[{"id": "wamid.1", "status": s} for s in ("sent", "read")]),
        {"id": "2", "messaging": [{"message": {"mid": "m_1"}}, {"read": {"watermark": 1}}]},
    )

    parts = parts_of(sent)

    assert parts is not None
    named = [PROVIDER.identify(part) for part in parts]
    assert [identity.event_id for identity in named[:5]] == [
        "wamid.1", "wamid.2", "wamid.1|sent", "wamid.1|read", "m_1",
    ]  # fmt: skip
    assert named[5].event_id.startswith("sha256:")
    assert [identity.type.partition(".")[2] for identity in named] == [
        "messages", "messages", "messages", "messages", "messaging", "messaging",
    ]  # fmt: skip
    assert named[0].occurred_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_a_part_has_the_form_of_a_delivery_and_is_not_split_again() -> None:
    value = {"contacts": [{"wa_id": "1"}], "messages": [{"id": "a"}, {"id": "b"}]}

    parts = parts_of(posted(change(**value)))

    assert parts is not None
    first = json.loads(parts[0].body)
    assert first == {
        "object": "whatsapp_business_account",
        "entry": [change(contacts=[{"wa_id": "1"}], messages=[{"id": "a"}])],
    }
    assert all(parts_of(part) is None for part in parts)
    assert parts[0].received_at == NOW


def test_a_deleted_message_is_another_event_than_the_message() -> None:
    message = {"mid": "m_1", "is_deleted": True}

    sent = posted({"messaging": [{"message": message}]}, kind="instagram")

    assert PROVIDER.identify(sent).event_id == "m_1|deleted"
    assert PROVIDER.identify(sent).type == "instagram.messaging"


@pytest.mark.parametrize("body", [b"{}", b'{"entry":[]}', b'{"entry":[1]}', b"[]", b'{"entry":{}}'])
def test_a_delivery_without_an_entry_is_malformed(body: bytes) -> None:
    with pytest.raises(Rejected) as raised:
        parts_of(delivery({}, body))
    assert raised.value.reason is Reason.MALFORMED
