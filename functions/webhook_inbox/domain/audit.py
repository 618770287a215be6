"""The values of the audit: who did what, why, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from webhook_inbox.domain.ports import Key


class Proof(StrEnum):
    """How an actor's name is known."""

    STS = "sts"  # webhookctl asked AWS STS for the caller's ARN
    LOCAL = "local"  # the user of the machine, for an inbox on it
    CLAIMED = "claimed"  # the payload of an invocation names it; nothing verifies it
    LINK = "link"  # the person's own link of a request for approval
    INBOX = "inbox"  # the inbox itself, by its configuration


class AuditedAction(StrEnum):
    """The actions of operators that the audit records."""

    REPLAY = "replay"
    SKIP = "skip"
    RELEASE = "release"
    APPROVE = "approve"
    DENY = "deny"
    HAPPENED = "happened"  # an effect in doubt, whose result a person records
    COMPLETE = "complete"
    PAUSE = "pause"
    RESUME = "resume"
    OPEN_CIRCUIT = "open circuit"
    CLOSE_CIRCUIT = "close circuit"
    SET_SECRET = "set secret"  # noqa: S105 - an action
    ROTATE_SECRET = "rotate secret"  # noqa: S105 - an action
    REVOKE_SECRET = "revoke secret"  # noqa: S105 - an action
    ENROL_SECRET = "enrol secret"  # noqa: S105 - an action
    REDELIVER = "redeliver"
    ERASE = "erase"
    SHOW_PERSONAL = "show-personal"
    TEST_ALARMS = "test alarms"
    ASK = "ask"  # people for the approval of an effect, as all of these by the inbox itself
    ANNOUNCE = "announce"  # the request to one person
    ESCALATE = "escalate"  # the request to the next group
    EXPIRE = "expire"  # the request: undecided in time, or void


@dataclass(frozen=True, slots=True)
class Actor:
    """The person or system that performs an action.

    Attributes:
        name: the caller's ARN, the user's name, or the claimed name.
        proof: how the name is known.
        on_behalf_of: the person or system that the caller names (`--by`), or "".
        request_id: the id of the Lambda invocation, or "".
    """

    name: str
    proof: Proof
    on_behalf_of: str = ""
    request_id: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Actor":
        """Reads the attributes of a row or of a run's replay."""
        return cls(
            name=row.get("by", ""),
            proof=Proof(row.get("proof", Proof.CLAIMED)),
            on_behalf_of=row.get("on_behalf_of", ""),
            request_id=row.get("request_id", ""),
        )

    def attributes(self) -> dict[str, str]:
        """Returns the attributes of a row or of a run's replay."""
        more = {"on_behalf_of": self.on_behalf_of, "request_id": self.request_id}
        told = {"by": self.name, "proof": str(self.proof)}
        return told | {name: value for name, value in more.items() if value}

    def __str__(self) -> str:
        """Returns one text for a run's error or a list."""
        unverified = " (unverified)" if self.proof is Proof.CLAIMED else ""
        behalf = f" for {self.on_behalf_of}" if self.on_behalf_of else ""
        return f"{self.name or 'unknown'}{unverified}{behalf}"


INBOX: Final = Actor("webhook-inbox", Proof.INBOX)


class EventName(NamedTuple):
    """The event that an action is about."""

    source: str
    event_id: str


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action as it is stored.

    `counts` is None for one that was begun and not finished; `stopped` is why it ended early.
    """

    key: Key
    at: datetime
    action: str
    actor: Actor
    reason: str
    request: Mapping[str, str] = field(default_factory=dict)
    event_ids: Sequence[str] = ()
    forced: bool = False
    counts: Mapping[str, int] | None = None
    stopped: str = ""
