"""Replays: a plan fixes the runs that match, and sending it is a long operation in steps.

The replay function does the work. A plan's runs are a selection in the ledger, which is kept for
seven days: each of its runs is sent once, whichever process sends it, so that a replay that was
stopped can be resumed by the selection's id.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final, Self

from webhook_inbox.adapters.aws.lambda_functions import FunctionFailed, invoke
from webhook_inbox.client.errors import EndedEarly, Refused, WrongArgument
from webhook_inbox.client.names import require_known
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.suggestions import Command, Program
from webhook_inbox.client.target import Target
from webhook_inbox.client.times import iso
from webhook_inbox.domain.audit import Actor, AuditedAction
from webhook_inbox.domain.manifest import matches
from webhook_inbox.domain.model import EventStatus
from webhook_inbox.domain.quotas import token
from webhook_inbox.domain.replay_report import SAMPLE, WOULD_SEND, ReplayReport
from webhook_inbox.ledger import audit
from webhook_inbox.replay.request import STOP_AT_FAILURES, InvalidRequestError, ReplayRequest

RATE: Final = 10.0
LIMIT: Final = 1000
# Seconds of work per invocation at the given rate, so that progress is visible.
STEP_SECONDS: Final = 5
# The search for the runs may take so long before the first of them is sent; it continues later.
COUNTING: Final = timedelta(seconds=20)
# Calls that the search may fail in one after the other.
SEARCHES: Final = 3
# How long the outcome of a canary is waited for, and how often it is read.
CANARY_WAIT: Final = timedelta(seconds=120)
CANARY_STEP: Final = 2.0
SENT_ONCE: Final = "runs sent so far stay sent, and no run of a selection is sent twice"
STOPPED: Final = "interrupted; the runs of a step under way are not counted"
# A run in another status has no outcome yet.
_ENDED: Final = ("done", "skipped", "failed", "dead_letter")


@dataclass(frozen=True, slots=True)
class ReplayFilter:
    """Selects runs; None and () match all, and at least one field must be given.

    Attributes:
        event_ids: all unfinished runs of these events, unless `status` is given.
        status: the statuses; by default dead ones.
        type: a pattern, such as "invoice.*".
        error_group: the id of a group of `client.failures`.
        where: a JMESPath condition on the JSON body of the event.
        since: the earliest time at which the event was received.
        until: the time before which it was received.
    """

    event_ids: Sequence[str] = ()
    status: Sequence[EventStatus] = ()
    source: str | None = None
    type: str | None = None
    handler: str | None = None
    error_contains: str | None = None
    error_class: str | None = None
    error_group: str | None = None
    tenant: str | None = None
    where: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def payload(self) -> dict[str, Any]:
        """Returns the fields of the replay function's request."""
        values = self._values()
        values["event_ids"] = list(self.event_ids)
        values["status"] = [str(each) for each in self.status]
        values["tenant"] = self.tenant and token(self.tenant)
        values["received_after"] = values.pop("since")
        values["received_before"] = values.pop("until")
        return {name: value for name, value in values.items() if value not in (None, [])}

    def words(self) -> list[str]:
        """Returns the arguments and options of the command that selects the same runs."""
        options = self._values()
        words = [*options.pop("event_ids")]
        words += [word for each in options.pop("status") for word in ("--status", str(each))]
        for name, value in options.items():
            words += [] if value is None else [f"--{name.replace('_', '-')}", value]
        return words

    def _values(self) -> dict[str, Any]:
        """Returns the fields by name; a time in ISO 8601."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {n: iso(v) if isinstance(v, datetime) else v for n, v in values.items()}


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How a replay sends its runs.

    Attributes:
        rate: runs per second, 0.1 to 500.
        reason: recorded with each run and in the audit.
        force: replays finished runs as well, which needs a reason.
        new_keys: performs every effect again, under new keys, which needs a reason.
        stop_at_failures: the share of the sent runs, over 0 and up to 1, that may fail again; the
            replay stops if more do.
        limit: the maximum number of runs, up to 10,000.
    """

    rate: float = RATE
    reason: str = ""
    force: bool = False
    new_keys: bool = False
    stop_at_failures: float = STOP_AT_FAILURES
    limit: int = LIMIT

    def payload(self, by: Actor) -> dict[str, Any]:
        """Returns the fields of the replay function's request that every call has."""
        return {
            "rate_per_second": self.rate,
            "reason": self.reason,
            "force": self.force,
            "new_keys": self.new_keys,
            "requested_by": by.name,
            "on_behalf_of": by.on_behalf_of,
        }

    def words(self, by: Actor) -> list[str]:
        """Returns the options of the command, where they are not the defaults."""
        stop = f"{100 * self.stop_at_failures:g}%"
        words = ["--rate", f"{self.rate:g}"] if self.rate != RATE else []
        words += ["--stop-at-failures", stop] if self.stop_at_failures != STOP_AT_FAILURES else []
        words += ["--reason", self.reason] if self.reason else []
        words += ["--by", by.on_behalf_of] if by.on_behalf_of else []
        words += ["--force"] if self.force else []
        words += ["--new-keys"] if self.new_keys else []
        repeats = self.force or self.new_keys
        return [*words, *(["--reason", "TEXT"] if repeats and not self.reason.strip() else [])]


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """The runs that a replay would send: a selection, which is fixed.

    Attributes:
        report: the runs, counted by what a replay would do with them.
        filters: what selected them; None for a selection that was made before.
        complete: whether the search has ended; `start` continues it otherwise.
        failed: why the search's last calls failed, "" if they did not.
    """

    report: ReplayReport
    filters: ReplayFilter | None
    options: ReplayOptions
    by: Actor
    program: Program
    complete: bool = True
    failed: str = ""

    @property
    def selection(self) -> str:
        """The id of the selection."""
        return self.report.selection

    @property
    def is_cut(self) -> bool:
        """Whether more runs match than the limit."""
        return self.report.cursor is not None

    @property
    def error(self) -> EndedEarly | None:
        """Why the selection is not all that matches, None unless its search failed."""
        if not self.report.failed:
            return None
        return EndedEarly(f"the search stopped: {self.report.failed}; run the command again")

    @property
    def is_list_needed(self) -> bool:
        """Whether its options need a list that was shown: the filter alone does not allow them."""
        named = self.filters and self.filters.event_ids and self.filters.handler
        return (self.options.force or self.options.new_keys) and not named

    def command(self, first: int | None = None) -> Command:
        """Returns the command that sends these runs, or a canary of them."""
        canary = ("--first", str(first)) if first else ()
        words = ("--selection", self.selection, *canary, *self.options.words(self.by), "--yes")
        return self.program.command("replay", *words)

    def command_of_all(self, first: int | None = None) -> Command:
        """Returns the command that sends all runs that match when it runs."""
        words = self.filters.words() if self.filters else []
        limit, canary = self.options.limit, ("--first", str(first)) if first else ()
        words += ["--limit", str(limit)] if limit != LIMIT else []
        return self.program.command(
            "replay", *words, *canary, *self.options.words(self.by), "--yes"
        )


