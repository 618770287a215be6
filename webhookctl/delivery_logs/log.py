"""What a provider's log is asked, and what it tells."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Logged:
    """An event that the provider has sent, or tried to.

    Attributes:
        event_id: as our provider names it.
        type: as our provider names it.
        at: when it was last tried, or, where the log does not tell, when it was made.
        answered: the HTTP status of the last try; None where the log does not tell.
        handle: what the provider calls it when it is asked to send it again.
    """

    event_id: str
    type: str
    at: datetime
    answered: int | None
    handle: str


class DeliveryLog(Protocol):
    """A provider's log of what it sent to one of our addresses."""

    @property
    def memory(self) -> timedelta:
        """How far back it goes."""

    @property
    def pause(self) -> float:
        """The seconds that the provider wants between two requests to send again."""

    def entries(self, low: datetime, high: datetime) -> Iterator[Logged]:
        """Yields what was sent in [low, high], newest first, each event once.

        Raises `Unusable`, `Refused`.
        """

    def resend(self, entry: Logged) -> None:
        """Asks the provider to send an event again; it comes moments later, signed anew.

        Raises `Unusable`, `Refused`.
        """
