"""The inbox's functions over in-memory doubles.

Messages move one at a time, as SQS and Lambda move them. The clock moves only on request, from one
due time to the next.
"""

from collections.abc import Callable, Iterator, Mapping
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
from webhook_inbox.domain.audit import Actor, Proof
from webhook_inbox.domain.manifest import SPLIT, DestinationSpec
from webhook_inbox.domain.model import Delivery, Overview, Status
from webhook_inbox.domain.ports import Message
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.approvals.decisions import Approvals
from webhook_inbox.handlers.completions.receiver import CompletionOutcome, Completions
from webhook_inbox.handlers.completions.results import Ending
from webhook_inbox.handlers.completions.tokens import WaitAddress
from webhook_inbox.handlers.context import Context
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import STORED, IngestOutcome, Receipt
from webhook_inbox.ledger.deadlines import FUNCTION_TIMEOUT, VISIBILITY_TIMEOUT
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.processor.processor import Processor
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.outcomes import Worker
from webhook_inbox.queue.visibility import ceil_seconds
from webhook_inbox.reconciler.reconciler import Reconciler
from webhook_inbox.replay.replay import Replay
from webhook_inbox.replay.request import ReplayRequest
from webhook_inbox.testing.errors import KitError, hidden
from webhook_inbox.testing.fake import Fake
from webhook_inbox.testing.project import Project
from webhook_inbox.testing.samples import trusting
from webhook_inbox.testing.worker import Died, WorkerLife, WorkersTable

__tracebackhide__ = hidden

HIDDEN_FOR: Final = ceil_seconds(VISIBILITY_TIMEOUT)
MAX_RECEIVES: Final = 5
SERIAL_RECEIVES: Final = 1000
PASS: Final = timedelta(minutes=5)
ENDED: Final = frozenset({Status.DONE, Status.SKIPPED, Status.DEAD_LETTER, Status.HELD})
# More steps in time than any handler needs, unless it waits for ever.
JUMPS: Final = 2000
# The person who decides and completes in a test.
TESTER: Final = Actor("tester", Proof.LOCAL)
# Begins the links of approvers.
API_URL: Final = "https://inbox.example"


class _SilentTopics:
    """Takes the messages to people without a fake."""

    def publish(self, arn: str, subject: str, text: str) -> None:
        """See `Topics`."""


