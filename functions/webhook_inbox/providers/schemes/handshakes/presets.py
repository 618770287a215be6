"""Endpoint validation of providers that a declared source can verify: `handshake = "okta"`.

A challenge whose answer is computed with the source's key must have a form that no signed body has.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from webhook_inbox.domain.json_path import at
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer, Offer
from webhook_inbox.providers.schemes import http
from webhook_inbox.providers.schemes.handshakes import (
    EMPTY,
    Greeting,
    as_header,
    as_json,
    computes,
    greets,
    json_answer,
    probed,
    says,
    subscribes,
)
from webhook_inbox.providers.schemes.identity.event_identity import (
    Reading,
    header,
    in_json,
    in_query,
)
from webhook_inbox.providers.schemes.signatures import keys

UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
# No JSON object has this form.
WORD: Final = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)


class Endpoint(NamedTuple):
    """The endpoint's properties that an answer may depend on.

    Attributes:
        signatures: lower-case names of the headers with a signature; () if it is elsewhere.
        url: the source's configured address, or "".
    """

    signatures: tuple[str, ...]
    url: str = ""

    def shows_none(self, delivery: Delivery) -> bool:
        """Returns whether a delivery has no signature header."""
        return bool(self.signatures) and not any(map(delivery.headers.get, self.signatures))


Preset = Callable[[Endpoint], Greeting]
OfferFinder = Callable[[Delivery], Offer | None]


def shows_token(name: str, endpoint: Endpoint) -> Greeting:
    """Answers an unsigned request with the secret's part `verify_token` in a header.

    The token only identifies the endpoint's owner. Without one, an unsigned request is rejected.
    """

    def greet(delivery: Delivery, secrets: Sequence[str]) -> Answer | None:
        if delivery.method != "POST" or not endpoint.shows_none(delivery):
            return None
        token = keys.part(secrets[0], "verify_token") if secrets else ""
        return as_header(name)(token) if token else None

    return greet


def offers_in(name: str, endpoint: Endpoint) -> OfferFinder:
    """Finds a secret in a header of an unsigned request."""

    def offer(delivery: Delivery) -> Offer | None:
        secret = delivery.headers.get(name, "")
        if not secret or not endpoint.shows_none(delivery):
            return None
        return Offer(secret, as_header(name)(secret))

    return offer


def _main(secret: str) -> bytes:
    return keys.part(secret, "secret", bare=True).encode()


def _linkedin(code: str, secret: str, _: Delivery) -> Answer:
    made = hmac.digest(_main(secret), code.encode(), "sha256").hex()
    return json_answer({"challengeCode": code, "challengeResponse": made})


def _smartcar(challenge: str, secret: str, _: Delivery) -> Answer:
    made = hmac.digest(_main(secret), challenge.encode(), "sha256").hex()
    return json_answer({"challenge": made})


def _smartcars_challenge(reading: Reading) -> object:
    asked = at(reading.document, "eventType") == "VERIFY"
    return at(reading.document, "data.challenge") if asked else None


def _ebay(endpoint: Endpoint) -> Greeting:
    def answer(code: str, secret: str, delivery: Delivery) -> Answer:
        token = keys.part(secret, "verification_token", bare=True)
        address = http.public(replace(delivery, query=""), endpoint.url)
        made = hashlib.sha256((code + token + address).encode(errors="replace")).hexdigest()
        return json_answer({"challengeResponse": made})

    return computes(in_query("challenge_code"), answer, shape=UUID)


def _is_empty(reading: Reading) -> bool:
    return not reading.delivery.body


def _exact_online(endpoint: Endpoint) -> Greeting:
    def greet(delivery: Delivery, _: Sequence[str]) -> Answer | None:
        empty = delivery.method == "POST" and not delivery.body
        return EMPTY if empty and endpoint.shows_none(delivery) else None

    return greet


def _always(greeting: Greeting) -> Preset:
    return lambda _: greeting


# By the value of `handshake`; each as its provider documents it.
PRESETS: Final[Mapping[str, Preset]] = {
    "adobe-sign": _always(
        greets(header("x-adobesign-clientid"), as_header("x-adobesign-clientid"), method="GET")
    ),
    "circle": _always(probed("HEAD")),
    "ebay": _ebay,
    "exact-online": _exact_online,
    "front": _always(greets(header("x-front-challenge"), as_json("challenge"))),
    "linkedin": _always(computes(in_query("challengeCode"), _linkedin, shape=UUID)),
    "nylas": _always(greets(in_query("challenge"), method="GET")),
    "okta": _always(
        greets(header("x-okta-verification-challenge"), as_json("verification"), method="GET")
    ),
    "ringcentral": _always(greets(header("validation-token"), as_header("validation-token"))),
    "sharepoint": _always(greets(in_query("validationtoken"), when=_is_empty)),
    "smartcar": _always(computes(_smartcars_challenge, _smartcar, shape=WORD, method="POST")),
    "strava": _always(subscribes(as_json("hub.challenge"))),
    "tebex": _always(
        greets(in_json("id"), as_json("id"), when=says(in_json("type"), "validation.webhook"))
    ),
    "vercel-log-drain": lambda endpoint: shows_token("x-vercel-verify", endpoint),
}
OFFERS: Final[Mapping[str, Callable[[Endpoint], OfferFinder]]] = {
    "clio": lambda endpoint: offers_in("x-hook-secret", endpoint)
}
# The challenges that anyone can have signed, by preset.
SIGNED_SHAPES: Final[Mapping[str, re.Pattern[str]]] = {"linkedin": UUID, "smartcar": WORD}
NAMES: Final = tuple(sorted({*PRESETS, *OFFERS}))
