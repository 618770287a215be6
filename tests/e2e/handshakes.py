"""The handshake requests of providers, and the answers they expect.

Each follows the provider's documentation, including secrets and challenges.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tests.e2e.every_provider import EveryProvider
from tests.e2e.http_call import Answer
from webhook_inbox.domain.provider import Sample

UUID = "bc609b38-c81f-47fb-a275-1d9bd61a968b"
SUBSCRIBE = {"hub.mode": "subscribe", "hub.verify_token": "my-token"}


@dataclass(frozen=True)
class Question:
    """An unsigned request; `right` is the answer's body: text, or JSON, or None for any."""

    method: str = "GET"
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None
    right: Any = ""
    shown: Mapping[str, str] = field(default_factory=dict)

    def put(self, inbox: EveryProvider, source: str) -> Answer:
        raw = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        return inbox.ask(
            source,
            self.method,
            query=urlencode(self.query),
            headers={"Content-Type": "application/json", **self.headers},
            body=b"" if self.body is None else raw,
        )


@dataclass(frozen=True)
class Signed:
    """A request that is signed as an event is."""

    body: object
    right: Any = ""
    type: str = ""
    status: int = 200

    def put(self, inbox: EveryProvider, source: str) -> Answer:
        return inbox.take(source, inbox.made(source, self.sample))

    @property
    def sample(self) -> Sample:
        return Sample("asked-1", self.type, json.dumps(self.body).encode())


def _same(name: str, value: str) -> dict[str, Mapping[str, str]]:
    return {"headers": {name: value}, "shown": {name.lower(): value}}