class InMemoryRuntime:
    """The ingest, processor and reconciler of an inbox, and its operators' use cases.

    Args:
        project: the handlers and the manifest.
        clock: the time.
        secrets: the secret store.
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
        mortal = WorkersTable(self.table, self.life)
        common: Any = {"manifest": manifest, "table": mortal, "lanes": self._lanes}
        common["clock"] = clock
        self.approvals = Approvals(randomness=self._randomness, **common)
        self._completions = Completions(**common)
        common |= {"table": self.table, "ledger": self.ledger, "dlqs": self._dlqs}
        self._replay = Replay(randomness=self._randomness, **common)
        self._reconciler = Reconciler(blobs=self._blobs, **common)
        self._processor = self._worker()
        self._deliveries: dict[tuple[str, str], tuple[Delivery, frozenset[str], str]] = {}

    # -- deliveries and operators

    def receive(self, delivery: Delivery, *, handlers: frozenset[str], agent: str) -> Receipt:
        """Ingests a delivery for these handlers only, without verifying its signature.

        Raises:
            KitError: the inbox did not accept it.
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
        # No two deliveries share a millisecond.
        self._clock.advance(seconds=0.001)
        if receipt.outcome in STORED:
            self._deliveries[delivery.source, receipt.event_id] = delivery, handlers, agent
            return receipt
        known = f"{receipt.event_id} was received before with another body: give event_id="
        why = {
            IngestOutcome.IGNORED: f"inbox.toml does not store {receipt.type!r}",
            IngestOutcome.CONFLICT: known,
        }.get(receipt.outcome, receipt.detail or receipt.reason)
        raise KitError(f"the inbox did not accept the event ({receipt.outcome}): {why}")

    def redeliver(self, source: str, event_id: str) -> str:
        """Delivers an event again, as its provider may; returns the outcome."""
        first, handlers, agent = self._deliveries[source, event_id]
        now = self._clock.now()
        # The gateway gives each delivery a new id; the same id would be the same delivery.
        delivery = replace(first, received_at=now, request_id=f"again-{now}")
        outcome = self.receive(delivery, handlers=handlers, agent=agent).outcome
        self.work()
        return str(outcome)

    def replay(
        self, source: str, event_id: str, handler: str, *, force: bool, new_keys: bool
    ) -> None:
        """Replays a run."""
        request = ReplayRequest(
            source=source,
            handler=handler,
            event_ids=(event_id,),
            force=force,
            new_keys=new_keys,
            reason="a test",
        )
        self._replay.run(request, deadline=self._clock.now() + FUNCTION_TIMEOUT)
        self.work()

    def complete(self, place: WaitAddress, ending: Ending) -> None:
        """Records the end of a job; raises KitError if no run waits for it."""

        def complete() -> None:
            receipt = self._completions.by_name(
                place, ending, by=TESTER, randomness=self._randomness
            )
            if receipt.outcome is not CompletionOutcome.RECORDED:
                raise KitError(f"no run waits for it: {receipt.outcome}: {receipt.detail}")

        self.operate(complete)

    def overview(self, source: str, event_id: str) -> Overview:
        """Returns an event with its runs, effects and waits."""
        found = self.ledger.overview(source, event_id, now=self._clock.now())
        if found is None:
            raise KitError(f"the ledger has no event {event_id!r} of {source!r}: it has expired")
        return found

    def operate(self, action: Callable[[], object]) -> None:
        """Takes an operator's action, whose process may die, and processes what it sends."""
        try:
            action()
        except Died:
            self.life.begin()
        self.work()

    # -- workers

    def work(self) -> None:
        """Processes every visible message, lane by lane."""
        for lane in self._queues:
            for message in self._visible(lane):
                self._process(message, lane)

    def quiet(self) -> bool:
        """Returns whether every run is done, skipped, dead or held."""
        waits = any(map(len, self._queues.values()))
        runs = [row for row in self.table if row["sk"].startswith("run#")]
        return not waits and all(row["status"] in ENDED for row in runs)

    def settle(self) -> None:
        """Moves from due time to due time until `quiet`.

        Raises:
            KitError: a run still waits after 2,000 steps.
        """
        for _ in range(JUMPS):
            self.work()
            if self.quiet():
                return
            self._jump(self._next())
        raise KitError(
            f"a run still waits after {JUMPS} steps in time: complete its job or dependency, or"
            " advance() as far as the test needs"
        )

    def pass_time(self, span: timedelta) -> None:
        """Advances the clock by a span and processes everything due on the way."""
        end = self._clock.now() + span
        self.work()
        while (moment := self._next()) < end:
            self._jump(moment)
            self.work()
        self._jump(end)
        self.work()

    def _visible(self, lane: str) -> Iterator[Message]:
        while received := self._queues[lane].receive(
            1, hidden_for=ceil_seconds(VISIBILITY_TIMEOUT)
        ):
            yield received[0]

    def _process(self, message: Message, lane: str) -> None:
        worker = Worker("tester", "test", lane, self._receives(lane))
        deadline = self._clock.now() + FUNCTION_TIMEOUT
        try:
            result = self._processor.process(message, worker=worker, deadline=deadline)
        except Died:
            # The message becomes visible to another worker after its visibility timeout.
            self._processor = self._worker()
            self.life.begin()
            return
        if not result.keeps_message:
            self._queues[lane].delete(message.receipt)

    def _worker(self) -> Processor:
        workers_table: Any = WorkersTable(self.table, self.life)
        return Processor(
            manifest=self._project.manifest,
            handlers=self._project.load,
            table=workers_table,
            lanes=self._lanes,
            blobs=self._blobs,
            secrets=SecretCache(store=self._secrets, clock=self._clock),
            executor=InlineExecutor(self._clock),
            clock=self._clock,
            randomness=self._randomness,
            clients=self._client,
            api_url=API_URL,
            topics=_SilentTopics(),
        )

    def _client(self, spec: DestinationSpec, call: Context) -> Any:
        fake = self._fakes[spec.name]
        return HttpClients(clock=self._clock, transport=fake)(spec, call)

    def _queue(self, lane: str, dead_letters: MemoryQueue | None) -> MemoryQueue:
        kind = MemoryFifo if lane in self._project.manifest.serial_lanes else MemoryQueue
        name = lane if dead_letters is not None else f"{lane}-dlq"
        most = self._receives(lane)
        return kind(self._clock, name=name, dead_letters=dead_letters, max_receive_count=most)

    def _receives(self, lane: str) -> int:
        return SERIAL_RECEIVES if lane in self._project.manifest.serial_lanes else MAX_RECEIVES

    # -- time

    def _next(self) -> datetime:
        """Returns the next time at which a message or a run is due."""
        now = self._clock.now()
        visible = [queue.next_visible_at() for queue in self._queues.values()]
        times = [from_ms(at) for at in visible if at is not None]
        # The reconciler runs at full minutes.
        times += [_full_minute(from_ms(row["due_at"])) for row in self.table if "due_bucket" in row]
        return min((at for at in times if at > now), default=now + PASS)

    def _jump(self, moment: datetime) -> None:
        now = self._clock.now()
        if moment > now:
            self._clock.advance(seconds=(moment - now).total_seconds())
        if any("due_bucket" in row for row in self.table):
            self._reconciler.run(deadline=self._clock.now() + FUNCTION_TIMEOUT)


def _full_minute(moment: datetime) -> datetime:
    whole = moment.replace(second=0, microsecond=0)
    return whole if whole == moment else whole + timedelta(minutes=1)
