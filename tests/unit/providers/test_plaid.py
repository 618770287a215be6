import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from tests.unit.providers.cases import signed
from tests.unit.providers.deliveries import NOW, delivery, provider_of
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.ports import Fetch

CREDENTIALS = json.dumps({"client_id": "it", "secret": "only a test"})
ITEM = b'{"webhook_type":"TRANSACTIONS","webhook_code":"SYNC_UPDATES_AVAILABLE","item_id":"i1"}'


def question(secrets: tuple[str, ...], settings: dict[str, Any] | None = None) -> Fetch:
    provider = provider_of("plaid", settings or {})
    assert provider.fetches is not None
    return provider.fetches(signed("plaid").delivery, secrets)


def test_the_key_is_asked_for_with_the_accounts_credentials() -> None:
    wanted = question((CREDENTIALS,))

    assert wanted.url == "https://production.plaid.com/webhook_verification_key/get"
    assert json.loads(wanted.body or b"") == {**json.loads(CREDENTIALS), "key_id": "sample"}


def test_the_sandbox_has_keys_of_its_own() -> None:
    wanted = question((CREDENTIALS,), {"environment": "sandbox"})

    assert wanted.url.startswith("https://sandbox.plaid.com/")


def test_the_first_secret_that_holds_credentials_asks() -> None:
    assert question(("text", CREDENTIALS)) == question((CREDENTIALS,))


@pytest.mark.parametrize("secret", ["", "text", '{"client_id":"it"}', '{"secret":"it"}', "[]"])
def test_a_secret_without_both_parts_is_none(secret: str) -> None:
    with pytest.raises(Rejected) as raised:
        question((secret,))

    assert raised.value.reason is Reason.NO_SECRET


@pytest.mark.parametrize("kid", ["", "a" * 65, "../item", "a b", "é", "a\n", 7, None, {"a": 1}])
def test_a_key_that_plaid_could_not_have_is_never_asked_for(kid: object) -> None:
    provider = provider_of("plaid", {})
    assert provider.fetches is not None
    token = ".".join(_segment(part) for part in ({"alg": "ES256", "kid": kid}, {"iat": 1}, {}))

    with pytest.raises(Rejected) as raised:
        provider.fetches(delivery({"plaid-verification": token}, ITEM), (CREDENTIALS,))

    assert raised.value.reason is Reason.MALFORMED


def test_the_same_news_of_an_item_is_another_event_each_time() -> None:
    case = signed("plaid")
    first = case.provider.identify(case.signed_again(ITEM))
    headers = {"plaid-verification": f"e30.{_segment({'iat': int(NOW.timestamp()) + 60})}.e30"}
    second = case.provider.identify(delivery(headers, ITEM))

    assert first.event_id == f"i1|SYNC_UPDATES_AVAILABLE|{int(NOW.timestamp())}"
    assert first.type == second.type == "TRANSACTIONS.SYNC_UPDATES_AVAILABLE"
    assert first.event_id != second.event_id


@pytest.mark.parametrize("token", ["", "a", "a.b", "a.!.c", "a.bnVsbA.c", "é.é.é"])
def test_a_delivery_is_named_whatever_stands_for_its_token(token: str) -> None:
    named = provider_of("plaid", {}).identify(delivery({"plaid-verification": token}, ITEM))

    assert named.event_id.startswith("sha256:")


def _segment(part: dict[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