VALIDATION = {
    "id": "2d1781af-3a4c-4d7c-bd0c-e34b19da4e66",
    "eventType": "Microsoft.EventGrid.SubscriptionValidationEvent",
    "data": {"validationCode": "512d38b6-c7b8-40c8-89fe-f46f9e9622b6"},
}
ORIGIN = {"WebHook-Request-Origin": "eventemitter.example.com", "WebHook-Request-Rate": "120"}
ALLOWED = {
    "webhook-allowed-origin": "eventemitter.example.com",
    "webhook-allowed-rate": "120",
    "allow": "POST",
}
PLAIN_TOKEN = "qgg8vlvZRS6UYooatFL8Aw"
# A provider with several requests has a suffix after its name.
UNSIGNED: Mapping[str, Question] = {
    "adobe-sign": Question(**_same("X-AdobeSign-ClientId", "CBJCHBCAABAAo8")),
    "azure-event-grid": Question(
        "POST",
        headers={"aeg-event-type": "SubscriptionValidation"},
        body=[VALIDATION],
        right={"validationResponse": "512d38b6-c7b8-40c8-89fe-f46f9e9622b6"},
    ),
    "braintree": Question(
        query={"bt_challenge": "20f9f8ed05f77439fe955c977e4c8a53"},
        right="integration_public_key|d9b899556c966b3f06945ec21311865d35df3ce4",
    ),
    "circle": Question("HEAD"),
    "cloudevents": Question("OPTIONS", headers=ORIGIN, shown=ALLOWED),
    "dropbox": Question(
        query={"challenge": "abc123"}, right="abc123", shown={"x-content-type-options": "nosniff"}
    ),
    "ebay": Question(
        query={"challenge_code": "a8628072-3d33-45ee-9004-bee86830a22d"},
        right={
            "challengeResponse": "fca6c0d8f5f9d73f71ab33d8d89b30589d732d0b8bb89cb9a3d48e89a1fc6f85"
        },
    ),
    "exact-online": Question("POST", body=b""),
    "front": Question("POST", headers={"X-Front-Challenge": "c"}, right={"challenge": "c"}),
    "intercom": Question("HEAD"),
    "linkedin": Question(
        query={"challengeCode": "890e4665-4dfe-4ab1-b689-ed553bceeed0"},
        right={
            "challengeCode": "890e4665-4dfe-4ab1-b689-ed553bceeed0",
            "challengeResponse": "313e20a5110164b82333ba6cb7cdad9e864a8e809bb93b22935d24b57f42823f",
        },
    ),
    "meta": Question(query={**SUBSCRIBE, "hub.challenge": "1158201444"}, right="1158201444"),
    "microsoft-graph": Question(
        "POST",
        query={"validationToken": "Validation: Testing client"},
        right="Validation: Testing client",
    ),
    "monday": Question(
        "POST", body={"challenge": "3eZbrw1aBm2r"}, right={"challenge": "3eZbrw1aBm2r"}
    ),
    "nylas": Question(query={"challenge": UUID}, right=UUID),
    "okta": Question(
        headers={"X-Okta-Verification-Challenge": "my verification challenge"},
        right={"verification": "my verification challenge"},
    ),
    "ringcentral": Question("POST", **_same("Validation-Token", "t")),
    "sharepoint": Question("POST", query={"validationtoken": "abc"}, right="abc"),
    "smartcar": Question(
        "POST",
        body={"eventType": "VERIFY", "data": {"challenge": "c"}},
        right={"challenge": "650538138022d0aec80daeb3628aa31f0aa942ba1f60f8561e38ec254255b198"},
    ),
    "strava": Question(
        query={**SUBSCRIBE, "hub.challenge": "15f7d1a91c1f40f8"},
        right={"hub.challenge": "15f7d1a91c1f40f8"},
    ),
    "tebex": Question("POST", body={"type": "validation.webhook", "id": "w1"}, right={"id": "w1"}),
    "terraform-cloud": Question(
        "POST", body={"run_id": None, "notifications": [{"trigger": "verification"}]}
    ),
    "trello": Question("HEAD"),
    "twitter": Question(
        query={"crc_token": "9b4507b3-9040-4669-9ca3-6b94edb50553"},
        right={"response_token": "sha256=Cytd4Sq+NvEcV3MMrXxWJGJx5A+y/lXzzU2Maartkx8="},
    ),
    "vercel-log-drain": Question("POST", body=[], shown={"x-vercel-verify": "my-token"}),
    "woocommerce": Question(
        "POST",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body=b"webhook_id=5",
    ),
}
SIGNED: Mapping[str, Signed] = {
    "discord": Signed(
        {"version": 1, "application_id": "1234560123453231555", "type": 0}, status=204
    ),
    "discord interactions": Signed({"id": "1", "type": 1, "version": 1}, right={"type": 1}),
    # It is an event as any other.
    "github": Signed({"zen": "Keep it logically awesome.", "hook_id": 1}, None, "ping", 202),
    "line": Signed({"destination": "U0", "events": []}),
    "slack": Signed(
        {"type": "url_verification", "token": "t", "challenge": "3eZbrw1a"}, right="3eZbrw1a"
    ),
    "twitch": Signed(
        {"challenge": "pogchamp-kappa-360noscope-vohiyo", "subscription": {}},
        right="pogchamp-kappa-360noscope-vohiyo",
        type="webhook_callback_verification.x",
    ),
    "xero": Signed({"events": [], "firstEventSequence": 0, "lastEventSequence": 0, "entropy": "e"}),
    "zoom": Signed(
        {"event": "endpoint.url_validation", "payload": {"plainToken": PLAIN_TOKEN}},
        right={
            "plainToken": PLAIN_TOKEN,
            "encryptedToken": "d9e0d764a78494688ba3f2d5c0ed4ca311394b4834d959759213424d2df961e3",
        },
    ),
}
# A secret that the provider delivers: as its request has it, and where the answer shows it.
OFFERS: Mapping[str, tuple[Question, str]] = {
    "new-asana": (
        Question("POST", body={}, **_same("X-Hook-Secret", "b537207f20cbfa02")),
        "b537207f20cbfa02",
    ),
    "new-clio": (Question("POST", **_same("X-Hook-Secret", "s")), "s"),
    "new-notion": (
        Question("POST", body={"verification_token": "secret_example"}),
        "secret_example",
    ),
}


def said(answer: Answer, right: Any) -> Any:
    """Returns an answer's body as what is right is written."""
    if right is None:
        return None
    return answer.json if isinstance(right, dict) else answer.body.decode()
