import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.providers.cases import Case, sample_of, signed
from tests.unit.providers.deliveries import name_of, provider_of
from webhook_inbox.domain.errors import ConfigurationError, Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.ingest.fingerprint import fingerprint


def split(case: Case, sent: Delivery) -> list[Delivery]:
    assert case.provider.batch is not None
    return list(case.provider.batch(sent) or ())


def test_each_event_of_a_batch_has_a_name_of_its_own() -> None:
    case = signed("hubspot")

    named = [case.provider.identify(part) for part in split(case, case.delivery)]

    assert [identity.event_id for identity in named] == ["3181526809", "3181526810"]
    assert [identity.type for identity in named] == ["contact.creation", "contact.propertyChange"]
    assert [identity.retry for identity in named] == [0, 0]


def test_an_event_that_is_tried_again_is_the_same() -> None:
    case, events = signed("hubspot"), json.loads(sample_of("hubspot").body)
    again = json.dumps([{**event, "attemptNumber": 1} for event in events]).encode()

    before, after = split(case, case.delivery), split(case, replace(case.delivery, body=again))

    assert [case.provider.identify(part).retry for part in after] == [1, 1]
    for first, second in zip(before, after, strict=True):
        volatile = case.provider.volatile
        assert case.provider.identify(second).event_id == case.provider.identify(first).event_id
        assert fingerprint(second.body, volatile) == fingerprint(first.body, volatile)


@pytest.mark.parametrize("body", [b"[]", b"{}", b"", b"[1]", b'{"eventId":1}'])
def test_what_is_no_batch_of_events_is_malformed(body: bytes) -> None:
    case = signed("hubspot")

    with pytest.raises(Rejected) as raised:
        split(case, replace(case.delivery, body=body))

    assert raised.value.reason is Reason.MALFORMED


def test_an_event_without_an_id_is_refused() -> None:
    case = signed("hubspot")

    part = split(case, replace(case.delivery, body=b'[{"subscriptionType":"x"}]'))[0]

    assert name_of(case.provider, part) is Reason.MISSING_EVENT_ID


@pytest.mark.parametrize("settings", [{"version": "v4"}, {"url": "inbox.example"}])
def test_another_version_or_no_address_is_an_error(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        provider_of("hubspot", settings)
