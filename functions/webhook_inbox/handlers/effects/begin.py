"""Whether an effect may begin, or begin again: by its row, its policy, and a person's word."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from webhook_inbox.domain.errors import Deferred, Held, Superseded, Transient, Unavailable
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Clock
from webhook_inbox.handlers.effects.journal import EffectJournal, EffectState, Entry
from webhook_inbox.handlers.effects.plan import InDoubt, Plan
from webhook_inbox.ledger.lease import CLOCK_SKEW


@dataclass(slots=True)
class StartedEffect:
    """An effect that was begun.

    Attributes:
        plan: the effect.
        result: its result as it is stored, once it is known.
        doubt: the row of an earlier start of which nobody knows what came of it.
        started: whether this attempt has started it.
        doubted: whether an earlier start is still in doubt beside this one.
        call: the call that was made within it under its key, "" for none.
        acted: whether that call succeeded.
    """

    plan: Plan
    result: bytes | None = None
    doubt: Entry | None = None
    started: bool = False
    doubted: bool = False
    call: str = ""
    acted: bool = False


class EffectStarter:
    """Begins the effects of one attempt.

    Attributes:
        question: what a person was asked last, None for nothing.
    """

    def __init__(self, journal: EffectJournal, run: Run, *, clock: Clock, end: datetime) -> None:
        self._journal = journal
        self._run = run
        self._clock = clock
        self._end = end
        self.question: Held | None = None

    def begin(self, asked: Plan) -> StartedEffect:
        """Starts an effect, unless it happened before or is in doubt.

        Raises:
            Held: a person has to decide.
            Deferred: another event's run is doing it.
            Superseded: a later attempt of this run has begun it.
            Transient: too little time is left.
            Unavailable: the ledger failed.
        """
        now = self._clock.now()
        if asked.approve and not self._approved(asked, asked.arguments):
            old = self._journal.find(asked, now)
            self._require_approval(asked, old)
        if self._end - now < asked.needs:
            return self._without_time(asked, now)
        old = self._start(asked, now)
        return StartedEffect(asked, started=True) if old is None else self._found(asked, old, now)

    def _without_time(self, asked: Plan, now: datetime) -> StartedEffect:
        """Returns what has happened, which needs no time; nothing else begins."""
        old = self._journal.find(asked, now)
        if old is None or old.state is not EffectState.COMMITTED:
            raise self._too_late(asked, now)
        return self._committed(asked, old)

    def _start(self, asked: Plan, now: datetime) -> Entry | None:
        try:
            return self._journal.start(asked, now)
        except Unavailable:
            # It may be written, and nothing was done: without a word it would be in doubt.
            with suppress(Unavailable):
                self._journal.fail(asked, "the ledger did not answer; nothing was done", now)
            raise

    def _found(self, asked: Plan, old: Entry, now: datetime) -> StartedEffect:
        """Decides about an effect of which there is a row."""
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
        self._require_same(asked, old)
        return StartedEffect(asked, doubt=old)

    def _committed(self, asked: Plan, old: Entry) -> StartedEffect:
        self._require_same(asked, old)
        self._journal.prolong(asked, old)
        # Who approved of other arguments has seen that it is committed.
        told = _differs(asked, old) or self._approved(asked, _lack(old))
        if old.unrecorded and not told:
            raise self.held(asked, unrecorded(asked, old.unrecorded), _lack(old))
        return StartedEffect(asked, result=old.row["result"])

    def _require_same(self, asked: Plan, old: Entry) -> None:
        """Holds a run that asks for the same effect with other arguments."""
        if _differs(asked, old) and not self._approved(asked, _doubt(asked, old)):
            then = (
                "approved, the run goes on with the result of those, and nothing is done again"
                if old.state is EffectState.COMMITTED
                else "approved, it is done with these"
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
        """Starts an effect that is in doubt anew, where that may be.

        Args:
            begun: with the doubt.
            probed: whether the downstream was asked, and does not know it.

        Raises:
            Held: a person has to decide.
            Transient: too little time is left, or another worker was faster.
            Unavailable: the ledger failed.
        """
        asked, old, now = begun.plan, begun.doubt, self._clock.now()
        if old is None:
            return
        begun.doubt = None
        if not probed and not self._approved(asked, _doubt(asked, old)):
            self._require_certainty(asked, old, now)
        self._require_time(asked, now)
        repeated = self._again(asked, old, now, doubtful=not probed)
        begun.result, begun.doubted = repeated.result, repeated.doubted
        begun.started = repeated.started

    def _require_certainty(self, asked: Plan, old: Entry, now: datetime) -> None:
        """Holds a run whose effect may not be repeated without a person."""
        ends = old.doubtful_since + asked.key_lifetime
        if asked.in_doubt is InDoubt.RETRY and now < ends:
            return
        why = (
            "its downstream does not know the key any more"
            if asked.in_doubt is InDoubt.RETRY
            else "nobody can tell whether it happened"
        )
        text = f"effect {asked.name!r} started and did not commit, and {why}"
        raise self.held(asked, text, _doubt(asked, old))

    def _again(self, asked: Plan, old: Entry, now: datetime, *, doubtful: bool) -> StartedEffect:
        met = self._journal.start_again(asked, old, now, doubtful=doubtful)
        if met is None:
            return StartedEffect(asked, started=True, doubted=doubtful)
        if met.row.get("status") == EffectState.COMMITTED:
            return self._committed(asked, met)
        raise Transient(f"effect {asked.name!r} was started by another worker just now")

    # -- a person's word

    def _approved(self, asked: Plan, fingerprint: str) -> bool:
        word = self._run.approvals.get(asked.subject)
        return word is not None and word.get("fingerprint", "") == fingerprint

    def _require_approval(self, asked: Plan, old: Entry | None) -> None:
        """Holds a run for a person, unless the same was begun before, and was approved then.

        It may have been begun by a version of its handler that asked nobody.

        What was started with other arguments is asked about by its doubt: who approves of that
        approves of them.
        """
        if old is not None:
            same = old.row.get("arguments", "") == asked.arguments
            asked_then = asked.subject in self._run.approvals or not self._journal.is_ours(old)
            if (same and asked_then) or old.state is EffectState.COMMITTED:
                return
            if old.state is EffectState.STARTED and _differs(asked, old):
                return
        raise self.held(asked, f"effect {asked.name!r} waits for approval", asked.arguments)

    def held(self, asked: Plan, why: str, fingerprint: str) -> Held:
        """Returns what asks a person, and remembers that one is asked."""
        self.question = Held(why, subject=asked.subject, shows=asked.shows, fingerprint=fingerprint)
        return self.question


def unrecorded(asked: Plan, why: str) -> str:
    """Returns what a person is told where a result cannot be recorded."""
    told = "say what it was, and return what can be recorded"
    return f"effect {asked.name!r} happened, and {why}: {told}"


def _differs(asked: Plan, old: Entry) -> bool:
    """Tells whether both name their arguments, and these are not the same."""
    before: str = old.row.get("arguments", "")
    return bool(asked.arguments and before) and asked.arguments != before


def _doubt(asked: Plan, old: Entry) -> str:
    """Returns what tells this doubt from any other of the same effect.

    Other arguments make another one: a person has seen them.
    """
    doubt = f"doubt:{old.row.get('lease_id', '')}"
    return f"{doubt}:{asked.arguments}" if _differs(asked, old) else doubt


def _lack(committed: Entry) -> str:
    """Returns what tells a result that is not recorded from any other of the same effect."""
    return f"doubt:{committed.row.get('committed_by', '')}"
