"""Groups failed runs by handler, error class, the user's line and the normalised message."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nlargest
from typing import Final, NamedTuple

from webhook_inbox.domain.error_text import MESSAGE_LIMIT, error_group, plain
from webhook_inbox.domain.model import Run, Status
from webhookctl.display.output import cut
from webhookctl.explain.reason import line_of

# The groups that are kept apart; a handler that puts random text into its errors makes many.
GROUPS: Final = 1000


class Group(NamedTuple):
    """The properties that the runs of a group share; `id` is that of their `ErrorGroup`."""

    handler: str
    error_class: str
    error_line: str
    message: str
    id: str


@dataclass(slots=True)
class Failures:
    """The failed runs of a group.

    Attributes:
        first: when the first of them failed last.
        last: when the last of them failed last.
        example: the source and the event id of the newest.
        error: the error of the first that was added, as it is stored.
        uniform: whether all have this error.
        dead: how many of them are dead letters; the others are retried.
    """

    group: Group
    count: int = 0
    dead: int = 0
    first: datetime | None = None
    last: datetime | None = None
    example: tuple[str, str] = ("", "")
    error: str = ""
    uniform: bool = True

    def add(self, run: Run) -> None:
        """Adds a run."""
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
        """The error that all of them have, or else the message with its variable parts replaced."""
        return cut(plain(self.error), MESSAGE_LIMIT) if self.uniform else self.group.message


@dataclass(slots=True)
class FailureGroups:
    """Counts failed runs by group; the memory does not grow with the runs.

    `others` counts the runs of groups beyond the first 1,000.
    """

    groups: dict[Group, Failures] = field(default_factory=dict)
    others: int = 0

    def add(self, runs: Iterable[Run]) -> None:
        """Adds runs."""
        for run in runs:
            group = group_of(run)
            if group not in self.groups and len(self.groups) >= GROUPS:
                self.others += 1
            else:
                self.groups.setdefault(group, Failures(group)).add(run)

    def largest(self, limit: int) -> list[Failures]:
        """Returns the groups with the most runs, the largest first."""
        return nlargest(limit, self.groups.values(), key=lambda each: each.count)


def group_of(run: Run) -> Group:
    """Returns the group of a failed run."""
    group = error_group(run.error_class, run.error_line, run.last_error)
    return Group(run.handler, group.error_class, line_of(run), group.message, group.id)
