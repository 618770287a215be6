"""Each check of the observer rejects the violation and accepts the correct case."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest

from simulation.invariants.observer import RESEND_PAUSE_MS, RESENDS, Actor, Observer, Violation
from simulation.worlds.builders import FIRST
from tests.simulation.tiny import RUN
from webhook_inbox.adapters.memory import MemoryBlobs
from webhook_inbox.domain.ports import Item, Message
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.ledger import payloads
from webhook_inbox.queue.message import RunMessage

EVENT, OTHER = ("acme", "e1"), ("acme", "e2")
OTHER_RUN = (*OTHER, "mail")
REFERENCE = RunMessage(*RUN)
NOW = 1_000_000_000
FORGED = replace(FIRST, forged=True)
PREFIX = payloads.event_prefix(*EVENT)
ROW: Item = {"pk": "event#acme#e1", "expires_at": 1, "runs": ["mail"]}
ALIVE = {**ROW, **payloads.pack(FIRST.body, prefix=PREFIX).attributes, "expires_at": NOW}
EXPIRED = {**ALIVE, "expires_at": NOW // 1000 - 1}
GUARDED = {**ALIVE, "guard": "guard"}
LARGE = payloads.pack(replace(FIRST, padding=20_000).body, prefix=PREFIX)
SPILLED = {**ROW, **LARGE.attributes}
KEPT = {**SPILLED, "expires_at": NOW}
ERASED = {**KEPT, "headers": {}, "erased_at": 1}
del ERASED["body_ref"]
HASH = sha256(FIRST.body).hexdigest()


def told(**notes: Any) -> Observer:
    """Returns the notes of a world in which the first webhook is stored and sent."""
    return Observer(**{"contents": {EVENT: FIRST.body}, "sends": {RUN: 1}, **notes})


def receipt(outcome: IngestOutcome, status: int = 200) -> Receipt:
    return Receipt(outcome, status)


def message(generation: int) -> Message:
    text = replace(REFERENCE, generation=generation).encode()
    return Message("m-1", "r", text, datetime(2026, 1, 1, tzinfo=UTC), 1)


Deed = Callable[[Observer], object]


def answered(outcome: IngestOutcome, status: int = 200, **parts: Any) -> Deed:
    webhook, row = parts.get("webhook", FIRST), parts.get("row", ROW)
    return lambda observer: observer.answered(webhook, receipt(outcome, status), row)


def stored(new: Item, old: Item | None = None, blob: bytes | None = None) -> Deed:
    blobs = MemoryBlobs()
    if blob is not None:
        blobs.put(LARGE.blob_key, blob)
    return lambda observer: observer.stored(old, new, NOW, blobs)


def sent(kind: str, generation: int, of_row: int, **parts: Any) -> Deed:
    actor = Actor(kind, message=parts.get("message"))
    reference = replace(parts.get("reference", REFERENCE), generation=generation)
    return lambda observer: observer.sent(actor, reference, of_row, NOW)


def begins(**parts: Any) -> Deed:
    given: dict[str, Any] = {
        "content": HASH,
        "row": {"status": "processing"},
        "limit": 2,
        "busy": False,
    }
    given |= parts
    return lambda observer: observer.attempt_began(
        RUN, given["content"], given["row"], limit=given["limit"], busy=given["busy"]
    )


# The guarantee, what the world knows, what is right, and what breaks it.
CHECKS: dict[str, tuple[str, Observer, Deed, Deed]] = {
    "what is forged is refused": (
        "G6",
        told(),
        answered(IngestOutcome.REJECTED, 401, webhook=FORGED),
        answered(IngestOutcome.ACCEPTED, webhook=FORGED),
    ),
    "what is forged is no duplicate": (
        "G6",
        told(),
        answered(IngestOutcome.UNAVAILABLE, 503, webhook=FORGED),
        answered(IngestOutcome.DUPLICATE, webhook=FORGED),
    ),
    "a conflict is told": (
        "G7",
        told(),
        answered(IngestOutcome.CONFLICT, 409),
        answered(IngestOutcome.CONFLICT, 200),
    ),
    "only other content under a captured signature is dropped": (
        "G1",
        told(contents={OTHER: FIRST.body}),
        answered(IngestOutcome.REPLAYED, webhook=replace(FIRST, grafted=True)),
        answered(IngestOutcome.REPLAYED),
    ),
    "an ignored type is not stored": (
        "G1",
        told(),
        answered(IngestOutcome.IGNORED, row=None),
        answered(IngestOutcome.HELD, 202, row=None),
    ),
    "signed content begins by itself under one id": (
        "G6",
        told(began={("acme", "hash"): OTHER}),
        lambda observer: observer.content_began((*OTHER, "mail"), {"guard": "hash"}),
        lambda observer: observer.content_began((*FIRST.event, "mail"), {"guard": "hash"}),
    ),
    "a decision lets it begin under another": (
        "G6",
        told(began={("acme", "hash"): OTHER}, decided={(*FIRST.event, "mail")}),
        lambda observer: observer.content_began((*FIRST.event, "mail"), {"guard": "hash"}),
        lambda observer: observer.content_began((*FIRST.event, "bill"), {"guard": "hash"}),
    ),
    "what is acknowledged is stored": (
        "G1",
        told(),
        answered(IngestOutcome.ACCEPTED),
        answered(IngestOutcome.ACCEPTED, row=None),
    ),
    "what is refused may be anywhere": (
        "G1",
        told(),
        answered(IngestOutcome.UNAVAILABLE, 503, row=None),
        answered(IngestOutcome.DUPLICATE, 200, row=None),
    ),
    "a duplicate has the same content": (
        "G7",
        told(),
        answered(IngestOutcome.DUPLICATE),
        answered(IngestOutcome.DUPLICATE, webhook=replace(FIRST, content="43")),
    ),
    "what is accepted is sent": (
        "G1",
        told(),
        answered(IngestOutcome.ACCEPTED),
        answered(IngestOutcome.ACCEPTED, row={**ROW, "runs": ["mail", "bill"]}),
    ),
    "a stored event is not changed": (
        "G1",
        told(),
        stored(ALIVE, ALIVE),
        stored({**ALIVE, "type": "other"}, ALIVE),
    ),
    "only an expired event is replaced": (
        "G1",
        told(),
        stored({**ALIVE, "type": "other"}, EXPIRED),
        stored({**ALIVE, "type": "other"}, {**EXPIRED, "expires_at": NOW}),
    ),
    "an event has its body": (
        "G1",
        told(),
        stored(SPILLED, blob=LARGE.blob),
        stored(SPILLED),
    ),
    "an erased event has no body": (
        "erasure",
        told(),
        stored(ERASED, KEPT),
        stored(ERASED, KEPT, blob=LARGE.blob),
    ),
    "an erased event keeps its identity": (
        "erasure",
        told(),
        stored(ERASED, KEPT),
        stored({**ERASED, "type": "other"}, KEPT),
    ),
    "an event has no other body": (
        "G1",
        told(),
        stored(SPILLED, blob=LARGE.blob),
        stored(SPILLED, blob=payloads.pack(b"x" * 20_000, prefix=PREFIX).attributes["body"]),
    ),
    "one signed content is one event or linked to the first": (
        "G6",
        told(contents={("github", "e9"): FIRST.body}),
        stored(GUARDED),
        lambda observer: stored(GUARDED)(told(contents={OTHER: FIRST.body})),
    ),
    "a message is not ahead of its row": (
        "G1",
        told(),
        sent("ingest", 0, 0),
        sent("ingest", 1, 0),
    ),
    "a replay has a generation of its own": (
        "G1",
        told(),
        sent("replay", 1, 1),
        sent("replay", 0, 1),
    ),
    "a copy is newer than what it replaces": (
        "G1",
        told(),
        sent("processor", 2, 2, message=message(1)),
        sent("processor", 1, 2, message=message(1)),
    ),
    "a worker does not resend a run under its old generation": (
        "G1",
        told(),
        sent("processor", 0, 0, message=message(0), reference=RunMessage(*OTHER_RUN)),
        sent("processor", 0, 0, message=message(0)),
    ),
    "the reconciler pauses": (
        "flood",
        told(resent={(RUN, 1): (NOW - RESEND_PAUSE_MS, 1)}),
        sent("reconciler", 1, 1),
        lambda observer: sent("reconciler", 1, 1)(told(resent={(RUN, 1): (NOW - 1, 1)})),
    ),
    "the reconciler gives up": (
        "flood",
        told(resent={(RUN, 1): (0, RESENDS - 1)}),
        sent("reconciler", 1, 1),
        lambda observer: sent("reconciler", 1, 1)(told(resent={(RUN, 1): (0, RESENDS)})),
    ),
    "one attempt at once": ("G2", told(), begins(), begins(busy=True)),
    "what is finished is not run": (
        "G3",
        told(),
        begins(row={"status": "failed"}),
        begins(row={"status": "skipped"}),
    ),
    "a handler sees what was sent": ("G7", told(), begins(), begins(content="other")),
    "a round has its attempts": (
        "G1",
        told(spent={RUN: 2}),
        begins(),
        begins(limit=1),
    ),
    "a run keeps its key": (
        "G4",
        told(keys={RUN: "key"}),
        lambda observer: observer.posted(RUN, "key"),
        lambda observer: observer.posted(RUN, "other"),
    ),
    "no two runs share a key": (
        "G4",
        told(keys={RUN: "key"}),
        lambda observer: observer.posted(OTHER_RUN, "other"),
        lambda observer: observer.posted(OTHER_RUN, "key"),
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_fires_on_what_is_wrong_and_on_nothing_else(name: str) -> None:
    guarantee, observer, right, wrong = CHECKS[name]
    right(observer.copy())
    with pytest.raises(Violation) as violation:
        wrong(observer.copy())
    assert violation.value.guarantee == guarantee
