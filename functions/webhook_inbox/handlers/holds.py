"""Runs that wait for a person, and what the person is asked."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.queries import Ledger

ID_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class Hold:
    """What a person is asked to decide; `run` is held for it."""

    run: Run

    @property
    def id(self) -> str:
        """Its name, eight hex digits: the same run held for something else has another one."""
        at = self.run.held.get("at", 0)
        told = f"{self.subject}\n{self.fingerprint}\n{at}\n{self.run.lease_id}"
        return sha256(told.encode()).hexdigest()[:ID_LENGTH]

    @property
    def subject(self) -> str:
        """What is decided, like "policy" or "effect:refund"."""
        return str(self.run.held.get("subject", "handler"))

    @property
    def effect(self) -> str:
        """The effect's name where it is about one, else ""."""
        return self.subject.partition(":")[2]

    @property
    def reason(self) -> str:
        """Why it is held."""
        return str(self.run.held.get("reason") or self.run.last_error)

    @property
    def shows(self) -> str:
        """What is decided about, as text."""
        return str(self.run.held.get("shows", ""))

    @property
    def fingerprint(self) -> str:
        """Of what is decided about."""
        return str(self.run.held.get("fingerprint", ""))

    @property
    def since(self) -> datetime | None:
        """When it was held."""
        return from_ms(self.run.held["at"]) if "at" in self.run.held else self.run.last_at


def holds(ledger: Ledger) -> Iterator[Hold]:
    """Yields every run that waits for a person, in no order."""
    return (Hold(run) for run in ledger.attention_runs() if run.status is Status.HELD)
