"""The processor's view of waits: passed to each attempt and checked after it."""

from contextlib import suppress
from datetime import datetime

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Ports
from webhook_inbox.handlers.completions.journal import Waits, WaitState
from webhook_inbox.handlers.completions.resume import wake_waiting
from webhook_inbox.handlers.completions.wait import Incomplete, Waiting
from webhook_inbox.handlers.effects.effect import Effects
from webhook_inbox.ledger.schema import key_of_run, run_from
from webhook_inbox.queue.lanes import Lanes


class Jobs:
    """Creates the waits of an attempt and resumes a run whose job ended meanwhile."""

    def __init__(self, ports: Ports) -> None:
        self._table = ports.table
        self._waits = Waits(ports.table)
        self._lanes = Lanes(ports.queues)
        self._secrets = ports.secrets
        self._clock = ports.clock

    def of(self, run: Run, effects: Effects, *, received_at: datetime) -> Waiting:
        """Returns the waits of one attempt."""
        return Waiting(
            self._waits,
            effects,
            run,
            received_at=received_at,
            secrets=self._secrets,
            clock=self._clock,
        )

    def settled(self, error: BaseException | None, run: Run, *, lane: str) -> None:
        """Resumes a run that was just deferred if its job has ended meanwhile.

        The receiver may have read the run before it was deferred, and resumed nothing. If the
        ledger or the queue fails, the run looks again at the end of its pause.
        """
        if isinstance(error, Incomplete):
            with suppress(Unavailable):
                self._look_again(error, run, lane)

    def _look_again(self, error: Incomplete, run: Run, lane: str) -> None:
        now = self._clock.now()
        wait = self._waits.find(error.wait.place, now)
        if wait is None or wait.state is WaitState.WAITING:
            return
        row = self._table.get(key_of_run(run))
        if row is not None:
            found = run_from(row)
            wake_waiting(self._table, self._lanes, found, wait, lane=lane, now=now)
