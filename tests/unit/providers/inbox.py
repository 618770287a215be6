"""The real ingest over the in-memory doubles, for one source that is judged like a case."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count

from tests.unit.providers.cases import Case
from tests.unit.support.world import World
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.manifest import SPLIT, SPLITTER, HandlerSpec, Manifest, SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.secrets import TOKEN_KEY
from webhook_inbox.ingest.batches import BatchProgress, Splitter
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import Receipt
from webhook_inbox.queue.message import RunMessage

HANDLER = HandlerSpec("it.run", "module", "function", "it", ("*",))
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Ignoring(Manifest):
    """A manifest whose sources store all types but one."""

    ignored: str = ""

    def wants(self, source: SourceSpec, type_: str) -> bool:
        return type_ != self.ignored and Manifest.wants(self, source, type_)


class CaseInbox:
    """An inbox with one source, whose events all have one run; it may ignore one type.

    Attributes:
        started: the ids of the events whose run has a message and so may start.
    """

    def __init__(
        self, case: Case, *, secrets: Sequence[str] | None = None, ignored: str = ""
    ) -> None:
        live = tuple(case.secrets if secrets is None else secrets)
        spec = SourceSpec("it", case.provider_name, "it", types=("*",))
        handlers = {each.name: each for each in (HANDLER, SPLITTER)}
        manifest = Ignoring("test", "1", {"it": spec}, handlers, ignored=ignored)
        world = World(manifest, secrets={"it": live, TOKEN_KEY: ("a-key-that-the-stack-made",)})
        ports = replace(world.ports, fetcher=case)
        self.queue = world.queues["default"]
        self.ingest = Ingest(manifest, ports, providers=lambda _: case.provider)
        self._splitter = Splitter(manifest, ports, providers=lambda _: case.provider)
        self._ledger, self._clock = world.ledger, world.clock
        self._numbers = count(1)
        self.started: set[str] = set()

    def receive(self, delivery: Delivery) -> Receipt:
        """Receives a delivery and splits it, if it is a batch."""
        number = next(self._numbers)
        receipt = self.ingest.receive(replace(delivery, source="it", request_id=f"r-{number}"))
        while received := self.queue.receive(10, hidden_for=60):
            for each in received:
                message = RunMessage.decode(each.body)
                self.queue.delete(each.receipt)
                if message.handler == SPLIT:
                    self._split(message, delivery)
                else:
                    self.started.add(message.event_id)
        return receipt

    def _split(self, message: RunMessage, delivery: Delivery) -> None:
        found = self._ledger.overview(
            "it", message.event_id, now=delivery.received_at, with_body=True
        )
        assert found is not None
        end = self._clock.now() + MINUTE
        with suppress(Permanent):  # an item conflicts; the others are taken
            self._splitter.split(found.event, BatchProgress({}), lease="lease", end=end)
