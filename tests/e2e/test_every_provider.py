"""Each provider's delivery is done, and each provider's question answered, over HTTP."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.e2e.every_provider import EveryProvider
from tests.e2e.handshakes import OFFERS, SIGNED, UNSIGNED, said
from tests.e2e.http_call import Answer
from tests.unit.providers.cases import NAMES, pair_of
from tests.waiting import eventually
from webhook_inbox.domain.manifest import SPLIT
from webhook_inbox.domain.provider import Sent
from webhook_inbox.domain.secret_document import SOURCES
from webhook_inbox.ingest import enrolment
from webhook_inbox.providers.aws_sns import sealed

# As many as the front lets through at a time.
AT_ONCE = 4


@pytest.fixture(scope="module")
def inbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EveryProvider]:
    with EveryProvider(tmp_path_factory.mktemp("every")) as running:
        yield running


@pytest.fixture(scope="module")
def taken(inbox: EveryProvider) -> dict[str, list[str]]:
    """The events of each provider's delivery, all taken before the first is looked at."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(NAMES, pool.map(partial(delivered, inbox), NAMES), strict=True))


def delivered(inbox: EveryProvider, provider: str) -> list[str]:
    """Sends a provider's sample and returns the ids of what it comes to.

    Paddle's window is 5 s: what a slow machine lets become stale is signed anew.
    """

    def fresh() -> tuple[Sent, Answer] | None:
        made = inbox.made(provider)
        answer = inbox.take(provider, made)
        return None if b"stale" in answer.body else (made, answer)

    made, answer = eventually(fresh, what=f"an answer to {provider} within its window")
    assert answer.status in {200, 202}, (provider, answer)
    first, *items = inbox.names(provider, made)
    # Dropbox's are named by the moment they come, which the answer alone tells.
    named = answer.headers["content-type"] == "application/json" and answer.json.get("event_id")
    return [named or first, *items]


@pytest.mark.parametrize("provider", NAMES)
def test_a_verified_delivery_is_done(
    inbox: EveryProvider, taken: dict[str, list[str]], provider: str
) -> None:
    whole, *items = taken[provider]

    [run] = inbox.settled(provider, whole).runs

    assert run.handler == (SPLIT if items else f"{provider}.keep")
    for item in items:
        assert [run.handler for run in inbox.settled(provider, item).runs] == [f"{provider}.keep"]


@pytest.mark.parametrize("source", sorted(UNSIGNED))
def test_a_question_is_answered_as_its_provider_wants(inbox: EveryProvider, source: str) -> None:
    question = UNSIGNED[source]

    answer = question.put(inbox, source)

    assert answer.status == 200
    assert said(answer, question.right) == question.right
    assert question.shown.items() <= answer.headers.items()


@pytest.mark.parametrize("name", sorted(SIGNED))
def test_a_signed_question_is_answered_as_its_provider_wants(
    inbox: EveryProvider, name: str
) -> None:
    question = SIGNED[name]

    answer = question.put(inbox, name.partition(" ")[0])

    assert answer.status == question.status
    assert said(answer, question.right) == question.right


@pytest.mark.parametrize("source", ["discord", "slack", "twitch", "xero", "zoom"])
def test_a_question_with_a_wrong_signature_is_refused(inbox: EveryProvider, source: str) -> None:
    made = inbox.made(source, SIGNED[source].sample)

    answer = inbox.take(source, replace(made, body=made.body + b" "))

    assert answer.status == 401


def test_a_topic_of_sns_is_subscribed_to(inbox: EveryProvider) -> None:
    now = datetime.now(UTC)
    message = {
        "Type": "SubscriptionConfirmation",
        "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
        "Token": "2336412f37fb687f5d51e6e241d09c805a5a57b30d712f794cc5f6a988666d92",
        "TopicArn": "arn:aws:sns:eu-west-1:123456789012:orders",
        "Message": "You have chosen to subscribe to the topic.",
        "SubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription",
        "Timestamp": now.isoformat(),
        "SignatureVersion": "2",
        "SigningCertURL": "https://sns.eu-west-1.amazonaws.com/sample.pem",
    }
    headers = {"content-type": "text/plain"}
    made = sealed(message, headers, pair_of("aws-sns")[0], now)

    assert inbox.take("aws-sns", made).status == 200


@pytest.mark.parametrize("source", sorted(OFFERS))
def test_a_secret_is_taken_while_an_operator_waits_and_not_before(
    inbox: EveryProvider, source: str
) -> None:
    question, offered = OFFERS[source]
    name = inbox.manifest.sources[source].secret

    assert question.put(inbox, source).status == 403

    now = datetime.now(UTC)
    enrolment.begin(inbox.table, source, by="tests", now=now, until=now + timedelta(minutes=15))
    answer = question.put(inbox, source)

    assert answer.status == 200
    assert question.shown.items() <= answer.headers.items()
    assert eventually(
        lambda: inbox.documents.read(SOURCES)[name] == (offered,),
        what=f"the secret of {source}",
    )
