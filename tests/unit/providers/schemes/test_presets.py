"""The answers are those that the providers document, as their own descriptions give them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.unit.providers.deliveries import SECRET, delivery
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Offer
from webhook_inbox.providers.schemes.handshakes.presets import OFFERS, PRESETS, Endpoint

SIGNATURE = "x-signature"
ENDPOINT = Endpoint((SIGNATURE,), "https://receiver.example/webhooks/ebay")
CODE = "a8628072-3d33-45ee-9004-bee86830a22d"
LINKEDIN = "890e4665-4dfe-4ab1-b689-ed553bceeed0"
PARTS = json.dumps({"secret": SECRET, "verify_token": "my-token"})


def asked(
    method: str,
    *,
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    body: object = None,
) -> Delivery:
    raw = b"" if body is None else json.dumps(body).encode()
    sent = delivery({"host": "10.0.0.1", **(headers or {})}, raw, method=method)
    return replace(sent, query=urlencode(query or {}))


STRAVA = {"hub.mode": "subscribe", "hub.verify_token": "my-token", "hub.challenge": "15f7d1a9"}
VERIFY = {"eventType": "VERIFY", "data": {"challenge": "c"}}
# The challenge, the secret, and the answer: text, JSON or a header.
ASKED: dict[str, tuple[Delivery, str, Any]] = {
    "adobe-sign": (
        asked("GET", headers={"X-AdobeSign-ClientId": "CBJCHBCAABAAo8"}),
        SECRET,
        ("x-adobesign-clientid", "CBJCHBCAABAAo8"),
    ),
    "circle": (asked("HEAD"), SECRET, b""),
    "ebay": (
        asked("GET", query={"challenge_code": CODE}),
        "verification-token-32-characters",
        {"challengeResponse": "fca6c0d8f5f9d73f71ab33d8d89b30589d732d0b8bb89cb9a3d48e89a1fc6f85"},
    ),
    "exact-online": (asked("POST"), SECRET, b""),
    "front": (asked("POST", headers={"X-Front-Challenge": "c"}), SECRET, {"challenge": "c"}),
    "linkedin": (
        asked("GET", query={"challengeCode": LINKEDIN}),
        "li-client-secret",
        {
            "challengeCode": LINKEDIN,
            "challengeResponse": "313e20a5110164b82333ba6cb7cdad9e864a8e809bb93b22935d24b57f42823f",
        },
    ),
    "nylas": (asked("GET", query={"challenge": CODE}), SECRET, CODE.encode()),
    "okta": (
        asked("GET", headers={"X-Okta-Verification-Challenge": "my verification challenge"}),
        SECRET,
        {"verification": "my verification challenge"},
    ),
    "ringcentral": (
        asked("POST", headers={"Validation-Token": "t"}),
        SECRET,
        ("validation-token", "t"),
    ),
    "sharepoint": (asked("POST", query={"validationtoken": "a b"}), SECRET, b"a b"),
    "smartcar": (
        asked("POST", body=VERIFY),
        "amt",
        {"challenge": "650538138022d0aec80daeb3628aa31f0aa942ba1f60f8561e38ec254255b198"},
    ),
    "strava": (asked("GET", query=STRAVA), PARTS, {"hub.challenge": "15f7d1a9"}),
    "tebex": (
        asked("POST", body={"type": "validation.webhook", "id": "w1"}),
        SECRET,
        {"id": "w1"},
    ),
    "vercel-log-drain": (asked("POST", body=[]), PARTS, ("x-vercel-verify", "my-token")),
}
every_preset = pytest.mark.parametrize("name", sorted(PRESETS))


def answered(name: str, sent: Delivery, *secrets: str) -> Answer | None:
    return PRESETS[name](ENDPOINT)(sent, secrets)


def said(answer: Answer | None) -> Any:
    assert answer is not None
    assert answer.status == 200
    shown = {
        name: text
        for name, text in answer.headers.items()
        if name not in {"x-content-type-options"}
    }
    if shown:
        return next(iter(shown.items()))
    return json.loads(answer.body) if answer.content_type == "application/json" else answer.body


def test_every_preset_is_tried() -> None:
    assert set(ASKED) == set(PRESETS)


@every_preset
def test_the_question_is_answered_as_its_provider_wants(name: str) -> None:
    sent, secret, right = ASKED[name]

    assert said(answered(name, sent, secret)) == right


@every_preset
def test_what_is_sent_by_another_method_is_no_question(name: str) -> None:
    sent, secret, _ = ASKED[name]

    assert answered(name, replace(sent, method="PUT"), secret) is None


@every_preset
def test_an_event_is_no_question(name: str) -> None:
    event = asked("POST", headers={SIGNATURE: "00"}, body={"id": "1", "type": "order.shipped"})

    assert answered(name, event, ASKED[name][1]) is None


@pytest.mark.parametrize("name", ["ebay", "linkedin", "smartcar"])
def test_nothing_is_computed_without_a_secret(name: str) -> None:
    assert answered(name, ASKED[name][0]) is None


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("linkedin", asked("GET", query={"challengeCode": '{"id":"1"}'})),
        ("linkedin", asked("GET", query={"challengeCode": 'hmacsha256={"id":"1"}'})),
        ("ebay", asked("GET", query={"challenge_code": "x"})),
        ("smartcar", asked("POST", body={**VERIFY, "data": {"challenge": '{"id":"1"}'}})),
        ("smartcar", asked("POST", body={**VERIFY, "eventType": "VEHICLE_STATE"})),
    ],
)
def test_a_challenge_that_could_be_an_event_is_not_signed(name: str, sent: Delivery) -> None:
    assert answered(name, sent, SECRET) is None


def test_another_verify_token_is_forbidden() -> None:
    sent = asked("GET", query={**STRAVA, "hub.verify_token": "guessed"})

    answer = answered("strava", sent, PARTS)

    assert answer is not None
    assert answer.status == 403


@pytest.mark.parametrize("name", ["vercel-log-drain", "exact-online"])
def test_what_shows_a_signature_is_verified_not_greeted(name: str) -> None:
    sent, secret, _ = ASKED[name]
    shown = replace(sent, headers={**sent.headers, SIGNATURE: "00"})

    assert answered(name, shown, secret) is None


@pytest.mark.parametrize("name", ["vercel-log-drain", "exact-online"])
def test_where_signatures_stand_in_no_header_nothing_counts_as_unsigned(name: str) -> None:
    sent, secret, _ = ASKED[name]

    assert PRESETS[name](Endpoint(()))(sent, (secret,)) is None


def test_a_log_drain_without_a_token_is_refused() -> None:
    sent, _, _ = ASKED["vercel-log-drain"]

    assert answered("vercel-log-drain", sent, SECRET) is None
    assert answered("vercel-log-drain", sent) is None


def test_ebay_is_answered_for_the_address_without_its_query() -> None:
    sent, secret, right = ASKED["ebay"]
    shown = replace(sent, headers={"host": "receiver.example"}, path="/webhooks/ebay")

    assert said(PRESETS["ebay"](Endpoint((SIGNATURE,)))(shown, (secret,))) == right


def test_a_delivered_secret_is_found_where_nothing_is_signed() -> None:
    find = OFFERS["clio"](ENDPOINT)
    sent = asked("POST", headers={"X-Hook-Secret": "s"})

    assert find(sent) == Offer("s", Answer(200, headers={"x-hook-secret": "s"}))
    assert find(asked("POST")) is None
    assert find(asked("POST", headers={"X-Hook-Secret": "s", SIGNATURE: "00"})) is None
