"""Decides whether an effect may start: by its row, its policy and a person's approval."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from webhook_inbox.domain.errors import (
    Deferred,
    Held,
    InboxError,
    Permanent,
    Superseded,
    Transient,
    Unavailable,
)
from webhook_inbox.domain.internal_errors import ApprovalRequired
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Clock
from webhook_inbox.handlers.effects.journal import EffectJournal, EffectState, Entry
from webhook_inbox.handlers.effects.plan import Approval, InDoubt, Plan
from webhook_inbox.handlers.effects.started import StartedEffect
from webhook_inbox.ledger.lease import CLOCK_SKEW

# Returns why an effect may not start before its people approved it, None once they have.
ApprovalCheck = Callable[[Plan, Approval], InboxError | None]


class EffectStarter:
    """Starts the effects of one attempt.

    Attributes:
        question: the last error raised because of an approval, or None.
    """

    def __init__(
        self,
        journal: EffectJournal,
        run: Run,
        *,
        clock: Clock,
        end: datetime,
        check_approval: ApprovalCheck | None = None,
    ) -> None:
        self._journal = journal
        self._run = run
        self._clock = clock
        self._end = end
        self._check_approval = check_approval
        self.question: InboxError | None = None

    def begin(self, asked: Plan) -> StartedEffect:
        """Starts an effect, unless it is committed or in doubt.

        Raises:
            Held: a person must decide.
            Skipped: a person has denied it.
            Permanent: the request for its approval has expired.
            Deferred: another event's run performs it now.
            Superseded: a later attempt of this run has started it.
            Transient: too little time is left.
            Unavailable: the ledger failed.
        """
        now = self._clock.now()
        if isinstance(asked.approve, Approval):
            self._require_people(asked, asked.approve, now)
        elif asked.approve and not self._approved(asked, asked.arguments):
            old = self._journal.find(asked, now)
            self._require_approval(asked, old)
        if self._end - now < asked.needs:
            return self._without_time(asked, now)
        old = self._start(asked, now)
        return StartedEffect(asked, started=True) if old is None else self._found(asked, old, now)

    def _without_time(self, asked: Plan, now: datetime) -> StartedEffect:
        """Returns a committed effect; any other needs more time than is left."""
        old = self._journal.find(asked, now)
        if old is None or old.state is not EffectState.COMMITTED:
            raise self._too_late(asked, now)
        return self._committed(asked, old)

    def _start(self, asked: Plan, now: datetime) -> Entry | None:
        try:
            return self._journal.start(asked, now)
        except Unavailable:
            # The start may be written although nothing was done: mark it failed, not in doubt.
            with suppress(Unavailable):
                self._journal.fail(asked, "the ledger did not answer; nothing was done", now)
            raise

    def _found(self, asked: Plan, old: Entry, now: datetime) -> StartedEffect:
        """Decides about an effect that has a row."""
        if old.state is EffectState.COMMITTED:
            return self._committed(asked, old)
        if self._journal.is_overtaken(old):
            raise Superseded(f"effect {asked.name!r} was started by a later attempt")
        if old.state is EffectState.FAILED:
            return self._again(asked, old, now, doubtful=False)
        if not self._journal.is_ours(old) and old.busy_until + CLOCK_SKEW > now:
            by = f"{old.row['source']} {old.row['event_id']}"
            raise Deferred(
                old.busy_until + CLOCK_SKEW, f"effect {asked.name!r} is being done for {by}"
            )
        self._journal.prolong(asked, old)
        self._require_same(asked, old)
        return StartedEffect(asked, doubt=old)

    def _committed(self, asked: Plan, old: Entry) -> StartedEffect:
        self._require_same(asked, old)
        self._journal.prolong(asked, old)
        # An approval of other arguments has shown the person that it is committed.
        informed = _differs(asked, old) or self._approved(asked, _lack(old))
        if old.unrecorded and not informed:
            raise self.held(asked, unrecorded(asked, old.unrecorded), _lack(old))
        return StartedEffect(asked, result=old.row["result"])

    def _require_same(self, asked: Plan, old: Entry) -> None:
        """Holds a run that requests the same effect with other arguments."""
        if _differs(asked, old) and not self._approved(asked, _doubt(asked, old)):
            then = (
                "if approved, the run continues with that result, and nothing is repeated"
                if old.state is EffectState.COMMITTED
                else "if approved, it runs with the new arguments"
            )
            why = f"effect {asked.name!r} was {old.state} with other arguments; {then}"
            raise self.held(asked, why, _doubt(asked, old))

    def _require_time(self, asked: Plan, now: datetime) -> None:
        if self._end - now < asked.needs:
            raise self._too_late(asked, now)

    def _too_late(self, asked: Plan, now: datetime) -> Transient:
        left = max((self._end - now).total_seconds(), 0)
        needed = asked.needs.total_seconds()
        return Transient(f"effect {asked.name!r} needs {needed:g} s, and {left:.1f} s are left")

    # -- in doubt

    def begin_again(self, begun: StartedEffect, *, probed: bool) -> None:
        """Starts an effect in doubt again, if its policy permits.

        Args:
            begun: the effect in doubt.
            probed: whether a probe found that it did not happen.

        Raises:
            Held: a person must decide.
            Transient: too little time is left, or another worker started it.
            Unavailable: the ledger failed.
        """
        asked, old, now = begun.plan, begun.doubt, self._clock.now()
        if old is None:
            return
        begun.doubt = None
        # A decision ends the doubt: the new start is judged like a first one.
        decided = probed or self._approved(asked, _doubt(asked, old))
        if not decided:
            self._require_certainty(asked, old)
        self._require_time(asked, now)
        repeated = self._again(asked, old, now, doubtful=not decided)
        begun.result, begun.doubted = repeated.result, repeated.doubted
        begun.started = repeated.started

    def _require_certainty(self, asked: Plan, old: Entry) -> None:
        """Holds a run whose effect may not be repeated without a decision."""
        # A key prevents a second execution only if the start in doubt was repeatable too: it may
        # have been made without the key.
        safe = old.in_doubt is InDoubt.RETRY or not asked.keyed
        repeatable = safe and asked.in_doubt is InDoubt.RETRY
        # The call is made by the end of the attempt, and its key must be known then.
        ends = old.doubtful_since + min(asked.key_lifetime, old.key_lifetime)
        if repeatable and self._end < ends:
            return
        why = (
            "its downstream no longer knows the key"
            if repeatable
            else "it is unknown whether it happened"
        )
        text = f"effect {asked.name!r} started and did not commit, and {why}"
        raise self.held(asked, text, _doubt(asked, old), doubtful=True)

    def _again(self, asked: Plan, old: Entry, now: datetime, *, doubtful: bool) -> StartedEffect:
        met = self._journal.start_again(asked, old, now, doubtful=doubtful)
        if met is None:
            return StartedEffect(asked, started=True, doubted=doubtful)
        if met.row.get("status") == EffectState.COMMITTED:
            return self._committed(asked, met)
        raise Transient(f"effect {asked.name!r} was started by another worker just now")

    # -- approvals

    def _approved(self, asked: Plan, fingerprint: str) -> bool:
        entry = self._run.approvals.get(asked.subject)
        return entry is not None and entry.get("fingerprint", "") == fingerprint

    def _require_approval(self, asked: Plan, old: Entry | None) -> None:
        """Holds a run for approval, unless the same effect started before with one.

        An earlier version of the handler may have started it without approval. An effect that
        started with other arguments is asked about as a doubt, whose approval covers it.
        """
        if old is not None:
            same = old.row.get("arguments", "") == asked.arguments
            asked_then = asked.subject in self._run.approvals or not self._journal.is_ours(old)
            if (same and asked_then) or old.state is EffectState.COMMITTED:
                return
            if old.state is EffectState.STARTED and _differs(asked, old):
                return
        raise self.held(asked, f"effect {asked.name!r} waits for approval", asked.arguments)

    def _require_people(self, asked: Plan, approval: Approval, now: datetime) -> None:
        """Refuses an effect that not enough people approved with exactly these arguments.

        A committed one happened: its result is returned whatever is asked now. An effect in doubt
        may happen once more, so its approval is required as well.
        """
        old = self._journal.find(asked, now)
        if old is not None and old.state is EffectState.COMMITTED:
            return
        if self._check_approval is None:
            raise Permanent("this processor asks no people: it has no groups of approvers")
        refusal = self._check_approval(asked, approval)
        if refusal is not None:
            self.question = refusal
            raise refusal

    def held(self, asked: Plan, why: str, fingerprint: str, *, doubtful: bool = False) -> Held:
        """Returns the `Held` to raise and keeps it as the open question."""
        held = ApprovalRequired(
            why,
            subject=asked.subject,
            shows=asked.shows,
            fingerprint=fingerprint,
            doubtful=doubtful,
        )
        self.question = held
        return held


def unrecorded(asked: Plan, why: str) -> str:
    """Returns the text for a result that cannot be recorded."""
    remedy = "enter the result, and return one that can be recorded"
    return f"effect {asked.name!r} happened, and {why}: {remedy}"


def _differs(asked: Plan, old: Entry) -> bool:
    """Returns whether both have arguments that differ."""
    before: str = old.row.get("arguments", "")
    return bool(asked.arguments and before) and asked.arguments != before


def _doubt(asked: Plan, old: Entry) -> str:
    """Returns the fingerprint of a doubt; other arguments make another doubt."""
    doubt = f"doubt:{old.row.get('lease_id', '')}"
    return f"{doubt}:{asked.arguments}" if _differs(asked, old) else doubt


def _lack(committed: Entry) -> str:
    """Returns the fingerprint of a commit without a recorded result."""
    return f"doubt:{committed.row.get('committed_by', '')}"
