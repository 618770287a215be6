"""Answers to the requests that providers send before events: challenges, validations, probes.

An echoed challenge is short text, with a content type that browsers do not render. An answer is
computed with a key only for challenges of a form that no delivery has: otherwise anyone could have
the endpoint sign an event.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from webhook_inbox.domain.json_path import query_field
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Answer
from webhook_inbox.providers.schemes.identity.event_identity import Finder, Reading, in_query
from webhook_inbox.providers.schemes.signatures import keys
from webhook_inbox.providers.schemes.signatures.encodings import matches

JSON: Final = "application/json"
LIMIT: Final = 1024
# Many times the size of any challenge. An unsigned body is parsed only below it.
BODY_LIMIT: Final = 64 * 1024
NO_SNIFF: Final = {"x-content-type-options": "nosniff"}

Greeting = Callable[[Delivery, Sequence[str]], Answer | None]
Handshake = Callable[[Delivery, str], Answer | None]
Maker = Callable[[str], Answer]
Computation = Callable[[str, str, Delivery], Answer]
EMPTY: Final = Answer(200)


def as_text(challenge: str) -> Answer:
    """Answers with the challenge as plain text."""
    return Answer(200, challenge.encode(errors="replace"), headers=NO_SNIFF)


def as_json(*names: str) -> Maker:
    """Answers with the challenge under each of these names of a JSON object."""
    return lambda challenge: json_answer(dict.fromkeys(names, challenge))


def as_header(name: str) -> Maker:
    """Answers with the challenge in a header."""
    return lambda challenge: Answer(200, headers={name: challenge})


def json_answer(document: dict[str, Any]) -> Answer:
    """Answers with a JSON object."""
    return Answer(200, json.dumps(document).encode(), JSON, NO_SNIFF)


def challenge_in(delivery: Delivery, find: Finder) -> str | None:
    """Returns a challenge that may be echoed: short text without control characters."""
    found = find(Reading(delivery)) if len(delivery.body) <= BODY_LIMIT else None
    if not isinstance(found, str) or not found or len(found) > LIMIT or not found.isprintable():
        return None
    return found


def greets(
    find: Finder,
    answer: Maker = as_text,
    *,
    method: str = "POST",
    when: Callable[[Reading], bool] = lambda _: True,
) -> Greeting:
    """Echoes a challenge that is sent unsigned."""

    def greet(delivery: Delivery, _: Sequence[str]) -> Answer | None:
        if delivery.method != method or len(delivery.body) > BODY_LIMIT:
            return None
        challenge = challenge_in(delivery, find) if when(Reading(delivery)) else None
        return None if challenge is None else answer(challenge)

    return greet


def probed(method: str, answer: Answer = EMPTY) -> Greeting:
    """Answers a probe without content, such as HEAD."""
    return lambda delivery, _: answer if delivery.method == method else None


def computes(
    find: Finder, answer: Computation, *, shape: re.Pattern[str], method: str = "GET"
) -> Greeting:
    """Answers an unsigned challenge with a value computed from the current secret.

    Args:
        find: finds the challenge.
        answer: makes (challenge, secret, delivery) the answer.
        shape: the form of a challenge, which no signed content has.
        method: its HTTP method.
    """

    def greet(delivery: Delivery, secrets: Sequence[str]) -> Answer | None:
        if delivery.method != method or not secrets:
            return None
        challenge = challenge_in(delivery, find)
        if challenge is None or shape.fullmatch(challenge) is None:
            return None
        return answer(challenge, secrets[0], delivery)

    return greet


def subscribes(answer: Maker) -> Greeting:
    """Echoes `hub.challenge` if the request has the secret's part `verify_token`; else 403."""

    def greet(delivery: Delivery, secrets: Sequence[str]) -> Answer | None:
        if delivery.method != "GET" or query_field(delivery, "hub.mode") != "subscribe":
            return None
        sent = query_field(delivery, "hub.verify_token") or ""
        tokens = [keys.part(secret, "verify_token") for secret in secrets]
        if not any(token and matches(sent, token) for token in tokens):
            return Answer(403)
        challenge = challenge_in(delivery, in_query("hub.challenge"))
        return None if challenge is None else answer(challenge)

    return greet


def echoes(find: Finder, answer: Maker = as_text, *, when: Callable[[Reading], bool]) -> Handshake:
    """Echoes a challenge that is signed like an event."""

    def shake(delivery: Delivery, _: str) -> Answer | None:
        if not when(Reading(delivery)):
            return None
        challenge = challenge_in(delivery, find)
        return None if challenge is None else answer(challenge)

    return shake


def says(find: Finder, value: object) -> Callable[[Reading], bool]:
    """Returns a test whether a finder finds exactly this value."""
    return lambda reading: find(reading) == value
