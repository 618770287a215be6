"""The runs: closes a dead one, and records the result of a job that one waits for."""

import json
from dataclasses import dataclass
from typing import Any, Final

from webhook_inbox.client.effects import newest_waits_of
from webhook_inbox.client.errors import NotFound, Refused, WrongArgument
from webhook_inbox.client.names import require_known
from webhook_inbox.client.scope import Scope
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.handlers.completions.journal import WaitState
from webhook_inbox.handlers.completions.receiver import (
    CompletionOutcome,
    CompletionReceipt,
    Completions,
)
from webhook_inbox.handlers.completions.results import TooLarge, Unreadable, read
from webhook_inbox.handlers.completions.tokens import WaitAddress, place_of
from webhook_inbox.replay.skip import skip

RECORDED: Final = (CompletionOutcome.RECORDED, CompletionOutcome.REPEATED, CompletionOutcome.LATE)


@dataclass(frozen=True, slots=True)
class SkippedRun:
    """A dead run that was closed.

    `continues` is the ordering key whose later events continue, "" if none waited for it.
    """

    source: str
    event_id: str
    handler: str
    status: Status
    continues: str


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a job, or its error.

    Attributes:
        value: its result, as JSON data.
        error: why it failed, None if it did not.
        retry: whether another job is started, for one that failed.
    """

    value: Any = None
    error: str | None = None
    retry: bool = False

    def body(self) -> bytes:
        """Returns the body that the job itself would send."""
        if self.error is not None:
            return json.dumps({"error": self.error, "retry": self.retry}).encode()
        return json.dumps({"result": self.value}).encode()


@dataclass(frozen=True, slots=True)
class CompletedJob:
    """A job, named by `effect`, whose result was recorded.

    `outcome` is "recorded"; "repeated" if it was before; "late" if its run no longer waited.
    """

    source: str
    event_id: str
    handler: str
    effect: str
    outcome: str


class Runs:
    """The runs of an inbox."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def skip(
        self,
        event_id: str,
        *,
        source: str | None = None,
        handler: str | None = None,
        reason: str,
        by: Actor,
    ) -> SkippedRun:
        """Closes a dead run; later events of its ordering key continue within two minutes.

        Raises:
            NotFound: there is no such run.
            Refused: not exactly one run is dead.
            WrongArgument: no such source or handler exists.
        """
        self._scope.require_write()
        run = self._dead_run(event_id, source, handler)
        table, now = self._scope.table, self._scope.clock.now()
        if not skip(table, self._scope.randomness, run, by=by, reason=reason, now=now):
            raise Refused(f"{run.handler} of {event_id} is no longer dead: it changed meanwhile")
        continues = run.ordering_key or "" if run.blocking else ""
        return SkippedRun(run.source, run.event_id, run.handler, Status.SKIPPED, continues)

    def _dead_run(self, event_id: str, source: str | None, handler: str | None) -> Run:
        runs = self._scope.runs(event_id, source, handler)
        dead = [run for run in runs if run.status is Status.DEAD_LETTER]
        if len(dead) == 1:
            return dead[0]
        states = "; ".join(f"{run.handler} of {run.source} is {run.status}" for run in runs)
        if dead:
            raise Refused(f"{states}: choose one with --handler or --source")
        program = self._scope.program
        listed = program.command("inbox list", "--status", "dead_letter")
        if any(run.status is Status.HELD for run in runs):
            listed = program.command("hold list")
        if not runs:
            raise NotFound(f"no run of an event {event_id}: nothing to skip; see `{listed}`")
        raise Refused(f"{states}: nothing to skip; see `{listed}`")

    def complete(
        self,
        event_id: str,
        result: JobResult,
        *,
        source: str | None = None,
        handler: str | None = None,
        effect: str | None = None,
        by: Actor,
    ) -> CompletedJob:
        """Records the result of the job that a run of an event waits for; the run continues.

        Raises:
            NotFound: no run waits for such a job.
            Refused: not exactly one job matches, or it has ended otherwise.
            WrongArgument: the id is a completion token, or no such source or handler exists.
        """
        self._scope.require_write()
        if place_of(event_id) is not None:
            # Not repeated: its holder may complete the job, and errors are logged.
            raise WrongArgument("EVENT_ID is a completion token: give it with --token")
        job = self._job(event_id, source=source, handler=handler, effect=effect)
        try:
            ending = read(result.body())
        except (TooLarge, Unreadable) as error:
            raise Refused(str(error)) from error
        return _completed(self._completions.by_name(job, ending, by=by))

    def complete_by_token(self, token: str, result: JobResult) -> CompletedJob:
        """Records the result of the job that has this completion token; its run continues.

        Raises:
            Refused: there is no such job, or it has ended otherwise.
        """
        self._scope.require_write()
        return _completed(self._completions.by_token(token, result.body()))

    @property
    def _completions(self) -> Completions:
        return Completions(self._scope.target.manifest, self._scope.ports)

    def _job(
        self, event_id: str, *, source: str | None, handler: str | None, effect: str | None
    ) -> WaitAddress:
        overviews = self._scope.overviews(event_id, source)
        jobs = [(found.event, wait) for found in overviews for wait in newest_waits_of(found)]
        matching = [
            (event, wait)
            for event, wait in jobs
            if handler in {None, wait.handler} and effect in {None, wait.name}
        ]
        waiting = [each for each in matching if each[1].status == WaitState.WAITING]
        chosen = waiting if len(waiting) == 1 else matching
        if len(chosen) == 1:
            [(event, wait)] = chosen
            return WaitAddress(event.source, event.event_id, wait.handler, wait.name)
        if not jobs:
            require_known(self._scope.target, source=source, handler=handler)
            raise NotFound(f"no run waits for a job of event {event_id}")
        states = "; ".join(
            f"{wait.handler} of {event.source} for {wait.name}: {wait.status}"
            for event, wait in jobs
        )
        raise Refused(f"{states}: choose one with --source, --handler or --effect")


def _completed(receipt: CompletionReceipt) -> CompletedJob:
    job = receipt.place
    if job is None or receipt.outcome not in RECORDED:
        raise Refused(receipt.detail or str(receipt.outcome))
    return CompletedJob(job.source, job.event_id, job.handler, job.name, str(receipt.outcome))