class Replays:
    """The replays of an inbox."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def plan(
        self,
        filters: ReplayFilter,
        options: ReplayOptions | None = None,
        *,
        by: Actor,
        cursor: str | None = None,
    ) -> ReplayPlan:
        """Fixes the runs that match, as far as the search gets in its time, and sends none.

        Args:
            filters: what selects the runs.
            options: how they will be sent.
            by: who plans the replay.
            cursor: where the search begins, from an answer of the replay function.

        Raises:
            WrongArgument: the function refuses the request, or no such source or handler exists.
            Refused: a named event cannot get a run of the handler.
            EndedEarly: the function failed.
        """
        options = options or ReplayOptions()
        seconds = int(COUNTING.total_seconds())
        fixing = {"dry_run": True, "fix": True, "limit": options.limit, "seconds": seconds}
        asked = {**filters.payload(), **options.payload(by), **fixing}
        report = invoke_replay(self._scope.target, asked | ({"cursor": cursor} if cursor else {}))
        found = ReplayPlan(report, filters, options, by, self._scope.program)
        plan = _search_on(self._scope, found)
        if plan.report.matched == 0:
            require_known(self._scope.target, source=filters.source, handler=filters.handler)
            self._require_taken(filters)
        return plan

    def resume(
        self, selection: str, options: ReplayOptions | None = None, *, by: Actor
    ) -> ReplayPlan:
        """Returns the plan of a selection: what was replayed, and what would be.

        Raises:
            WrongArgument: there is no such selection, or it has expired.
            EndedEarly: the function failed.
        """
        options = options or ReplayOptions()
        report = ReplayReport(dry_run=True, selection=selection)
        payload = {**options.payload(by), "selection": selection, "dry_run": True}
        try:
            for page in _pages(self._scope.target, payload, options.limit, options.limit, ""):
                _add(report, page)
        except WrongArgument as error:
            if selection not in str(error):
                raise
            listed = self._scope.program.command("replay", "--status", "dead_letter")
            raise WrongArgument(
                f"{error}: list the runs again, for example with `{listed}`"
            ) from error
        return ReplayPlan(report, None, options, by, self._scope.program)

    def start(self, plan: ReplayPlan, *, by: Actor, first: int | None = None) -> "RunningReplay":
        """Writes the audit, and returns the replay, which sends the runs while it is iterated.

        Args:
            plan: its runs; those that were sent before are not sent again.
            by: who replays.
            first: sends only so many, whose outcome `RunningReplay.wait` waits for.

        Raises:
            Refused: the client only reads.
        """
        self._scope.require_write()
        if not plan.report.sent and plan.complete:
            return RunningReplay(self._scope, plan, {}, None, first=first)
        options, filters = plan.options, plan.filters or ReplayFilter()
        payload = {
            **options.payload(by),
            "stop_at_failures": options.stop_at_failures,
            "selection": plan.selection,
        }
        chosen = {n: str(v) for n, v in filters.payload().items() if n != "event_ids"}
        recorded = audit.record(
            self._scope.table,
            self._scope.randomness,
            action=AuditedAction.REPLAY,
            by=by,
            reason=options.reason,
            request={**chosen, **ReplayRequest.read(payload).audited()},
            event_ids=filters.event_ids,
            forced=options.force or options.new_keys,
            now=self._scope.clock.now(),
        )
        # The function's pages name the row, and write none of their own.
        payload |= {"dry_run": False, "audit_row": recorded.place}
        return RunningReplay(self._scope, plan, payload, recorded, first=first)

    def _require_taken(self, filters: ReplayFilter) -> None:
        """Raises Refused where a named event has no run of the handler and can get none."""
        handler = filters.handler
        spec = self._scope.manifest.handlers.get(handler or "")
        source, ids = filters.source, filters.event_ids
        for overview in (each for id_ in ids for each in self._scope.overviews(id_, source)):
            event = overview.event
            run_of = {*event.runs, *(run.handler for run in overview.runs)}
            if spec is None or handler in run_of:
                return
            others = f"; its handlers are {', '.join(sorted(run_of))}" if run_of else ""
            if spec.source != event.source or not matches(spec.types, event.type):
                raise Refused(
                    f"{handler} does not take {event.type} of {event.source}, the type of"
                    f" {event.event_id}: add it to the handler's types and deploy, or name another"
                    f" handler{others}"
                )
            if spec.serial:
                raise Refused(
                    f"{handler} is serial, so it cannot get a run of a stored event: ask the"
                    f" provider to send {event.event_id} again{others}"
                )


class RunningReplay:
    """A replay that sends its runs step by step, while it is iterated in one thread.

    Each item is the number of runs that a step processed. `stop`, from any thread, and Ctrl-C mean
    the same: the step under way ends by itself, what was sent stays sent, and `plan.selection`
    resumes the rest.

    Attributes:
        plan: its runs, to which a search that had not ended adds.
        report: the runs that were processed so far, with their outcomes.
        first: the size of a canary, None for all runs.
        total: the runs that it processes, as far as they were known at its start.
        done: the runs that were processed so far.
        ended: how many of the sent runs have ended, as far as `wait` knows.
    """

    def __init__(
        self,
        scope: Scope,
        plan: ReplayPlan,
        payload: dict[str, Any],
        recorded: audit.AuditRecord | None,
        *,
        first: int | None,
    ) -> None:
        self._scope = scope
        self._payload = payload
        self._recorded = recorded
        self._limit = min(first or plan.options.limit, plan.options.limit)
        self._steps = self._send_all() if recorded else iter(())
        self._step = Lock()
        self.plan = plan
        self.first = first
        self.report = ReplayReport(dry_run=False)
        if recorded is None:
            self.report = replace(plan.report, dry_run=False)
        self.total = min(self._limit, plan.report.sent) if plan.complete else self._limit
        self.done = self.ended = 0
        self.stopped = False

    def __iter__(self) -> Self:
        """Returns itself: a second iteration continues the first."""
        return self

    def __next__(self) -> int:
        """Sends the runs of one step; returns how many were processed."""
        with self._step:
            return next(self._steps)

    def stop(self) -> None:
        """Ends the replay after its step under way, and concludes its audit."""
        self.stopped = True
        # Behind a step of another thread, that thread concludes.
        if self._step.acquire(blocking=False):
            try:
                self._conclude()
            finally:
                self._step.release()

    def complete(self) -> Self:
        """Sends all runs, and waits for the outcome of a canary."""
        for _ in self:
            pass
        if self.has_canary:
            for _ in self.wait():
                pass
        return self

    @property
    def has_canary(self) -> bool:
        """Whether a canary was sent, whose outcome is worth waiting for."""
        ended_early = self.stopped or bool(self.report.failed)
        return bool(self.first and self.report.sent) and not ended_early

    def wait(self) -> Iterator[int]:
        """Waits up to two minutes for the outcomes of the sent runs; yields how many have ended.

        `stop` ends it as well.
        """
        end = self._scope.clock.now() + CANARY_WAIT
        look = {"dry_run": True, "limit": 1, "cursor": self.report.position}
        while not self.stopped:
            found = invoke_replay(self._scope.target, {"selection": self.plan.selection, **look})
            self.report.outcomes, self.report.failures = found.outcomes, found.failures
            ended = sum(found.outcomes.get(status, 0) for status in _ENDED)
            if ended > self.ended:
                newly, self.ended = ended - self.ended, ended
                yield newly
            if ended >= self.report.sent or self._scope.clock.now() >= end:
                return
            self._scope.clock.sleep(CANARY_STEP)

    @property
    def error(self) -> EndedEarly | None:
        """Why it ended early by itself, or what a canary found; None if all runs were sent."""
        plan, report = self.plan, self.report
        again = plan.command()
        if report.failed:
            if plan.failed and not plan.is_list_needed:
                again = plan.command_of_all(self.first)
            return EndedEarly(
                f"the replay stopped: {report.failed}. The runs that it counted stay replayed;"
                f" `{again}` continues with the rest"
            )
        failed = sum(report.outcomes.get(each, 0) for each in ("failed", "dead_letter"))
        if self.first and failed:
            return EndedEarly(
                f"{failed} of the first {report.sent} failed again. Correct the cause; `{again}`"
                " continues with the rest"
            )
        return None

    def _send_all(self) -> Iterator[int]:
        try:
            yield from self._send()
            while not self._is_over():
                self.plan = _search_on(self._scope, self.plan)
                # Sends the runs that were found before a failure.
                yield from self._send()
                if self.plan.failed and not self.report.failed:
                    self.report.failed = f"the search failed: {self.plan.failed}"
        except KeyboardInterrupt:
            self.stopped = True
            self._conclude()
            raise
        self._conclude()
        if self.plan.filters is not None and not self.stopped:
            self._add_unlisted()

    def _is_over(self) -> bool:
        ended = self.plan.complete or self.stopped or bool(self.report.failed)
        return ended or self.report.matched >= self._limit

    def _send(self) -> Iterator[int]:
        """Sends the runs of the selection that were not sent before, up to the limit."""
        report = self.report
        step = max(1, int(self.plan.options.rate * STEP_SECONDS))
        left = self._limit - report.matched
        for page in _pages(self._scope.target, self._payload, left, step, report.position):
            _add(report, page)
            # Those that an earlier call sent are not counted: the total leaves them out as well.
            if page.matched:
                self.done += page.matched
                yield page.matched
            if self.stopped:
                return

    def _add_unlisted(self) -> None:
        """Adds the runs that the search left out of the selection, such as finished ones."""
        counts = self.report.counts
        for outcome, count in self.plan.report.counts.items():
            if outcome not in WOULD_SEND:
                counts[outcome] = counts.get(outcome, 0) + count

    def _conclude(self) -> None:
        """Adds the counts to the audit's row, once."""
        recorded, self._recorded = self._recorded, None
        if recorded is not None:
            stopped = STOPPED if self.stopped else self.report.failed
            recorded.conclude(self.report.counts, stopped=stopped)
            self._steps = iter(()) if self.stopped else self._steps


