from dataclasses import replace

import pytest

from tests.unit.providers.deliveries import NOW, SECRET, delivery, name_of, provider_of, verdict
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.provider import Identity, Sample, Verified

BY_TOKEN = provider_of("gitlab", {"proof": "token"})
SAMPLE = Sample("sample-1", "Push Hook", b'{"object_kind":"push"}')
SENT = delivery({"X-Gitlab-Token": SECRET, "X-Gitlab-Event": "Push Hook"}, SAMPLE.body)
IDS = ("webhook-id", "idempotency-key", "x-gitlab-event-uuid")


def test_a_token_is_kept_as_a_bearer_token_is() -> None:
    assert BY_TOKEN.token_headers == {"x-gitlab-token"}
    assert provider_of("gitlab", {}).token_headers == frozenset()


def test_a_token_without_a_signature_is_taken_only_where_the_source_says_so() -> None:
    assert isinstance(verdict(BY_TOKEN, SENT), Verified)
    assert verdict(provider_of("gitlab", {}), SENT) is Reason.MISSING_SIGNATURE


@pytest.mark.parametrize("present", [IDS, IDS[1:], IDS[2:]])
def test_what_stays_the_same_over_retries_names_the_event_first(present: tuple[str, ...]) -> None:
    sent = replace(SENT, headers={**SENT.headers, **{name: name for name in present}})

    assert name_of(BY_TOKEN, sent) == Identity(present[0], "Push Hook")


def test_the_hooks_own_id_names_no_event() -> None:
    sent = replace(SENT, headers={**SENT.headers, "x-gitlab-webhook-uuid": "hook"})

    assert name_of(BY_TOKEN, sent) is Reason.MISSING_EVENT_ID


def test_a_sample_carries_the_token() -> None:
    sent = BY_TOKEN.send(SAMPLE, SECRET, NOW)

    assert isinstance(verdict(BY_TOKEN, delivery(sent.headers, sent.body)), Verified)


def test_another_proof_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="choose from signature, token"):
        provider_of("gitlab", {"proof": "both"})
