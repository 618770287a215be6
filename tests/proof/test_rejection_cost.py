"""A rejection costs little CPU, however hostile the body: anyone can send 6 MB without a secret.

The processor time of the whole of ingest is compared with that of hashing the same bytes, which
every signature costs. Neither depends on what else the machine does. No body is received twice, so
no cache serves a repetition.
"""

import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache, partial
from hashlib import sha256
from typing import Any

import pytest

from tests.proof.rejection import hostile
from tests.proof.rejection.hostile import bodies, unseen
from tests.proof.test_one_signature import declared_cases
from tests.unit.providers.cases import NAMES, Case, recorded, signed, valid_vectors
from tests.unit.providers.deliveries import OTHER
from tests.unit.providers.inbox import CaseInbox
from tests.unit.providers.test_declared_schemes import SOURCES, vectors
from webhook_inbox.domain.errors import Reason, Rejected
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.provider import Provider, Verified
from webhook_inbox.ingest.receipt import IngestOutcome
from webhook_inbox.ingest.rejected import PER_MINUTE

REFUSED = frozenset(
    {IngestOutcome.REJECTED, IngestOutcome.NO_SECRET, IngestOutcome.KEY_UNAVAILABLE}
)
# Hashing 4.5 MB takes 3 ms where this was measured, beside twenty other programs. The largest
# ratios there were 21 to 26 (Adyen, Mailgun, SNS): parsing waits for memory, hashing does not.
RATIO = 26
TRIES = 5
# Other work on the machine can take the memory's bandwidth for seconds.
ROUNDS = 6
# A provider's name is that of its main scheme; its other schemes have vectors.
SCHEMES = [vector for name, vector in valid_vectors() if vector["scheme"] != name]


def without_credential(case: Case) -> Case:
    """Returns a case whose credential is wrong, if it would be valid for any body."""
    facts = case.provider.facts
    if facts is None or facts.body != "none":
        return case
    sent = case.delivery.headers
    tokens = {k: spoilt(v) for k, v in sent.items() if k in case.provider.signature_headers}
    # A token in a header is compared with the live secret; one elsewhere with another secret.
    secrets = case.secrets if tokens else tuple(OTHER for _ in case.secrets)
    delivery = replace(case.delivery, headers={**sent, **tokens})
    return replace(case, delivery=delivery, secrets=secrets)


def spoilt(value: str) -> str:
    """Returns a token with another signature."""
    place = len(value) - 9
    return value[:place] + ("A" if value[place : place + 1] != "A" else "B") + value[place + 1 :]


