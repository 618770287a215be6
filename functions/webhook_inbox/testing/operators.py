"""What people do with runs, and whoever was given a job."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from webhook_inbox.adapters.memory import ManualClock, MemoryQueue, MemoryTable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Randomness
from webhook_inbox.handlers.approvals import Approvals
from webhook_inbox.handlers.completions.receiver import CompletionOutcome, Completions
from webhook_inbox.handlers.completions.results import Ending
from webhook_inbox.handlers.completions.tokens import WaitAddress
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.replay.replay import Replay
from webhook_inbox.replay.request import ReplayRequest
from webhook_inbox.testing.fake import KitError

INVOCATION: Final = timedelta(seconds=60)


class Operators:
    """Decide, replay and complete.

    Args:
        manifest: what they operate.
        table: the ledger's.
        ledger: what they see.
        queues: the lanes, and the dead-letter queue of each.
        clock: the time.
        randomness: names their words.

    Attributes:
        holds: decides about held runs.
    """

    def __init__(
        self,
        manifest: Manifest,
        *,
        table: MemoryTable,
        ledger: Ledger,
        queues: tuple[Lanes, Mapping[str, MemoryQueue]],
        clock: ManualClock,
        randomness: Randomness,
    ) -> None:
        lanes, dlqs = queues
        self._clock = clock
        self._randomness = randomness
        self.holds = Approvals(
            manifest=manifest, table=table, lanes=lanes, clock=clock, randomness=randomness
        )
        self._completions = Completions(manifest=manifest, table=table, lanes=lanes, clock=clock)
        self._replay = Replay(
            manifest=manifest,
            ledger=ledger,
            table=table,
            lanes=lanes,
            dlqs=dlqs,
            clock=clock,
            randomness=randomness,
        )

    def replay(self, source: str, event_id: str, handler: str, *, force: bool) -> None:
        """Replays a run."""
        request = ReplayRequest(source=source, handler=handler, event_ids=(event_id,), force=force)
        self._replay.run(request, deadline=self._clock.now() + INVOCATION)

    def complete(self, place: WaitAddress, ending: Ending) -> None:
        """Tells what came of a job.

        Raises:
            KitError: no run waits for it.
        """
        receipt = self._completions.by_name(place, ending, by="tester", randomness=self._randomness)
        if receipt.outcome is not CompletionOutcome.RECORDED:
            raise KitError(f"no run takes that: {receipt.outcome}: {receipt.detail}")
