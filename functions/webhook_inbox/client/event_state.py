"""An event with its runs, effects, waits and history, as it was when it was read."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from webhook_inbox.client.effects import RunEffect, RunWait, effects_of, waits_of
from webhook_inbox.client.evidence import AttemptEvidence, Logs, attempt_evidence
from webhook_inbox.client.history import Happening, attempts_of, history_of
from webhook_inbox.client.holds import HeldRun
from webhook_inbox.client.lookup import EventConflict
from webhook_inbox.client.next_action import Steps, next_steps, without_runs
from webhook_inbox.client.reasons import error_of, line_of, reason_of
from webhook_inbox.client.suggestions import PLAIN, Program
from webhook_inbox.domain.audit import AuditEntry
from webhook_inbox.domain.model import (
    Attempt,
    EventStatus,
    Overview,
    Run,
    Status,
    StoredEvent,
    event_status,
)
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.completions.tokens import COMPLETION
from webhook_inbox.ledger.pauses import RESUMPTIONS, TENANT_RESUMPTION
from webhook_inbox.ledger.schema import EVENT_LIFE


@dataclass(frozen=True, slots=True)
class EventAttempt:
    """An attempt and what it can be looked up by, None where that was left out."""

    attempt: Attempt
    evidence: AttemptEvidence | None


@dataclass(frozen=True, slots=True)
class RunApproval:
    """A decision that let a run continue; an absent value is None.

    Attributes:
        subject: the subject of the decision, like "policy" or "effect:refund".
        by: who decided.
        reason: why.
        at: when.
    """

    subject: str
    by: str | None
    reason: str | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class BatchItems:
    """The items of a batch that a run has split so far: their numbers by outcome, and in total."""

    counts: Mapping[str, int]
    of: int


@dataclass(frozen=True, slots=True)
class EventRun:
    """The run of one handler of an event.

    Attributes:
        handler: the handler.
        run: the run; None before its first attempt.
        attempts: its attempts, also those whose worker was lost.
        effects: its effects in the order of their start.
        waits: the jobs for which it waits or waited.
        history: its attempts, replays and the actions of operators in the order of their times.
    """

    handler: str
    run: Run | None
    attempts: tuple[EventAttempt, ...]
    effects: tuple[RunEffect, ...]
    waits: tuple[RunWait, ...]
    history: tuple[Happening, ...]

    @property
    def status(self) -> str:
        """Its status; "accepted" before its first attempt."""
        return str(self.run.status if self.run else EventStatus.ACCEPTED)

    @property
    def worker(self) -> str:
        """The worker that has leased it, or that leased it last; "" for none."""
        if self.run is None:
            return ""
        return self.run.claimed_by or (self.run.attempts[-1].worker if self.run.attempts else "")

    @property
    def error(self) -> str:
        """Its error, "" for none and for a run that is done."""
        return error_of(self.run) if self.run else ""

    @property
    def reason(self) -> str:
        """Its error, or the reason why it waits, is held or was skipped; "" for none."""
        return reason_of(self.run) if self.run else ""

    @property
    def error_line(self) -> str:
        """The line of the handler that raised its error, "" for none."""
        return line_of(self.run) if self.run else ""

    @property
    def hold(self) -> HeldRun | None:
        """The approval request for which it is held; None where it is not held."""
        if self.run is None or self.run.status is not Status.HELD:
            return None
        return HeldRun.of(self.run)

    @property
    def paused(self) -> str:
        """The pause that it waits for: "handler" or "tenant", "" for none."""
        if self.run is None or self.run.waits_for not in RESUMPTIONS:
            return ""
        return "tenant" if self.run.waits_for == TENANT_RESUMPTION else "handler"

    @property
    def job(self) -> str:
        """The job whose completion it waits for, "" for none."""
        waits_for = self.run.waits_for if self.run else ""
        return waits_for.removeprefix(COMPLETION) if waits_for.startswith(COMPLETION) else ""

    @property
    def approvals(self) -> tuple[RunApproval, ...]:
        """The decisions that let it continue."""
        given = self.run.approvals if self.run else {}
        return tuple(
            RunApproval(
                subject=subject,
                by=word.get("by"),
                reason=word.get("reason"),
                at=from_ms(word["at"]) if "at" in word else None,
            )
            for subject, word in given.items()
        )

    @property
    def items(self) -> BatchItems | None:
        """The items of the batch that it splits; None for any other run."""
        progress = self.run.progress if self.run else {}
        return BatchItems(progress["counts"], progress["of"]) if progress else None


@dataclass(frozen=True, slots=True)
class EventState:
    """An event with its runs, effects, waits and history.

    Attributes:
        event: the event; its body is empty unless it was asked for.
        runs: the run of each handler: of the original ones, then of those that a replay added.
        history: what happened to the run of each handler, and under "" to the event itself.
        next_action: the next action, or the next automatic step: sentences and commands.
    """

    event: StoredEvent
    runs: tuple[EventRun, ...]
    history: Mapping[str, tuple[Happening, ...]]
    next_action: Steps

    @classmethod
    def of(
        cls,
        overview: Overview,
        *,
        now: datetime,
        program: Program = PLAIN,
        logs: Logs | None = None,
        attempt_limits: Mapping[str, int] | None = None,
    ) -> Self:
        """Reads the rows of an event.

        Args:
            overview: the event's rows.
            now: the time of the reading.
            program: makes the commands of the next action.
            logs: where the attempts' log lines are; None leaves out what attempts are looked up by.
            attempt_limits: the attempts of each handler, where they are known.
        """
        event, begun = overview.event, {run.handler: run for run in overview.runs}
        history, waits = history_of(overview), list(waits_of(overview))
        names = dict.fromkeys((*event.runs, *begun))
        runs = (
            EventRun(
                handler=name,
                run=begun.get(name),
                attempts=_attempts(event, begun.get(name), logs),
                effects=tuple(effects_of(overview, name, now=now)),
                waits=tuple(each for each in waits if each.handler == name),
                history=history.get(name, ()),
            )
            for name in names
        )
        steps = next_steps(overview, now=now, max_attempts=attempt_limits, program=program)
        return cls(event=event, runs=tuple(runs), history=history, next_action=steps)

    @property
    def status(self) -> EventStatus:
        """The status of the event."""
        return event_status(self.event.runs, {run.handler: run.status for run in self.begun})

    @property
    def begun(self) -> tuple[Run, ...]:
        """The runs that have begun, by the names of their handlers."""
        begun = (each.run for each in self.runs if each.run is not None)
        return tuple(sorted(begun, key=lambda run: run.handler))

    @property
    def expires_at(self) -> datetime:
        """When the event expires; its runs and its body may be listed longer."""
        return self.event.received_at + EVENT_LIFE

    @property
    def actions(self) -> tuple[AuditEntry, ...]:
        """The actions of operators on the event itself."""
        return tuple(each for each in self.history[""] if isinstance(each, AuditEntry))

    @property
    def without_runs(self) -> str:
        """Why it has no runs; "" if it has any."""
        return without_runs(self.event, self.begun)


@dataclass(frozen=True, slots=True)
class EventDetails(EventState):
    """An event with what only its inspection reads.

    Attributes:
        provider: the provider of its source.
        conflicts: the deliveries that were rejected as conflicts with it.
    """

    provider: str
    conflicts: tuple[EventConflict, ...]


def _attempts(event: StoredEvent, run: Run | None, logs: Logs | None) -> tuple[EventAttempt, ...]:
    if run is None:
        return ()
    return tuple(
        EventAttempt(each, None if logs is None else attempt_evidence(logs, event, run, each))
        for each in attempts_of(run)
    )
