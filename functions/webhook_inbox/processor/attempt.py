"""The attempt that the processor's steps pass on, from admission to settlement."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from webhook_inbox.domain.errors import InboxError
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.domain.model import Run, StoredEvent
from webhook_inbox.domain.personal import PersonalTexts
from webhook_inbox.domain.ports import Item
from webhook_inbox.ledger.deferral import Deferral
from webhook_inbox.ledger.schema import RUN_LIFE
from webhook_inbox.queue.line import Line
from webhook_inbox.queue.message import RunMessage
from webhook_inbox.queue.outcomes import RunOutcome, RunResult
from webhook_inbox.queue.visibility import StandardQueuePolicy


@dataclass(frozen=True, slots=True)
class RunAttempt:
    """An attempt to process a run; each step returns it with what the step found.

    Attributes:
        reference: the message's content, under the generation to lease the run with.
        policy: the message, its worker and its lane.
        deadline: the invocation's end.
        now: when the message's processing began.
        row: the event's row, which has the body or the address of it.
        event: the event, without its body until the handler is called.
        spec: the handler; a stand-in if this deployment does not have it.
        run: the run as last read, leased or settled; until then, one that has not begun.
        personal: removes the values of the event's personal fields from texts.
        line: the line of its ordering key, None if it keeps no order.
        deferral: what the run waits for; None if it may be leased.
        reservations: when the run may call its destinations, in epoch ms, by destination.
        error_without_call: how the attempt ends without its handler being called; None if it is
            called.
        degraded: the checks that were skipped because the ledger did not answer.
    """

    reference: RunMessage
    policy: StandardQueuePolicy
    deadline: datetime
    now: datetime
    row: Item
    event: StoredEvent
    spec: HandlerSpec
    run: Run
    personal: PersonalTexts
    line: Line | None = None
    deferral: Deferral | None = None
    reservations: Mapping[str, int] = field(default_factory=dict)
    error_without_call: InboxError | None = None
    degraded: tuple[str, ...] = ()

    def in_line(self, now: datetime) -> "RunAttempt":
        """Returns it with an entry in its line, to be written before a wait without its message.

        The message still blocks its group, so no later run of the ordering key can enter first.
        """
        if self.line is None:
            return self
        event, end = self.event, self.event.received_at + RUN_LIFE
        place = self.line.enter(
            event.source, event.event_id, place=self.run.place, run_expires_at=end, now=now
        )
        return replace(self, run=replace(self.run, place=place))

    def advance_line(self, now: datetime, *, ended: bool) -> None:
        """Sends the head of its line if it waits only for its turn; see `Line.advance`."""
        if self.line is not None:
            self.line.advance(self.policy.lanes, self.policy.worker.lane, now, ended=ended)

    def leave_line(self, now: datetime) -> None:
        """Continues its line after it has ended; without an entry no other run waits there."""
        if self.line is not None and self.run.place:
            self.line.leave(self.run.place)
            self.advance_line(now, ended=True)

    def result(
        self,
        outcome: RunOutcome,
        detail: str = "",
        error: BaseException | None = None,
        *,
        keeps_message: bool = False,
    ) -> RunResult:
        """Returns the result of the message of a leased run."""
        run = self.run
        return RunResult(
            outcome,
            self.reference,
            run.attempt_count,
            detail,
            error,
            deaths=run.deaths + (outcome is RunOutcome.DEAD),
            replayed=bool(run.replays),
            keeps_message=keeps_message,
            hide=self.personal.hide,
        )
