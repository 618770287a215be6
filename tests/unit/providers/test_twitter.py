import json
from dataclasses import replace

import pytest

from tests.unit.providers.deliveries import NOW, delivery, name_of, verdict
from webhook_inbox.domain.errors import Reason
from webhook_inbox.domain.model import TypeDoubt
from webhook_inbox.domain.provider import Answer, Identity, Sample, Verified
from webhook_inbox.providers.twitter import PROVIDER

SECRET = "consumer-secret"
UUID = "9b4507b3-9040-4669-9ca3-6b94edb50553"


def challenged(token: str, *, method: str = "GET") -> Answer | None:
    assert PROVIDER.greet is not None
    sent = replace(delivery({}, b"", method=method), query=f"crc_token={token}")
    return PROVIDER.greet(sent, (SECRET, "previous"))


def named(body: object) -> Identity | Reason:
    return name_of(PROVIDER, delivery({}, json.dumps(body).encode()))


def test_a_challenge_is_answered_with_its_hmac_under_the_current_secret() -> None:
    answer = challenged(UUID)

    assert answer is not None
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert json.loads(answer.body) == {
        "response_token": "sha256=NhN+8FRk3FiSPXyqxXmpVRtiLiWoawvOgUBuXwGUTL4="
    }


@pytest.mark.parametrize(
    "token",
    ["", "%7B%22for_user_id%22%3A%221%22%7D", "[]", "%22a%22", "a%20b", "a%0A", "{}", "a" * 257],
)
def test_what_could_be_a_delivery_is_not_signed(token: str) -> None:
    assert challenged(token) is None


def test_a_challenge_comes_by_get() -> None:
    assert challenged(UUID, method="POST") is None


@pytest.mark.parametrize("token", [UUID, "1", "true", "null", "a" * 256])
def test_the_answer_to_a_challenge_signs_no_delivery(token: str) -> None:
    answer = challenged(token)
    assert answer is not None
    headers = {"x-twitter-webhooks-signature": json.loads(answer.body)["response_token"]}

    sent = delivery(headers, token.encode())
    assert verdict(PROVIDER, sent, (SECRET,)) is Reason.INVALID_SIGNATURE


def test_a_delivery_of_token_characters_and_more_is_judged_by_its_signature() -> None:
    body = b'"' + UUID.encode() + b'"'
    headers = PROVIDER.sign(Sample("", "", body), SECRET, NOW)

    assert isinstance(verdict(PROVIDER, delivery(headers, body), (SECRET,)), Verified)


@pytest.mark.parametrize(
    ("body", "id_", "type_"),
    [
        ({"for_user_id": "1", "tweet_create_events": [{"id": 7}]},
         "1|tweet_create_events|7", "tweet_create_events"),
        ({"for_user_id": "1", "tweet_delete_events": [{"status": {"id": "7"}}]},
         "1|tweet_delete_events|7", "tweet_delete_events"),
        ({"for_user_id": "1", "favorite_events": [{"id": "a"}, {"id": "b"}]},
         "sha256:", "favorite_events"),
        ({"for_user_id": "1", "follow_events": [{"type": "follow"}]}, "sha256:", "follow_events"),
        ({"user_event": {"revoke": {}}}, "sha256:", "user_event"),
        ([], "sha256:", "unknown"),
    ],
)  # fmt: skip
def test_an_event_is_named_by_whom_it_is_for_and_its_only_object(
    body: object, id_: str, type_: str
) -> None:
    identity = named(body)

    assert isinstance(identity, Identity)
    assert identity.event_id.startswith(id_)
    assert identity.type == type_


@pytest.mark.parametrize("body", [[], [{"tweet_create_events": []}], "tweet_create_events", 1])
def test_the_type_of_a_body_that_is_no_object_cannot_be_read(body: object) -> None:
    identity = named(body)
    assert isinstance(identity, Identity)
    assert (identity.type, identity.doubt) == ("unknown", TypeDoubt.UNREADABLE)
