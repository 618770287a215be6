"""The row of a request that the people of a group decide: `approve=Approval(…)`.

    (no row) ──► open ──► approved    enough people approved, and none denied
                 │  ▲ ├─► denied      one person denied
                 ▼  │ ├─► expired     undecided in time
              a decision, ├─► void    the effect was requested with other arguments
              an escalation, an announcement

    pk    the event's
    sk    approval#{handler}#{subject}#{fingerprint}#{round}

The row is the truth: an effect starts with these arguments only if the row is `approved`. Every
write is conditional on the version that was read, so of two decisions at once both count or one is
refused, and no decision counts after the end. A row never leaves a final state: the request after a
replay is another row, of the next round.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from webhook_inbox.domain.conditions import Equals
from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.model import RequestState, Run
from webhook_inbox.domain.ports import Change, Item, Key, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.ledger.schema import APPROVAL_PREFIX, absent, event_pk, live, transition

# More than people who decide in the same moment.
TRIES: Final = 8


class Word(StrEnum):
    """A person's decision."""

    APPROVE = "approve"
    DENY = "deny"


class DecisionOutcome(StrEnum):
    """The outcome of one person's decision."""

    RECORDED = "recorded"
    REPEATED = "repeated"  # the same person decided the same before
    CONFLICT = "conflict"  # the same person decided otherwise before: nothing was recorded
    EXPIRED = "expired"  # too late: nothing was recorded
    VOID = "void"  # the request no longer applies: nothing was recorded
    UNKNOWN = "unknown"  # no such request, or the person is not asked
    CLOSED = "closed"  # decided by others: nothing was recorded


@dataclass(frozen=True, slots=True)
class RequestAddress:
    """Identifies a request.

    Attributes:
        source: the event's source.
        event_id: the event's id.
        handler: the handler's name.
        subject: like "effect:refund".
        fingerprint: the SHA-256 of the arguments, as 64 hex digits.
        round: counts the requests about these arguments from 1; a replay may ask anew.
    """

    source: str
    event_id: str
    handler: str
    subject: str
    fingerprint: str
    round: int

    @property
    def key(self) -> Key:
        """The key of the request's row."""
        # The whole fingerprint: two arguments of one prefix must not share a row.
        asked = f"{APPROVAL_PREFIX}{self.handler}#{self.subject}#{self.fingerprint}#{self.round}"
        return Key(event_pk(self.source, self.event_id), asked)


