"""Providers without an id of their own: what an event is named by, part by part."""

import json
from typing import Any

import pytest

from tests.unit.providers.cases import sample_of, signed
from tests.unit.providers.deliveries import delivery
from webhook_inbox.ingest.fingerprint import fingerprint


def names(provider_name: str, *changes: dict[str, Any]) -> list[str]:
    """Returns the ids of the sample and of the sample with each of these changes."""
    case, document = signed(provider_name), json.loads(sample_of(provider_name).body)
    bodies = [json.dumps({**document, **change}).encode() for change in ({}, *changes)]
    return [case.provider.identify(case.signed_again(body)).event_id for body in bodies]


@pytest.mark.parametrize(
    ("provider_name", "changes"),
    [
        (
            "calendly",
            [
                {"event": "invitee.canceled"},
                {"created_at": "2026-11-21T08:00:00.000000Z"},
                {"payload": {"uri": "https://api.calendly.com/scheduled_events/D/invitees/E"}},
                {"created_at": None},
                {"payload": {}},
            ],
        ),
        (
            "docusign",
            [
                {"event": "envelope-sent"},
                {"generatedDateTime": "2026-11-21T08:00:00.0000000Z"},
                {"data": {"envelopeId": "another"}},
                {"generatedDateTime": None},
                {"data": {}},
            ],
        ),
    ],
)
def test_every_part_of_a_key_tells_events_apart(
    provider_name: str, changes: list[dict[str, Any]]
) -> None:
    found = names(provider_name, *changes)

    assert len(set(found)) == len(changes) + 1


def test_docusigns_retry_is_the_same_event() -> None:
    assert len(set(names("docusign", {"retryCount": 2}))) == 1

    provider = signed("docusign").provider
    bodies = [json.dumps({"event": "e", "retryCount": count}).encode() for count in (0, 2)]
    assert len({fingerprint(body, provider.volatile) for body in bodies}) == 1


@pytest.mark.parametrize(("word", "text"), [(True, "true"), (False, "false")])
def test_adyens_success_is_named_as_it_is_signed(word: bool, text: str) -> None:
    provider = signed("adyen").provider
    item = {"pspReference": "p-1", "eventCode": "CAPTURE"}
    found = [
        provider.identify(delivery({}, json.dumps({**item, "success": success}).encode())).event_id
        for success in (word, text)
    ]

    assert found == [f"p-1|CAPTURE|{text}"] * 2