def invoke_replay(target: Target, payload: dict[str, Any]) -> ReplayReport:
    """Invokes the replay function once.

    Raises:
        WrongArgument: the function refuses the request.
        EndedEarly: it failed, maybe after it had sent some runs.
    """
    try:
        # Without a call, which would write an error to the function's log.
        ReplayRequest.read(payload)
        return ReplayReport.from_data(invoke(target.client, target.replay_function, payload))
    except InvalidRequestError as error:
        raise WrongArgument(str(error)) from error
    except FunctionFailed as error:
        if error.kind == InvalidRequestError.__name__:
            raise WrongArgument(str(error)) from error
        rest = "this call sent nothing" if payload["dry_run"] else SENT_ONCE
        why = str(error) or "see its log"
        raise EndedEarly(f"the replay function failed: {why}; {rest}") from error


def _search_on(scope: Scope, plan: ReplayPlan) -> ReplayPlan:
    """Continues the search of a selection for 20 seconds, unless it has ended."""
    report, end = plan.report, scope.clock.now() + COUNTING
    failures, why = 0, ""
    while report.cursor is not None and report.matched < plan.options.limit:
        if failures == SEARCHES or scope.clock.now() >= end:
            failed = why if failures == SEARCHES else ""
            return replace(plan, report=report, complete=False, failed=failed)
        again = {"selection": report.selection, "fix": True, "dry_run": True, "seconds": 10}
        before = report.matched
        try:
            report = invoke_replay(scope.target, again)
        except EndedEarly as error:
            failures, why = failures + 1, str(error).partition(";")[0]
            continue
        why = report.failed
        failures = failures + 1 if report.failed and report.matched == before else 0
    return replace(plan, report=report, complete=True, failed="")


def _pages(
    target: Target, payload: dict[str, Any], limit: int, step: int, cursor: str
) -> Iterator[ReplayReport]:
    """Yields a report per invocation until all runs are processed or the limit is reached."""
    left, place = limit, cursor or None
    while left > 0:
        page = invoke_replay(target, {**payload, "cursor": place, "limit": min(left, step)})
        yield page
        left, place = left - page.matched, page.cursor
        # After a failure the next page repeats what failed, unless no run was replayed at all.
        if place is None or (page.failed and not page.matched):
            return


def _add(total: ReplayReport, part: ReplayReport) -> None:
    for name in ("matched", "dlq_removed", "retrying", "repeated", "batches", "unsearched"):
        setattr(total, name, getattr(total, name) + getattr(part, name))
    for name in ("cursor", "failed", "selection", "position", "outcomes", "failures"):
        setattr(total, name, getattr(part, name))
    total.sample = [*total.sample, *part.sample][:SAMPLE]
    for sums, counts in (
        (total.counts, part.counts),
        (total.handlers, part.handlers),
        (total.errors, part.errors),
    ):
        for key, count in counts.items():
            sums[key] = sums.get(key, 0) + count
