"""The counts of a reconciler's pass."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.model import Run

PATIENCE: Final = 10
ERRORS_SHOWN: Final = 5

T = TypeVar("T")


class Action(StrEnum):
    """The action on a run."""

    ADOPTED = "adopted"  # had no row: written as pending and sent, or as held
    RESUMED = "resumed"  # parked and due: sent
    RESENT = "resent"  # overdue: sent again
    POSTPONED = "postponed"  # not overdue yet, or behind a backlog
    WATCHED = "watched"  # its first worker was lost: listed in the due index
    LAST_CALL = "last_call"  # still waits, and its event ends within 7 days: alarmed
    EXPIRED = "expired"  # waited past its event's end: dead
    LOST = "lost"  # sent six times and never received: dead
    MOVED_ON = "moved_on"  # changed by another writer meanwhile
    DLQ_REMOVED = "dlq_removed"  # a DLQ copy of a settled, held or replayed run
    ERASED = "erased"  # an event's payload, whose retention has passed
    FAILED = "failed"  # a call failed: handled in a later pass


@dataclass(slots=True)
class ReconcilerReport:
    """The counts of a pass.

    Attributes:
        complete: False where its time ran out.
        dead: the runs that it gave up, as they were before.
        oldest_due: how late the most overdue run was.
        oldest_dead_letter: when the oldest message that a sweep of the DLQs found was sent.
    """

    counts: dict[str, int] = field(default_factory=dict)
    complete: bool = True
    errors: list[str] = field(default_factory=list)
    dead: list[Run] = field(default_factory=list)
    oldest_due: timedelta = timedelta(0)
    oldest_dead_letter: datetime | None = None

    def to_data(self) -> dict[str, Any]:
        """Returns the counts as JSON data."""
        return {"counts": self.counts, "complete": self.complete, "errors": self.errors}

    def add(self, action: Action, number: int = 1) -> None:
        """Counts an action."""
        self.counts[action] = self.counts.get(action, 0) + number

    def attempt(self, work: Callable[[T], None], subject: T) -> bool:
        """Does one step of a pass, and counts its failure so that the pass continues.

        Returns:
            False if a call failed and the step has to be repeated.

        Raises:
            Unavailable: so many calls failed that the service seems to be down.
        """
        try:
            work(subject)
        except Unavailable as error:
            self._note(error)
            if self.count(Action.FAILED) >= PATIENCE:
                raise
            return False
        except Exception as error:  # noqa: BLE001 - an unreadable row: reported and passed over
            self._note(error)
        return True

    def _note(self, error: Exception) -> None:
        self.add(Action.FAILED)
        if len(self.errors) < ERRORS_SHOWN:
            self.errors.append(f"{type(error).__name__}: {error}")

    def count(self, action: Action) -> int:
        """Returns how often an action was done."""
        return self.counts.get(action, 0)
