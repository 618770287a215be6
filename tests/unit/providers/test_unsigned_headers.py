"""Each provider's facts name the unsigned headers from which an event's id or type is taken.

A test changes one header of a valid delivery. If the delivery still verifies and its event has
another id or type, an attacker who captured a signed body can choose that value.
"""

import hmac
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.unit.providers.cases import ROOT, Case, recorded, signed, valid_vectors
from webhook_inbox.domain.errors import Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Facts, Provider, Sample, Verified
from webhook_inbox.providers import MODULES

# Declared sources choose the places themselves.
NAMES = sorted(MODULES.keys() - {"hmac", "jwt"})
# Their types are guarded otherwise, or not at all: "Out of scope" in docs/deploy.md names them.
ACCEPTED_ONCE = {"gitlab", "netlify", "shopify", "woocommerce"}
GUARANTEES = ROOT / "docs" / "guarantees.md"
LIST = "x-contentful-signed-headers"


def cases(name: str) -> Iterator[Case]:
    """Yields valid deliveries: our sample, a body without a type, and the vectors."""
    yield signed(name)
    if name == "contentful":
        yield with_few_signed_headers()
    elif name in {"sanity", "twitch"}:
        yield signed(name, Sample("1", "update.it", b'{"id":"1"}'))
    yield from (recorded(vector) for named, vector in valid_vectors() if named == name)


def with_few_signed_headers() -> Case:
    """Returns a delivery of a space that lists no header of the event's."""
    case = signed("contentful")
    time = case.delivery.headers["x-contentful-timestamp"]
    sent = case.delivery
    listed = {LIST: f"{LIST},x-contentful-timestamp"}
    content = f"POST\n/webhooks/contentful\n{LIST}:{listed[LIST]};x-contentful-timestamp:{time}\n"
    mac = hmac.new(case.secrets[0].encode(), content.encode() + sent.body, "sha256").hexdigest()
    headers = {**sent.headers, **listed, "x-contentful-signature": mac}
    return replace(case, delivery=replace(sent, headers=headers))


def names_of(provider: Provider, delivery: Delivery) -> list[tuple[str, str]] | None:
    """Returns id and type of each event of a delivery; None if it is refused."""
    verified = replace(delivery, verified=True)
    try:
        parts = provider.batch(verified) if provider.batch else None
        named = [provider.identify(each) for each in ([verified] if parts is None else parts)]
    except Rejected:
        return None
    return [(identity.event_id, identity.type) for identity in named]


def unsigned_headers(case: Case) -> Iterator[tuple[str, bool]]:
    """Yields each unsigned header that changes an event's name, and whether it changes the type."""
    provider, before = case.provider, names_of(case.provider, case.delivery)
    if before is None:
        return
    for header in sorted(provider.kept_headers | provider.signature_headers):
        changed = case.with_header(header, "forged")
        after = names_of(provider, changed)
        if after not in (before, None) and isinstance(case.verdict(changed), Verified):
            yield header, [type_ for _, type_ in before] != [type_ for _, type_ in after or ()]


def signing_cases(name: str) -> list[Case]:
    """Returns the cases whose signature covers the body, or a part of it."""
    return [case for case in cases(name) if facts_of(case).body != "none"]


def cases_with_unsigned_type(name: str) -> list[Case]:
    """Returns the cases in which an unsigned header changes the type."""
    return [
        case for case in signing_cases(name) if any(types for _, types in unsigned_headers(case))
    ]


def facts_of(case: Case) -> Facts:
    assert case.provider.facts is not None
    return case.provider.facts


@pytest.mark.parametrize("name", NAMES)
def test_the_facts_name_each_unsigned_header_that_names_an_event(name: str) -> None:
    found, stated = set(), set()
    for case in signing_cases(name):
        found |= {header for header, _ in unsigned_headers(case)}
        stated |= {text.lower() for text in re.findall(r"`(\w+-[\w-]+)`", facts_of(case).unsigned)}
    assert found == stated


@pytest.mark.parametrize("name", NAMES)
def test_an_unsigned_type_is_guarded_where_it_is_not_stored(name: str) -> None:
    unguarded = [
        case for case in cases_with_unsigned_type(name) if not case.provider.guards_ignored
    ]
    assert bool(unguarded) is (name in ACCEPTED_ONCE)


@pytest.mark.parametrize("name", NAMES)
def test_the_guarantees_name_each_provider_with_an_unsigned_type(name: str) -> None:
    text = GUARANTEES.read_text(encoding="utf-8")
    limit = text.partition("- G6 does not cover a type")[2].partition("\n- GitLab's type is")[0]
    title = facts_of(signed(name)).title.partition(" ")[0]
    expected = bool(cases_with_unsigned_type(name)) and name != "gitlab"
    assert (re.search(rf"\b{re.escape(title)}\b", limit) is not None) is expected
