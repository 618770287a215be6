"""A world whose source `mail` sends batches, signed as SendGrid does."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from tests.unit.support.world import MANIFEST, World, handler
from webhook_inbox import providers
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.manifest import SPLIT, SPLITTER, HandlerSpec, Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery, EventStatus, Run, StoredEvent
from webhook_inbox.domain.provider import Verified
from webhook_inbox.ingest.batches import Splitter
from webhook_inbox.ingest.deduplication import IdempotentReceiver
from webhook_inbox.ingest.events import batch_event
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt

MAIL: Final = SourceSpec("mail", "sendgrid", "mail", types=("delivered", "bounce", "batch"))
NOTE: Final = handler("mail.note", source="mail")
SUPPRESS: Final = handler("mail.suppress", "bounce", source="mail", lane="slow")
_made = providers.load(MAIL).pair
assert _made is not None
PRIVATE, PUBLIC = _made()


def with_mail(*specs: HandlerSpec, source: SourceSpec = MAIL) -> Manifest:
    """Returns a manifest with a source of batches, what splits them, and these handlers."""
    handlers = {spec.name: spec for spec in (*specs, SPLITTER)}
    return replace(MANIFEST, sources={**MANIFEST.sources, "mail": source}, handlers=handlers)


def mail(event_id: str, type_: str = "delivered", **more: Any) -> dict[str, Any]:
    """Returns an item."""
    return {"sg_event_id": event_id, "event": type_, "timestamp": 1_767_225_600, **more}


def written(*items: object) -> bytes:
    """Returns a batch's body."""
    return json.dumps(items).encode()


def mails(count: int, *, type_: str = "delivered") -> list[dict[str, Any]]:
    """Returns so many items."""
    return [mail(f"mail-{n}", type_) for n in range(count)]


class Batches(World):
    """An inbox with a source of batches, and a handler in each of two lanes.

    Attributes:
        hook: called before each call of the table and the queues, with its operation.
    """

    def __init__(self, manifest: Manifest | None = None) -> None:
        super().__init__(manifest or with_mail(NOTE, SUPPRESS))
        self.vault.rotate("mail", PUBLIC)
        self.hook: Callable[[str], str | None] = lambda _: None
        for double in (self.table, self.blobs, *self.queues.values(), *self.dlqs.values()):
            double.faults = self._called

    def _called(self, service: str, operation: str) -> str | None:
        return self.plan(service, operation) or self.hook(operation)

    def send(self, *items: object) -> Receipt:
        """Delivers a batch."""
        return self.deliver(source="mail", secret=PRIVATE, body=written(*items))

    def sent(self, *items: object) -> str:
        """Delivers a batch that has to be accepted, and returns its event's id."""
        receipt = self.send(*items)
        assert receipt.outcome is IngestOutcome.ACCEPTED, receipt
        self.plan.operations()
        return receipt.event_id

    def slipped_in(self, *items: object) -> str:
        """Stores a batch as an ingest would that named its items in another way."""
        source = self.manifest.sources["mail"]
        body = written(*items)
        delivery = Delivery("mail", "POST", "/webhooks/mail", "", {}, body, self.now, "request-1")
        event = batch_event(delivery, providers.load(source), Verified(0, "signature", body))
        taking = IdempotentReceiver(self.manifest, self.ports)
        assert taking.take(event).outcome is IngestOutcome.ACCEPTED
        return event.event_id

    def stored(self, event_id: str) -> StoredEvent:
        """Returns an event of the source with its body."""
        found = self.ledger.overview("mail", event_id, now=self.now, with_body=True)
        assert found is not None
        return found.event

    def splitter(self, **changes: Any) -> Splitter:
        """Returns a splitter by a provider that differs from SendGrid's in this."""
        return Splitter(
            self.manifest,
            self.ports,
            providers=lambda spec: replace(providers.load(spec), **changes),
        )

    def split_of(self, batch: str) -> Run:
        """Returns the run that splits a batch."""
        return self.run(batch, SPLIT, "mail")

    def counts_of(self, batch: str) -> dict[str, int]:
        """Returns what became of a batch's items."""
        return dict(self.split_of(batch).progress["counts"])

    def handled_once(self, ids: Iterable[str], name: str = "mail.note") -> None:
        """Asserts that a handler has handled these events, each in one attempt, and no other."""
        handled = sorted((event_id, attempt) for n, event_id, attempt in self.handled if n == name)
        assert handled == [(event_id, 1) for event_id in sorted(ids)]

    def all_done(self, batch: str, *ids: str) -> None:
        """Asserts that a batch and its items have ended well, each handled once."""
        expected = dict.fromkeys((batch, *ids), EventStatus.DONE)
        assert {key: self.statuses()[key] for key in expected} == expected
        self.handled_once(ids)

    # -- accidents

    def dies_at(self, number: int, fault: Fault) -> Callable[[], bool]:
        """Lets the worker die in its so-manieth call from now on; returns whether it has."""
        left = number

        def hook(_: str) -> str | None:
            nonlocal left
            left -= 1
            if left > 0:
                return None
            return fault if left == 0 else Fault.BEFORE

        self.hook = hook
        return lambda: left <= 0

    def heal(self) -> None:
        """Lets every call through from now on."""
        self.hook = lambda _: None
        self.plan.heal()
