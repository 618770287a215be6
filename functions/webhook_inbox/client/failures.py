"""Failing and dead runs, grouped by handler, error class, the user's line and the message."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
        count: the runs.
        dead: how many of them are dead; the others are retried.
        group: the group's id, which selects its dead runs for a replay.
        handler: their handler.
        error_class: the class of their error, None if it is not known.
        error_line: the user's line that raised it, None if it is not known.
        message: its message; what differs is replaced by its kind.
        text: the error that all of them have, or else the message.
        first_at: when the first of them failed last.
        last_at: when the last of them failed last.
        example: the event of the newest.
        inspect: the command that shows the example.
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
    """The failing and dead runs by cause.

    Attributes:
        groups: the largest groups, the largest first.
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
        causes = _Causes()
        causes.add(self._failed(query))
        if not causes.failures:
            require_known(self._scope.target, source=query.source, handler=query.handler)
        largest = nlargest(limit, causes.failures.values(), key=lambda each: each.count)
        return FailureSummary(
            groups=[self._group(each, causes, query) for each in largest],
            group_count=len(causes.failures),
            runs=sum(each.count for each in causes.failures.values()) + causes.others,
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

    def _group(self, found: "_Failed", causes: "_Causes", query: EventQuery) -> FailureGroup:
        cause, program = found.cause, self._scope.program
        source, event_id = found.example
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
            example=FailedEvent(source, event_id),
            inspect=program.command("inbox inspect", "--source", source, argument=event_id),
            replay=self._replay(query, cause, by_group=True) if found.dead else None,
            replay_of_class=(
                self._replay(query, cause, by_group=False) if causes.has_alike(cause) else None
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
    """The failed runs of a group.

    Attributes:
        first: when the first of them failed last.
        last: when the last of them failed last.
        example: the source and the event id of the newest.
        error: the error of the first that was added, as it is stored.
        uniform: whether all have this error.
        dead: how many of them are dead letters; the others are retried.
    """

    cause: Cause
    count: int = 0
    dead: int = 0
    first: datetime | None = None
    last: datetime | None = None
    example: tuple[str, str] = ("", "")
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
            self.last, self.example = at, (run.source, run.event_id)

    @property
    def text(self) -> str:
        return cut(plain(self.error), MESSAGE_LIMIT) if self.uniform else self.cause.message


@dataclass(slots=True)
class _Causes:
    """Counts failed runs by cause; `others` counts the runs of causes beyond the first 1,000."""

    failures: dict[Cause, _Failed] = field(default_factory=dict)
    others: int = 0

    def add(self, runs: Iterable[Run]) -> None:
        for run in runs:
            cause = cause_of(run)
            if cause not in self.failures and len(self.failures) >= GROUPS:
                self.others += 1
            else:
                self.failures.setdefault(cause, _Failed(cause)).add(run)

    def has_alike(self, cause: Cause) -> bool:
        """Returns whether other groups have this line, and a replay of the class selects runs."""
        alike = [each for each in self.failures.values() if each.cause[:3] == cause[:3]]
        known = cause.error_class and cause.error_line
        return len(alike) > 1 and bool(known) and any(each.dead for each in alike)