def seconds(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def hashing(body: bytes) -> float:
    """Returns the processor time of hashing a body, now."""
    return min(seconds(lambda: sha256(body).digest()) for _ in range(TRIES))


class Flood:
    """Receives hostile deliveries, each once.

    Attributes:
        begun: the source has received so much junk in this minute that it stores no more.
    """

    def __init__(self, case: Case, *, begun: bool) -> None:
        self._case = case
        self._begun = CaseInbox(case) if begun else None
        if self._begun is not None:
            for number in range(PER_MINUTE + 1):
                junk = replace(case.delivery, headers={}, body=b"junk %d" % number)
                _receive(self._begun, junk)

    def ratio(self, sent: Delivery, *, baseline: float = 0) -> float:
        """Returns the processor time of a rejection, as a multiple of hashing its body."""
        fresh = replace(sent, body=unseen(sent.body))
        inbox = self._begun or CaseInbox(self._case)
        return seconds(partial(_receive, inbox, fresh)) / (baseline or hashing(fresh.body))

    def is_cheap(self, sent: Delivery, *, baseline: float = 0) -> bool:
        """Tells if one of some tries was: a try is slowed down by others, and never sped up."""
        return any(self.ratio(sent, baseline=baseline) < RATIO for _ in range(TRIES))


def _receive(inbox: CaseInbox, sent: Delivery) -> None:
    receipt = inbox.receive(sent)
    assert receipt.outcome in REFUSED, receipt


def costly(case: Case, deliveries: Mapping[str, Delivery], *, begun: bool = False) -> list[str]:
    """Returns the deliveries whose rejection costs too much, each time that they were measured."""
    flood = Flood(case, begun=begun)
    sent = deliveries.items()
    found = [label for label, each in sent if not flood.is_cheap(each, baseline=alone(each.body))]
    for _ in range(ROUNDS):
        found = [label for label in found if not flood.is_cheap(deliveries[label])]
    return found


def alone(body: bytes) -> float:
    """Returns the processor time of hashing a body, which depends on its length only."""
    return _hashing_blanks(len(unseen(body)))


@cache
def _hashing_blanks(size: int) -> float:
    return hashing(b" " * size)


def hostile_bodies(case: Case, *, begun: bool = False) -> dict[str, Delivery]:
    """Returns a case's deliveries with each body that its provider may read."""
    skipped = {label for made in _of_others(case.provider) for label in made()}
    return {
        label: replace(case.delivery, body=body)
        for label, body in bodies().items()
        if label not in skipped and (not begun or hostile.is_parsed(label))
    }


def _of_others(provider: Provider) -> list[Callable[[], Mapping[str, bytes]]]:
    """Returns the makers of bodies whose values are read for other providers only."""
    read: dict[Callable[[], Mapping[str, bytes]], bool] = {
        hostile.with_tokens: bool(provider.token_members),
        hostile.in_items: provider.name in {"adyen", "hmac"},
        hostile.in_messages: provider.name == "aws-sns",
    }
    return [made for made, reads in read.items() if not reads]


def hostile_headers(case: Case) -> dict[str, Delivery]:
    """Returns a case's deliveries of the largest size, each with thousands of signatures."""
    sent = replace(case.delivery, body=b"a")
    return {
        f"{name}, {number}": replace(sent, headers={**sent.headers, name: value})
        for name in sorted(case.provider.signature_headers & sent.headers.keys())
        for number, value in enumerate(hostile.many_entries(sent.headers[name]))
    }


def read_before_verified(name: str) -> bool:
    """Tells if a declared source has a signature, a time or signed fields in the body."""
    tables = SOURCES[name].settings if name in SOURCES else {}
    read = json.dumps([tables.get("signature"), tables.get("timestamp"), tables.get("digest")])
    return "json" in read or "form" in read


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Keeps the tests' own objects out of the garbage collector's way, as ingest has few.

    Once: a full collection beside 15,000 tests takes longer than one of these tests.
    """
    bodies()
    gc.collect()
    gc.freeze()
    yield
    hostile.forget()


@pytest.mark.parametrize("provider_name", NAMES)
def test_no_rejection_costs_much_more_than_hashing_the_body(provider_name: str) -> None:
    case = without_credential(signed(provider_name))
    assert costly(case, hostile_bodies(case)) == []


@pytest.mark.parametrize("provider_name", NAMES)
def test_none_costs_more_in_a_minute_of_junk(provider_name: str) -> None:
    case = without_credential(signed(provider_name))
    assert costly(case, hostile_bodies(case, begun=True), begun=True) == []


@pytest.mark.parametrize("vector", [pytest.param(each, id=each["id"]) for each in SCHEMES])
def test_no_rejection_of_another_scheme_costs_more(vector: Mapping[str, Any]) -> None:
    case = without_credential(recorded(vector))
    assert costly(case, hostile_bodies(case)) == []


@pytest.mark.parametrize("scheme", sorted(filter(read_before_verified, vectors())))
def test_no_rejection_of_a_declared_source_costs_more(scheme: str) -> None:
    case = next(declared_cases(scheme))
    assert costly(case, hostile_bodies(case)) == []


@pytest.mark.parametrize("provider_name", NAMES)
def test_no_rejection_of_many_signatures_costs_more(provider_name: str) -> None:
    case = without_credential(signed(provider_name))
    assert costly(case, hostile_headers(case)) == []


@pytest.mark.parametrize("vector", [pytest.param(each, id=each["id"]) for each in SCHEMES])
def test_no_rejection_of_many_signatures_of_another_scheme(vector: Mapping[str, Any]) -> None:
    case = without_credential(recorded(vector))
    assert costly(case, hostile_headers(case)) == []


def test_a_cache_does_not_hide_a_cost() -> None:
    @lru_cache(maxsize=2)
    def parsed(body: bytes) -> object:
        return json.loads(body)

    def verify(delivery: Delivery, _: Sequence[str]) -> Verified:
        with suppress(ValueError):
            parsed(delivery.body)
        raise Rejected(Reason.MALFORMED, "no signature verifies it")

    case = signed("github")
    slow = replace(case, provider=replace(case.provider, verify=verify))
    sent = replace(case.delivery, body=bodies()["lists"])

    assert costly(slow, {"lists": sent}) == ["lists"]
    assert costly(slow, {"lists": sent}, begun=True) == ["lists"]


def test_a_batch_of_300_signed_items_is_verified() -> None:
    """Adyen sends a few in one request."""
    case = signed("adyen")
    (item,) = json.loads(case.delivery.body)["notificationItems"]
    item["NotificationRequestItem"]["reason"] = 'of "several" words\n'
    body = json.dumps({"live": "false", "notificationItems": [item] * 300}).encode()
    assert len(body) > 100_000
    case.provider.verify(replace(case.delivery, body=body), case.secrets)
