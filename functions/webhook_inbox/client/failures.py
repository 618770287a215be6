"""Failing and dead runs, grouped by handler, error class, the user's line and the message."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from typing import Final, NamedTuple

from webhook_inbox.client.errors import WrongArgument
from webhook_inbox.client.names import require_known
from webhook_inbox.client.reasons import line_of
from webhook_inbox.client.replays import ReplayFilter
from webhook_inbox.client.scope import Scope
from webhook_inbox.client.search import EventQuery
from webhook_inbox.client.suggestions import Command
from webhook_inbox.domain.error_text import MESSAGE_LIMIT, error_group, plain
from webhook_inbox.domain.model import EventStatus, Run, Status
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.printable import cut
from webhook_inbox.ledger.schema import DEAD_FROM, RUN_LIFE, dead_due_at, key_of_run

# The groups that are kept apart; a handler that puts random text into its errors makes many.
GROUPS: Final = 1000
# The failing runs that are recognised if they die while the runs are read.
REMEMBERED: Final = 10_000
FAILED: Final = (EventStatus.FAILED, EventStatus.DEAD_LETTER)


@dataclass(frozen=True, slots=True)
class FailedEvent:
    """The event of a failed run."""

    source: str
    event_id: str


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Runs that failed alike, but for ids, numbers, times and quoted texts in their messages.

    Attributes:
        dead: how many of them are dead; the others are retried.
        group: the group's id, which selects its dead runs for a replay.
        error_class: the class of their error, None if it is not known.
        error_line: the user's line that raised it, None if it is not known.
        message: its message; what differs is replaced by its kind.
        text: the error that all of them have, or else the message.
        first_at: when the first of them failed last.
        last_at: when the last of them failed last.
        example: the event of the newest.
        replay: the dry run that selects its dead runs and no others; None without any.
        replay_of_class: the dry run of all dead runs of the handler and error class; None unless
            several groups have this line, and differ in their messages only.
    """

    count: int
    dead: int
    group: str
    handler: str
    error_class: str | None
    error_line: str | None
    message: str
    text: str
    first_at: datetime | None
    last_at: datetime | None
    example: FailedEvent
    inspect: Command
    replay: Command | None
    replay_of_class: Command | None


@dataclass(frozen=True, slots=True)
class FailureSummary:
    """The failing and dead runs by cause, the largest groups first.

    Attributes:
        group_count: the number of groups, up to 1,000.
        runs: the number of runs, of all groups.
        partial: whether runs are missing, since the client's budget is spent.
    """

    groups: Sequence[FailureGroup]
    group_count: int
    runs: int
    partial: bool


class Failures:
    """The failing and dead runs of an inbox."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def summarize(self, query: EventQuery | None = None, *, limit: int = 20) -> FailureSummary:
        """Groups failing and dead runs by their cause; memory does not grow with the runs.

        Args:
            query: the filters; a status is that of the runs, failed or dead_letter.
            limit: the number of groups, of which all runs are counted.

        Raises:
            WrongArgument: no such source or handler exists, or it is another status.
        """
        query = query or EventQuery()
        if query.status not in {None, *FAILED}:
            raise WrongArgument(f"status {query.status}: use {' or '.join(FAILED)}")
        groups, others = dict[Cause, _Failed](), 0
        for run in self._failed(query):
            cause = cause_of(run)
            if cause not in groups and len(groups) >= GROUPS:
                others += 1
            else:
                groups.setdefault(cause, _Failed(cause)).add(run)
        if not groups:
            require_known(self._scope.target, source=query.source, handler=query.handler)
        largest = nlargest(limit, groups.values(), key=lambda each: each.count)
        return FailureSummary(
            groups=[self._group(each, groups.values(), query) for each in largest],
            group_count=len(groups),
            runs=sum(each.count for each in groups.values()) + others,
            partial=self._scope.is_cut,
        )

    def _failed(self, query: EventQuery) -> Iterator[Run]:
        """Yields the failing runs, then the dead ones, page by page.

        A run that dies meanwhile is in both indexes; it is yielded once if it is among the first
        10,000 failing ones.
        """
        ledger, failing = self._scope.ledger(), set[Key]()
        if query.status in {None, EventStatus.FAILED}:
            for run in ledger.due_runs(selects=query.selects):
                if run.status is Status.FAILED and query.runs(run):
                    if len(failing) < REMEMBERED:
                        failing.add(key_of_run(run))
                    yield run
        if query.status in {None, EventStatus.DEAD_LETTER}:
            low = DEAD_FROM if query.since is None else dead_due_at(query.since + RUN_LIFE)
            dead = ledger.dead_runs(low=low, selects=query.selects)
            rows = (run for _, run in dead if run is not None and query.runs(run))
            yield from (run for run in rows if key_of_run(run) not in failing)

    def _group(
        self, found: "_Failed", groups: Iterable["_Failed"], query: EventQuery
    ) -> FailureGroup:
        cause, newest, program = found.cause, found.newest, self._scope.program
        alike = [each for each in groups if each.cause[:3] == cause[:3]]
        by_class = len(alike) > 1 and cause.error_class and cause.error_line
        return FailureGroup(
            count=found.count,
            dead=found.dead,
            group=cause.id,
            handler=cause.handler,
            error_class=cause.error_class or None,
            error_line=cause.error_line or None,
            message=cause.message,
            text=found.text,
            first_at=found.first,
            last_at=found.last,
            example=newest,
            inspect=program.command(
                "inbox inspect", "--source", newest.source, argument=newest.event_id
            ),
            replay=self._replay(query, cause, by_group=True) if found.dead else None,
            replay_of_class=(
                self._replay(query, cause, by_group=False)
                if by_class and any(each.dead for each in alike)
                else None
            ),
        )

    def _replay(self, query: EventQuery, cause: "Cause", *, by_group: bool) -> Command:
        selected = ReplayFilter(
            source=query.source,
            type=query.type,
            handler=cause.handler,
            error_class=None if by_group else cause.error_class,
            error_group=cause.id if by_group else None,
            tenant=query.tenant,
            since=query.since,
            until=query.until,
        )
        return self._scope.program.command("replay", *selected.words())


class Cause(NamedTuple):
    """The properties that the runs of a group share; `id` is that of their `ErrorGroup`."""

    handler: str
    error_class: str
    error_line: str
    message: str
    id: str


def cause_of(run: Run) -> Cause:
    """Returns the cause of a failed run."""
    group = error_group(run.error_class, run.error_line, run.last_error)
    return Cause(run.handler, group.error_class, line_of(run), group.message, group.id)


@dataclass(slots=True)
class _Failed:
    """The failed runs of a group; see `FailureGroup`.

    Attributes:
        error: the error of the first that was added, as it is stored.
        uniform: whether all have this error.
    """

    cause: Cause
    count: int = 0
    dead: int = 0
    first: datetime | None = None
    last: datetime | None = None
    newest: FailedEvent = FailedEvent("", "")
    error: str = ""
    uniform: bool = True

    def add(self, run: Run) -> None:
        at = run.last_at
        self.count += 1
        self.error = self.error or run.last_error
        self.uniform = self.uniform and run.last_error == self.error
        self.dead += run.status is Status.DEAD_LETTER
        if self.first is None or (at is not None and at < self.first):
            self.first = at
        if self.last is None or (at is not None and at >= self.last):
            self.last, self.newest = at, FailedEvent(run.source, run.event_id)

    @property
    def text(self) -> str:
        return cut(plain(self.error), MESSAGE_LIMIT) if self.uniform else self.cause.message
