import json
from typing import Any

import pytest

from tests.unit.providers.cases import recorded, vectors_of
from tests.unit.providers.deliveries import delivery, provider_of
from webhook_inbox.domain.errors import ConfigurationError, Reason
from webhook_inbox.domain.provider import Answer

PROVIDER = provider_of("azure-event-grid", {})
CODE = "512d38b6-c7b8-40c8-89fe-f46f9e9622b6"
VALIDATION = {
    "id": "2d1781af-3a4c-4d7c-bd0c-e34b19da4e66",
    "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent",
    "data": {"validationCode": CODE, "validationUrl": "https://evil.example/"},
}
ENTRA = next(vector for vector in vectors_of("azure-event-grid") if "jwk" in vector)


def greeted(body: Any) -> Answer | None:
    assert PROVIDER.greet is not None
    headers = {"aeg-event-type": "SubscriptionValidation"}
    return PROVIDER.greet(delivery(headers, json.dumps(body).encode()), ())


def test_a_subscription_is_validated_by_its_code_with_200_and_no_url_is_visited() -> None:
    answer = greeted([VALIDATION])

    assert answer is not None
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert json.loads(answer.body) == {"validationResponse": CODE}
    assert answer.visit is None


@pytest.mark.parametrize(
    "body",
    [
        [],
        VALIDATION,
        [VALIDATION, {"id": "1"}],
        [{**VALIDATION, "eventType": "Microsoft.Storage.BlobCreated"}],
        [{**VALIDATION, "data": {}}],
        [{**VALIDATION, "data": {"validationCode": 7}}],
        [{**VALIDATION, "data": {"validationCode": "a\nb"}}],
    ],
)
def test_nothing_else_is_a_validation(body: Any) -> None:
    assert greeted(body) is None


def test_an_attempt_is_counted_by_its_header() -> None:
    body = b'{"id":"1","eventType":"Microsoft.Storage.BlobCreated"}'
    sent = delivery({"aeg-delivery-count": "3", "aeg-event-type": "Notification"}, body)

    identity = PROVIDER.identify(sent)

    assert (identity.type, identity.retry) == ("Microsoft.Storage.BlobCreated", 3)


def test_entras_token_stands_for_the_secret_and_is_fetched_for_if_there_is_one() -> None:
    case = recorded(ENTRA)

    assert not case.provider.needs_secret
    assert case.provider.token_headers == {"authorization"}
    assert case.verdict(case.with_header("authorization", "Bearer x")) is Reason.MALFORMED
    assert case.verdict(case.with_header("authorization", None)) is Reason.MISSING_SIGNATURE
    assert case.fetched == []


@pytest.mark.parametrize("given", [{"audience": "api://inbox"}, {"tenants": ["84bd8158"]}])
def test_an_audience_and_its_tenants_go_together(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="give both, or neither"):
        provider_of("azure-event-grid", given)
