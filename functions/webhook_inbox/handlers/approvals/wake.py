"""Wakes a held run whose request was decided while its attempt was ending.

A person's decision is recorded before the run is read; the processor settles the run before it
reads the request. So the later of the two sees the other's write. After a crash in between, the
reconciler's next look at the run finds the decision, at most an hour later.
"""

from contextlib import suppress

from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.model import RequestState, Run, Status
from webhook_inbox.domain.ports import Ports
from webhook_inbox.handlers.approvals.request_row import RequestRow, RequestRows
from webhook_inbox.ledger.deferral import wake
from webhook_inbox.ledger.schema import key_of_run, run_from
from webhook_inbox.ledger.settle import as_seen
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.message import RunMessage


class ApprovalWake:
    """Looks at the request of a run that was just held."""

    def __init__(self, ports: Ports) -> None:
        self._table = ports.table
        self._rows = RequestRows(ports.table)
        self._lanes = Lanes(ports.queues)
        self._clock = ports.clock

    def settled(self, request: RequestRow, run: Run, *, lane: str) -> None:
        """Sends the run again if its request is decided. Never raises."""
        with suppress(Unavailable, ConditionFailed):
            now = self._clock.now()
            found = self._rows.find(request.key, now)
            if found is not None and found.state is RequestState.OPEN:
                return
            row = self._table.get(key_of_run(run))
            held = None if row is None else run_from(row)
            if held is None or not is_held_for(held, request):
                return
            woken = wake(self._table, held, unchanged=as_seen(held), now=now)
            self._lanes.send([(lane, RunMessage.of(woken))])


def is_held_for(run: Run, request: RequestRow) -> bool:
    """Returns whether a run is held for this request."""
    return run.status is Status.HELD and run.held.get("request") == request.key.sk
