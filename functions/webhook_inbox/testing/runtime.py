"""The functions of an inbox over doubles: what AWS would run, and when.

Messages move as SQS and Lambda move them, one at a time; the time goes only when it is told to,
from one moment at which something is due to the next.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from webhook_inbox.adapters.memory import (
    InlineExecutor,
    ManualClock,
    MemoryBlobs,
    MemoryFifo,
    MemoryQueue,
    MemorySecrets,
    MemoryTable,
    SeededRandomness,
)
from webhook_inbox.destinations.client.factory import HttpClients
from webhook_inbox.domain.manifest import SPLIT, DestinationSpec
from webhook_inbox.domain.model import Delivery, Status
from webhook_inbox.domain.ports import Message
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.context import Context
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import IngestOutcome, Receipt
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.processor.processor import Processor
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.outcomes import Worker
from webhook_inbox.reconciler.reconciler import Reconciler
from webhook_inbox.testing.fake import Fake, KitError
from webhook_inbox.testing.operators import Operators
from webhook_inbox.testing.project import Project
from webhook_inbox.testing.samples import trusting
from webhook_inbox.testing.worker import Died, WorkerLife, WorkersTable

VISIBILITY: Final = 360  # seconds, as the work queues have it
MAX_RECEIVES: Final = 105
INVOCATION: Final = timedelta(seconds=60)
PASS: Final = timedelta(minutes=5)
ENDED: Final = frozenset({Status.DONE, Status.SKIPPED, Status.DEAD_LETTER, Status.HELD})
# More jumps in time than any handler needs that is not waiting in a circle.
JUMPS: Final = 2000


class InMemoryRuntime:
    """An inbox at work.

    Args:
        project: what it runs.
        clock: the time.
        secrets: what secrets are read from.
        fakes: the destinations by name.
    """

    def __init__(
        self,
        project: Project,
        *,
        clock: ManualClock,
        secrets: MemorySecrets,
        fakes: Mapping[str, Fake],
    ) -> None:
        self.table = MemoryTable()
        self.life = WorkerLife()
        self._project = project
        self._clock = clock
        self._secrets = secrets
        self._fakes = fakes
        self._blobs = MemoryBlobs()
        self._randomness = SeededRandomness()
        manifest = project.manifest
        self._dlqs = {lane: self._queue(lane, None) for lane in manifest.lanes}
        self._queues = {lane: self._queue(lane, dlq) for lane, dlq in self._dlqs.items()}
        self._lanes = Lanes(self._queues)
        self.ledger = Ledger(table=self.table, blobs=self._blobs)
        self.operators = Operators(
            manifest,
            table=self.table,
            ledger=self.ledger,
            queues=(self._lanes, self._dlqs),
            clock=clock,
            randomness=self._randomness,
        )
        self._reconciler = Reconciler(
            manifest=manifest,
            ledger=self.ledger,
            table=self.table,
            lanes=self._lanes,
            dlqs=self._dlqs,
            clock=clock,
        )
        self._processor = self._worker()

    # -- what comes in

    def receive(self, delivery: Delivery, *, handlers: frozenset[str], agent: str) -> Receipt:
        """Takes a delivery in, whoever signed it, for these handlers alone.

        Raises:
            KitError: it was not taken.
        """
        manifest = self._project.manifest
        wanted = {n: s for n, s in manifest.handlers.items() if n in {*handlers, SPLIT}}
        ingest = Ingest(
            manifest=replace(manifest, handlers=wanted),
            providers=trusting(agent),
            table=self.table,
            lanes=self._lanes,
            blobs=self._blobs,
            secrets=SecretCache(store=self._secrets, clock=self._clock),
        )
        receipt = ingest.receive(delivery)
        # No two deliveries come in one millisecond.
        self._clock.advance(seconds=0.001)
        if receipt.outcome in {IngestOutcome.ACCEPTED, IngestOutcome.DUPLICATE}:
            return receipt
        known = f"{receipt.event_id} came before with another body: give event_id="
        why = {
            IngestOutcome.IGNORED: f"inbox.toml does not store {receipt.type!r}",
            IngestOutcome.CONFLICT: known,
        }.get(receipt.outcome, receipt.detail or receipt.reason)
        raise KitError(f"the inbox did not take the event ({receipt.outcome}): {why}")

    # -- workers

    def work(self) -> None:
        """Works on everything that is visible now, in every lane."""
        for lane in self._queues:
            for message in self._visible(lane):
                self._process(message, lane)

    def quiet(self) -> bool:
        """Tells whether nothing happens any more without a person."""
        waits = any(map(len, self._queues.values()))
        runs = [row for row in self.table if row["sk"].startswith("run#")]
        return not waits and all(row["status"] in ENDED for row in runs)

    def settle(self) -> None:
        """Jumps from due time to due time until it is quiet.

        Raises:
            KitError: it never is.
        """
        for _ in range(JUMPS):
            self.work()
            if self.quiet():
                return
            self._jump(self._next())
        raise KitError(
            f"something still waits after {JUMPS} looks at it: make happen what it waits for, or"
            " advance() as far as the test needs"
        )

    def pass_time(self, span: timedelta) -> None:
        """Lets so much time pass, and does what is due meanwhile."""
        end = self._clock.now() + span
        self.work()
        while (moment := self._next()) < end:
            self._jump(moment)
            self.work()
        self._jump(end)
        self.work()

    def _visible(self, lane: str) -> Iterator[Message]:
        while received := self._queues[lane].receive(1, hidden_for=VISIBILITY):
            yield received[0]

    def _process(self, message: Message, lane: str) -> None:
        worker = Worker("tester", "test", lane, MAX_RECEIVES)
        deadline = self._clock.now() + INVOCATION
        try:
            result = self._processor.process(message, worker=worker, deadline=deadline)
        except Died:
            # Its message comes back once its visibility is over, to another worker.
            self.life.begin()
            self._processor = self._worker()
            return
        if not result.keeps_message:
            self._queues[lane].delete(message.receipt)

    def _worker(self) -> Processor:
        return Processor(
            manifest=self._project.manifest,
            handlers=self._project.load,
            table=WorkersTable(self.table, self.life),
            lanes=self._lanes,
            blobs=self._blobs,
            secrets=SecretCache(store=self._secrets, clock=self._clock),
            executor=InlineExecutor(self._clock),
            clock=self._clock,
            randomness=self._randomness,
            clients=self._client,
        )

    def _client(self, spec: DestinationSpec, call: Context) -> Any:
        fake = self._fakes[spec.name]
        return HttpClients(clock=self._clock, randomness=self._randomness, transport=fake)(
            spec, call
        )

    def _queue(self, lane: str, dead_letters: MemoryQueue | None) -> MemoryQueue:
        kind = MemoryFifo if lane in self._project.manifest.serial_lanes else MemoryQueue
        name = lane if dead_letters is not None else f"{lane}-dlq"
        return kind(
            self._clock, name=name, dead_letters=dead_letters, max_receive_count=MAX_RECEIVES
        )

    # -- time

    def _next(self) -> datetime:
        """Returns the next moment at which something may happen."""
        now = self._clock.now()
        visible = [queue.next_visible_at() for queue in self._queues.values()]
        times = [from_ms(at) for at in visible if at is not None]
        # The reconciler looks at full minutes.
        times += [_full_minute(from_ms(row["due_at"])) for row in self.table if "due_bucket" in row]
        return min((at for at in times if at > now), default=now + PASS)

    def _jump(self, moment: datetime) -> None:
        now = self._clock.now()
        if moment > now:
            self._clock.advance(seconds=(moment - now).total_seconds())
        if any("due_bucket" in row for row in self.table):
            self._reconciler.run(deadline=self._clock.now() + INVOCATION)


def _full_minute(moment: datetime) -> datetime:
    whole = moment.replace(second=0, microsecond=0)
    return whole if whole == moment else whole + timedelta(minutes=1)
