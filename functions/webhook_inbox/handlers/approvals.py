"""Holds: a person decides about a run that waits for one.

    approve    the run goes on, and what it was held for is approved as it was seen
    happened   the same, and the effect in doubt is committed by hand: it is not repeated
    deny       the run is finished as skipped; effects that have happened stay as they are

Generation first, then send, as replay does it. Every write is conditional on the hold that the
person saw, so of two decisions at once the first one stands.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from webhook_inbox.domain.errors import ConditionFailed, Unavailable
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.model import Run, Status
from webhook_inbox.domain.ports import Change, Clock, Key, Randomness, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.handlers.effects import manual_commit
from webhook_inbox.handlers.effects.results import encode
from webhook_inbox.ledger import audit
from webhook_inbox.ledger.deadlines import event_end, overdue_at
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.ledger.schema import carries, due_bucket, run_from, run_key
from webhook_inbox.ledger.settle import as_seen, cut
from webhook_inbox.queue import message_groups
from webhook_inbox.queue.lanes import Lanes

ID_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
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


def holds(ledger: Ledger) -> Iterator[ApprovalRequest]:
    """Yields every run that waits for a person, in no order."""
    return (ApprovalRequest(run) for run in ledger.due_runs() if run.status is Status.HELD)


# More questions than a run asks; its row stays small.
REMEMBERED: Final = 20


class ApprovalOutcome(StrEnum):
    """What came of a decision."""

    APPROVED = "approved"  # goes on, its message is sent
    UNSENT = "unsent"  # goes on, and the reconciler sends its message within minutes
    DENIED = "denied"  # finished as skipped
    MOVED_ON = "moved_on"  # no longer held for what the person saw: nothing was decided
    EXPIRED = "expired"  # its event is gone: nothing was decided


@dataclass(frozen=True, slots=True)
class Decision:
    """What came of a decision.

    Attributes:
        outcome: what came of it.
        run: as it is now, None if it is gone.
        committed: of an effect that is said to have happened, whether that was recorded; False
            where an earlier commit stands. None where nothing was said.
    """

    outcome: ApprovalOutcome
    run: Run | None
    committed: bool | None = None


class Approvals:
    """The deciding use case.

    Args:
        manifest: where it does not know a run's handler, the reconciler sends the message.
    """

    def __init__(
        self,
        *,
        manifest: Manifest,
        table: Table,
        lanes: Lanes,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._manifest = manifest
        self._table = table
        self._lanes = lanes
        self._clock = clock
        self._randomness = randomness

    def approve(self, hold: ApprovalRequest, *, by: str, reason: str) -> Decision:
        """Lets a run go on; what it was held for is approved as `hold` shows it.

        Raises:
            Unavailable: the ledger failed; the decision may have been made, and can be repeated.
        """
        if self._expired(hold):
            return Decision(ApprovalOutcome.EXPIRED, hold.run)
        self._audit("approve", hold, by, reason)
        return self._let_go(hold, by, reason)

    def happened(self, hold: ApprovalRequest, result: Any, *, by: str, reason: str) -> Decision:
        """Commits the effect that a run is held for, with `result`, and lets the run go on.

        An effect that a worker committed meanwhile keeps the worker's result.

        Raises:
            NoDoubt: the effect is not in doubt.
            Unstorable: the result cannot be recorded.
            Unavailable: as for `approve`.
        """
        stored = encode(result)
        if self._expired(hold):
            return Decision(ApprovalOutcome.EXPIRED, hold.run)
        found = manual_commit.find(self._table, hold.run, hold.effect)
        self._audit("happened", hold, by, reason)
        word = {"by": cut(by), "reason": cut(reason)}
        mark, now = self._randomness.token(), self._clock.now()
        committed = manual_commit.commit(self._table, found, stored, word=word, mark=mark, now=now)
        return replace(self._let_go(hold, by, reason), committed=committed)

    def deny(self, hold: ApprovalRequest, *, by: str, reason: str) -> Decision:
        """Finishes a run as skipped.

        Raises:
            Unavailable: as for `approve`.
        """
        self._audit("deny", hold, by, reason)
        now = self._clock.now()
        change = Change(
            set={
                "status": str(Status.SKIPPED),
                "last_error": cut(f"denied by {by}: {reason}"),
                "last_at": to_ms(now),
                "done_at": to_ms(now),
            },
            remove=(*_OF_THE_HOLD, "due_bucket", "due_at"),
        )
        run = self._change(hold, change, ours=change.set)
        return Decision(
            ApprovalOutcome.DENIED if run else ApprovalOutcome.MOVED_ON,
            run or self._now_there(hold),
        )

    # -- the run

    def _let_go(self, hold: ApprovalRequest, by: str, reason: str) -> Decision:
        run, now = hold.run, self._clock.now()
        # The id tells it from another person's in the same millisecond.
        entry = {
            "id": self._randomness.token(),
            "by": cut(by),
            "reason": cut(reason),
            "at": to_ms(now),
            "fingerprint": hold.fingerprint,
            **_before(run, hold),
        }
        change = Change(
            set={
                "status": str(Status.PENDING),
                "generation": run.generation + 1,
                "approvals": {**run.approvals, hold.subject: entry},
                "resumed_at": to_ms(now),
                "last_at": to_ms(now),
                "due_bucket": due_bucket(_key(run)),
                "due_at": to_ms(overdue_at(now)),
            },
            remove=_OF_THE_HOLD,
        )
        # A worker may have claimed it by the time an earlier try of ours is recognised.
        changed = self._change(hold, change, ours={"approvals": change.set["approvals"]})
        if changed is None:
            return Decision(ApprovalOutcome.MOVED_ON, self._now_there(hold))
        sent = self._send(changed)
        return Decision(ApprovalOutcome.APPROVED if sent else ApprovalOutcome.UNSENT, changed)

    def _change(
        self, hold: ApprovalRequest, change: Change, *, ours: Mapping[str, Any]
    ) -> Run | None:
        """Changes the run, None if it is not held for this any more.

        `ours` tells an earlier try of this call, whose answer was lost.
        """
        try:
            # A run that is held again was claimed again, under another lease.
            return run_from(self._table.update(_key(hold.run), change, when=as_seen(hold.run)))
        except ConditionFailed as error:
            if error.old is None or not carries(error.old, ours):
                return None
            return run_from(error.old)

    def _send(self, run: Run) -> bool:
        spec = self._manifest.handlers.get(run.handler)
        if spec is not None:
            with suppress(Unavailable):
                self._lanes.send([(spec.lane, message_groups.reference_of(self._table, spec, run))])
                return True
        # Without a message it is parked and due: the reconciler's next pass sends it.
        now = to_ms(self._clock.now())
        parked = Change(set={"parked": True, "next_attempt_at": now, "due_at": now})
        with suppress(Unavailable, ConditionFailed):
            self._table.update(_key(run), parked, when=as_seen(run))
        return False

    def _now_there(self, hold: ApprovalRequest) -> Run | None:
        row = self._table.get(_key(hold.run))
        return None if row is None else run_from(row)

    def _expired(self, hold: ApprovalRequest) -> bool:
        end = hold.run.expires_at
        return end is not None and event_end(end) <= self._clock.now()

    def _audit(self, action: str, hold: ApprovalRequest, by: str, reason: str) -> None:
        run = hold.run
        about = {"subject": hold.subject, "fingerprint": hold.fingerprint}
        audit.record(
            self._table,
            self._randomness,
            action=action,
            by=by,
            reason=reason,
            request={"source": run.source, "handler": run.handler, **about},
            event_ids=(run.event_id,),
            now=self._clock.now(),
        )


# What a decision takes away. Without its lease id no worker that was lost can settle the run.
_OF_THE_HOLD: Final = (
    "held",
    "lease_id",
    "claimed_until",
    "next_attempt_at",
    "parked",
    "resends",
    "waits_for",
)


def _before(run: Run, hold: ApprovalRequest) -> dict[str, Any]:
    """Returns what was approved of under the same subject: a handler may ask twice."""
    word = run.approvals.get(hold.subject)
    if word is None:
        return {}
    known = (*word.get("before", ()), word.get("fingerprint", ""))
    return {"before": list(dict.fromkeys(known))[-REMEMBERED:]}


def _key(run: Run) -> Key:
    return run_key(run.source, run.event_id, run.handler)