@dataclass(frozen=True, slots=True)
class GivenDecision:
    """One person's decision; `proof` is how the name is known, as in the audit."""

    word: Word
    at: datetime
    reason: str
    proof: str


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request as it was read."""

    row: Item

    @property
    def key(self) -> Key:
        """The key of the row."""
        return Key(self.row["pk"], self.row["sk"])

    @property
    def address(self) -> RequestAddress:
        """Its address."""
        row = self.row
        parts = (row["source"], row["event_id"], row["handler"], row["subject"])
        return RequestAddress(*parts, row["fingerprint"], row["round"])

    @property
    def state(self) -> RequestState:
        """Its state as stored; an open request may be past its end."""
        return RequestState(self.row["state"])

    @property
    def question(self) -> str:
        """The question as one line."""
        row = self.row
        return f"Approve {row['effect']} of {row['handler']} for {row['source']} {row['event_id']}?"

    @property
    def group(self) -> str:
        """The group that is asked."""
        return str(self.row["group"])

    @property
    def count(self) -> int:
        """The approvals that are needed."""
        return int(self.row["count"])

    @property
    def opened_at(self) -> datetime:
        """When it was opened."""
        return from_ms(self.row["opened_at"])

    @property
    def until(self) -> datetime:
        """When it expires."""
        return from_ms(self.row["until"])

    @property
    def ended_at(self) -> datetime | None:
        """When it left the state `open`."""
        return from_ms(self.row["ended_at"]) if "ended_at" in self.row else None

    @property
    def escalated(self) -> bool:
        """True if the next group is asked as well."""
        return "escalated_at" in self.row

    @property
    def announced(self) -> Mapping[str, int]:
        """The people to whom a message was sent, each with the time in ms."""
        sent: Mapping[str, int] = self.row.get("announced", {})
        return sent

    @property
    def failures(self) -> int:
        """How many attempts to announce it have failed."""
        return int(self.row.get("failures", 0))

    @property
    def decisions(self) -> dict[str, GivenDecision]:
        """The decision of each person who has decided."""
        return {
            person: GivenDecision(
                Word(each["word"]), from_ms(each["at"]), each["reason"], each["proof"]
            )
            for person, each in self.row.get("decisions", {}).items()
        }

    @property
    def approvals(self) -> int:
        """The number of people who approved."""
        return sum(each.word is Word.APPROVE for each in self.decisions.values())

    def asks(self, named: Mapping[str, Any]) -> bool:
        """Returns whether it was opened with these terms and arguments."""
        return all(self.row.get(name) == value for name, value in named.items())


class RequestRows:
    """Reads and changes the rows. Every method raises Unavailable if the table fails."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def of_subject(self, run: Run, subject: str, now: datetime) -> list[RequestRow]:
        """Returns the requests of a run about a subject, in no order."""
        prefix = f"{APPROVAL_PREFIX}{run.handler}#{subject}#"
        rows = self._table.query(event_pk(run.source, run.event_id), sk_prefix=prefix)
        return [RequestRow(row) for row in rows if live(row, now) is not None]

    def find(self, key: Key, now: datetime) -> RequestRow | None:
        """Returns the request with this key, or None."""
        row = live(self._table.get(key), now)
        return None if row is None else RequestRow(row)

    def at(self, address: RequestAddress, now: datetime) -> RequestRow | None:
        """Returns the request with this address, or None."""
        found = self.find(address.key, now)
        return found if found is not None and found.address == address else None

    def open(self, address: RequestAddress, values: Item, now: datetime) -> RequestRow:
        """Opens a request; returns it, or the row that was there first."""
        key = address.key
        row = {"pk": key.pk, "sk": key.sk, "state": str(RequestState.OPEN), "version": 1, **values}
        try:
            self._table.put(row, when=absent(now))
        except ConditionFailed as error:
            return RequestRow(error.old or row)
        return RequestRow(row)

    def change(self, request: RequestRow, values: Mapping[str, Any], *, mark: str) -> RequestRow:
        """Changes a request that no one has changed since it was read.

        Args:
            request: the request as read.
            values: the new values.
            mark: unique to the caller; recognises its own write after a lost answer.

        Raises:
            ConditionFailed: it was changed meanwhile.
        """
        version = request.row["version"] + 1
        change = Change(set={**values, "version": version, "mark": mark})
        seen = Equals("version", request.row["version"])
        own = {"version": version, "mark": mark}
        return RequestRow(transition(self._table, request.key, change, when=seen, own=own))

    def end(
        self, request: RequestRow, state: RequestState, now: datetime, *, mark: str
    ) -> RequestRow:
        """Ends an open request; returns it, or the row as it was changed meanwhile."""
        ended = {"state": str(state), "ended_at": to_ms(now)}
        while request.state is RequestState.OPEN:
            try:
                return self.change(request, ended, mark=mark)
            except ConditionFailed as error:
                request = _present(error)
        return request

    def decide(
        self, request: RequestRow, person: str, given: GivenDecision, *, mark: str
    ) -> tuple[DecisionOutcome, RequestRow]:
        """Records one person's decision; the one that is missing ends the request.

        Returns the outcome, and the request as it is now. `given.at` is the present time.
        """
        for _ in range(TRIES):
            refused = refusal(request, person, given)
            if refused is not None:
                return refused, request
            try:
                changed = self.change(request, _decided(request, person, given), mark=mark)
            except ConditionFailed as error:
                request = _present(error)
            else:
                return DecisionOutcome.RECORDED, changed
        raise Unavailable("ledger", "decide", "others decided at the same time")


def refusal(request: RequestRow, person: str, given: GivenDecision) -> DecisionOutcome | None:
    """Returns why a decision cannot be recorded, None if it can."""
    before = request.decisions.get(person)
    if before is not None:
        same = before.word is given.word
        return DecisionOutcome.REPEATED if same else DecisionOutcome.CONFLICT
    if request.state is RequestState.OPEN:
        return None if given.at < request.until else DecisionOutcome.EXPIRED
    refused = {
        RequestState.EXPIRED: DecisionOutcome.EXPIRED,
        RequestState.VOID: DecisionOutcome.VOID,
    }
    return refused.get(request.state, DecisionOutcome.CLOSED)


def _decided(request: RequestRow, person: str, given: GivenDecision) -> Item:
    """Returns the values that record a decision, and with the last one the end."""
    entry = {
        "word": str(given.word),
        "at": to_ms(given.at),
        "reason": given.reason,
        "proof": given.proof,
    }
    values: Item = {"decisions": {**request.row.get("decisions", {}), person: entry}}
    if given.word is Word.DENY:
        values |= {"state": str(RequestState.DENIED), "ended_at": to_ms(given.at)}
    elif request.approvals + 1 >= request.count:
        values |= {"state": str(RequestState.APPROVED), "ended_at": to_ms(given.at)}
    return values


def _present(error: ConditionFailed) -> RequestRow:
    if error.old is None:
        raise Unavailable("ledger", "approval", "the request has just expired") from error
    return RequestRow(error.old)
