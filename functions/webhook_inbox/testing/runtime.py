"""The inbox's functions over in-memory doubles.

Messages move one at a time, as SQS and Lambda move them. The clock moves only on request, from one
due time to the next.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from webhook_inbox.adapters.memory import ManualClock, MemorySecrets, memory_ports
from webhook_inbox.adapters.memory.ports import RECEIVES
from webhook_inbox.destinations.client.factory import HttpClients
from webhook_inbox.domain.audit import Actor, Proof
from webhook_inbox.domain.manifest import SPLIT, DestinationSpec
from webhook_inbox.domain.model import Delivery, Overview, Status
from webhook_inbox.domain.ports import Message, Ports
from webhook_inbox.domain.replay_report import ReplayReport
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

if TYPE_CHECKING:
    from webhook_inbox.client import InboxClient

__tracebackhide__ = hidden

HIDDEN_FOR: Final = ceil_seconds(VISIBILITY_TIMEOUT)
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
        manifest = project.manifest
        ports = memory_ports(manifest, clock=clock, secrets=secrets)
        self.table = ports.table
        self.life = WorkerLife()
        self.ledger = Ledger(table=ports.table, blobs=ports.blobs)
        self._project = project
        self._clock = clock
        self._fakes = fakes
        self._ports = ports
        self._queues = ports.queues
        mortal = self._mortal()
        self.approvals = Approvals(manifest, mortal)
        self._completions = Completions(manifest, mortal)
        self._replay = Replay(manifest, ports)
        self._reconciler = Reconciler(manifest, ports)
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
            replace(manifest, handlers=wanted), replace(self._ports), providers=trusting(agent)
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
        self._run_replay(request)
        self.work()

    @cached_property
    def client(self) -> "InboxClient":
        """The operations on the inbox; workers work while one of them waits."""
        # The SDK, which few tests need, takes longer to load than the rest of the kit.
        from webhook_inbox.testing.operations import WorkingClock, client_of  # noqa: PLC0415

        clock = WorkingClock(self._clock, self.pass_time)
        return client_of(self._project.manifest, self._ports, self._run_replay, clock)

    def _run_replay(self, request: ReplayRequest) -> ReplayReport:
        return self._replay.run(request, deadline=self._clock.now() + FUNCTION_TIMEOUT)

    def complete(self, place: WaitAddress, ending: Ending) -> None:
        """Records the end of a job; raises KitError if no run waits for it."""

        def complete() -> None:
            receipt = self._completions.by_name(place, ending, by=TESTER)
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
        worker = Worker("tester", "test", lane, RECEIVES[self._queues[lane].fifo])
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
        ports = replace(self._mortal(), clients=self._client, topics=_SilentTopics())
        return Processor(
            self._project.manifest, ports, handlers=self._project.load, api_url=API_URL
        )

    def _mortal(self) -> Ports:
        """Returns the ports of a process that may die in any write."""
        table: Any = WorkersTable(self.table, self.life)
        return replace(self._ports, table=table)

    def _client(self, spec: DestinationSpec, call: Context) -> Any:
        fake = self._fakes[spec.name]
        return HttpClients(clock=self._clock, transport=fake)(spec, call)

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
