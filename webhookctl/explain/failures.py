"""Groups failed runs by handler, error class, the user's line and the normalised message."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nlargest
from typing import Final, NamedTuple

from webhook_inbox.domain.error_text import normalised, plain
from webhook_inbox.domain.model import Run, Status
from webhookctl.display.output import cut
from webhookctl.explain.reason import line_of

# The groups that are kept apart; a handler that puts random text into its errors makes many.
GROUPS: Final = 1000
# The ids of dead events that a group keeps, to replay a small group by name.
NAMED: Final = 3
MESSAGE_LIMIT: Final = 300
# A shorter text says too little of an error to select by it.
SHORTEST: Final = 4
# The parts of a message that `normalised` has replaced.
_REPLACED: Final = re.compile(r"<(?:text|uuid|time|hex|id|number)>")
_CLASS: Final = re.compile(r"([A-Za-z_][\w.]*): ")


class Group(NamedTuple):
    """The properties that the runs of a group share."""

    handler: str
    error_class: str
    error_line: str
    message: str


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
        named: source and id of the first dead ones.
    """

    group: Group
    count: int = 0
    dead: int = 0
    first: datetime | None = None
    last: datetime | None = None
    example: tuple[str, str] = ("", "")
    error: str = ""
    uniform: bool = True
    named: list[tuple[str, str]] = field(default_factory=list)

    def add(self, run: Run) -> None:
        """Adds a run."""
        at, name = run.last_at, (run.source, run.event_id)
        self.count += 1
        self.error = self.error or run.last_error
        self.uniform = self.uniform and run.last_error == self.error
        if run.status is Status.DEAD_LETTER:
            self.dead += 1
            if len(self.named) < NAMED:
                self.named.append(name)
        if self.first is None or (at is not None and at < self.first):
            self.first = at
        if self.last is None or (at is not None and at >= self.last):
            self.last, self.example = at, name

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

    def text_of(self, found: Failures) -> str:
        """Returns a text that the errors of this group contain, and those of no other group.

        "" if there is none.
        """
        group = found.group
        others = [g.message for g in self.groups if g.handler == group.handler and g != group]
        parts = map(str.strip, _REPLACED.split(group.message.removesuffix("…")))
        usable = (text for text in parts if len(text) >= SHORTEST and text in found.error)
        single = (text for text in usable if not any(text in other for other in others))
        return max(single, key=len, default="")


def group_of(run: Run) -> Group:
    """Returns the group of a failed run."""
    # A run of a deployment that did not record the class has it in its error.
    recorded = run.error_class
    message = normalised(run.last_error)
    found = _CLASS.match(message)
    kind = recorded or (found[1] if found else "")
    return Group(run.handler, kind, line_of(run), cut(message, MESSAGE_LIMIT))
