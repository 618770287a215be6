from dataclasses import replace

import pytest

from tests.unit.providers.deliveries import NOW, SECRET, delivery, name_of, provider_of, verdict
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.model import TypeDoubt
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


def hooked(header: str | None, body: str) -> Identity:
    """Returns the identity of a signed delivery."""
    headers = {"webhook-id": "1"} | ({"X-Gitlab-Event": header} if header else {})
    identity = name_of(provider_of("gitlab", {}), delivery(headers, body.encode()))
    assert isinstance(identity, Identity)
    return identity


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("Push Hook", '{"object_kind": "push", "event_name": "push"}'),
        ("Job Hook", '{"object_kind": "build"}'),
        ("Issue Hook", '{"object_kind": "work_item"}'),
        ("Confidential Issue Hook", '{"object_kind": "issue"}'),
        ("Member Hook", '{"event_name": "user_add_to_group"}'),
        ("System Hook", '{"object_kind": "push"}'),
        ("Push Hook", '{"object_kind": "of_tomorrow"}'),
        ("Hook of tomorrow", '{"object_kind": "push"}'),
        ("Push Hook", "{}"),
    ],
)
def test_a_pair_that_is_not_excluded_has_the_type_of_the_header(header: str, body: str) -> None:
    assert hooked(header, body) == Identity("1", header)


@pytest.mark.parametrize(
    ("header", "body", "type_"),
    [
        ("Push Hook", '{"object_kind": "pipeline"}', "Pipeline Hook"),
        ("Issue Hook", '{"object_kind": "merge_request"}', "Merge Request Hook"),
        ("Push Hook", '{"event_name": "project_destroy"}', "Project Hook"),
    ],
)
def test_a_documented_pair_that_contradicts_is_in_doubt_and_has_the_type_of_the_signed_body(
    header: str, body: str, type_: str
) -> None:
    assert hooked(header, body) == Identity("1", type_, doubt=TypeDoubt.CONTRADICTED)


def test_without_the_header_the_type_is_the_bodys() -> None:
    assert hooked(None, '{"object_kind": "push"}') == Identity("1", "push")


def test_a_signed_body_that_cannot_be_read_is_in_doubt() -> None:
    assert hooked("Push Hook", "{").doubt is TypeDoubt.UNREADABLE


def test_a_token_signs_no_body_so_it_contradicts_nothing() -> None:
    sent = replace(
        SENT, headers={**SENT.headers, "webhook-id": "1"}, body=b'{"object_kind":"note"}'
    )
    assert name_of(BY_TOKEN, sent) == Identity("1", "Push Hook")
