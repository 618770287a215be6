"""A held run and its question: one person decides, or the people of a group."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Key
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import key_of_run

ID_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """The question for which `run` is held."""

    run: Run

    @property
    def id(self) -> str:
        """Eight hex digits, different for each hold of a run."""
        at = self.run.held.get("at", 0)
        text = f"{self.subject}\n{self.fingerprint}\n{at}\n{self.run.lease_id}"
        return sha256(text.encode()).hexdigest()[:ID_LENGTH]

    @property
    def subject(self) -> str:
        """The subject of the decision, like "policy" or "effect:refund"."""
        return str(self.run.held.get("subject", "handler"))

    @property
    def effect(self) -> str:
        """The name of the effect in question, or ""."""
        return self.subject.partition(":")[2]

    @property
    def reason(self) -> str:
        """Why the run is held."""
        return str(self.run.held.get("reason") or self.run.last_error)

    @property
    def shows(self) -> str:
        """The details of the request as text."""
        return str(self.run.held.get("shows", ""))

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the request."""
        return str(self.run.held.get("fingerprint", ""))

    @property
    def identical_to(self) -> str:
        """The id of the first event with this event's body, "" if it is held for another reason."""
        return str(self.run.held.get("identical_to", ""))

    @property
    def request(self) -> Key | None:
        """The key of the row by which people decide, None if one person decides."""
        sort_key = self.run.held.get("request")
        return None if sort_key is None else Key(key_of_run(self.run).pk, sort_key)

    @property
    def unannounced(self) -> Mapping[str, str]:
        """Why a person who is asked was not text, by name."""
        why: Mapping[str, str] = self.run.held.get("unannounced", {})
        return why

    @property
    def since(self) -> datetime | None:
        """When the run was held."""
        return from_ms(self.run.held["at"]) if "at" in self.run.held else self.run.last_at


def holds(ledger: Ledger) -> Iterator[ApprovalRequest]:
    """Yields the approval request of every held run, in no order, page by page."""
    runs = ledger.due_runs(newest_first=True)
    return (ApprovalRequest(run) for run in runs if run.status is Status.HELD)
