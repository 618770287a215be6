"""What `ctx.effect` does: an effect happens once, and a person is asked where nobody knows."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from inspect import isawaitable, iscoroutine
from typing import Any, Final

from webhook_inbox.claim import CLOCK_SKEW
from webhook_inbox.effects.journal import Entry, Journal, State
from webhook_inbox.effects.plan import InDoubt, Key, Plan, plan, require_plain, takes_key
from webhook_inbox.effects.results import Unstorable, decode, encode
from webhook_inbox.errors import (
    Deferred,
    Held,
    Permanent,
    Skipped,
    Superseded,
    Transient,
    Unavailable,
)
from webhook_inbox.model import Run
from webhook_inbox.ports import Clock

DAY: Final = "24h"
# What a start needs: the call, and its record.
NEEDS: Final = 2.0

# The key of the effect that is being run, "" outside of any.
_running: ContextVar[str] = ContextVar("running", default="")


@dataclass(slots=True)
class Turn:
    """An effect that was begun.

    Attributes:
        plan: the effect.
        result: its result as it is stored, once it is known.
        doubt: the row of an earlier start of which nobody knows what came of it.
        started: whether this attempt has started it.
        doubted: whether an earlier start is still in doubt beside this one.
    """

    plan: Plan
    result: bytes | None = None
    doubt: Entry | None = None
    started: bool = False
    doubted: bool = False


class Effects:
    """The effects of one attempt.

    Args:
        journal: where they are written.
        run: as it was claimed.
        clock: the time.
        end: when the attempt is ended.
        redact: takes the secrets out of what is recorded (G10).
    """

    def __init__(
        self,
        journal: Journal,
        run: Run,
        *,
        clock: Clock,
        end: datetime,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._journal = journal
        self._run = run
        self._clock = clock
        self._end = end
        self._redact = redact
        self._names: set[str] = set()
        self._asked: Held | None = None

    def effect(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        key: str | None = None,
        args: Any = None,
        probe: Callable[[Key], Any] | None = None,
        in_doubt: str | None = None,
        key_lifetime: str | timedelta = DAY,
        approve: bool = False,
        needs: float = NEEDS,
    ) -> Any:
        """See `Context.effect`."""
        require_plain(name, fn, probe)
        asked = self._plan(name, fn, key, args, in_doubt, key_lifetime, approve, needs)
        turn = self._begin(asked)
        token = _running.set(asked.key)
        try:
            if turn.doubt is not None:
                found = _plain(probe(asked.key)) if probe else None
                self._resolve(turn, found, probed=probe is not None)
            if turn.result is None:
                turn.result = self._commit(turn, _plain(_called(fn, asked.key)))
        except BaseException as error:
            self._fail(turn, error)
            raise
        finally:
            _running.reset(token)
        return decode(turn.result)

    async def aeffect(
        self,
        name: str,
        fn: Callable[..., Awaitable[Any]],
        *,
        key: str | None = None,
        args: Any = None,
        probe: Callable[[Key], Awaitable[Any]] | None = None,
        in_doubt: str | None = None,
        key_lifetime: str | timedelta = DAY,
        approve: bool = False,
        needs: float = NEEDS,
    ) -> Any:
        """See `Context.aeffect`."""
        asked = self._plan(name, fn, key, args, in_doubt, key_lifetime, approve, needs)
        turn = self._begin(asked)
        token = _running.set(asked.key)
        try:
            if turn.doubt is not None:
                found = await _awaited(probe(asked.key)) if probe else None
                self._resolve(turn, found, probed=probe is not None)
            if turn.result is None:
                turn.result = self._commit(turn, await _awaited(_called(fn, asked.key)))
        except BaseException as error:
            self._fail(turn, error)
            raise
        finally:
            _running.reset(token)
        return decode(turn.result)

    @staticmethod
    def current_key() -> str:
        """Returns the key of the effect that is being run, "" outside of any."""
        return _running.get()

    def redact(self, text: str) -> str:
        """Returns a text as it may be recorded, without any secret that is known (G10)."""
        return self._redact(text)

    def require_answers(self) -> None:
        """Holds a run whose handler has returned, though a person is asked about an effect.

        It has caught everything: finished, it would ask nobody, and leave a doubt behind.

        Raises:
            Held: as an effect did.
        """
        if self._asked is not None:
            raise self._asked

    # -- before it happens

    def _plan(
        self,
        name: str,
        fn: Callable[..., Any],
        key: str | None,
        args: Any,
        in_doubt: str | None,
        key_lifetime: str | timedelta,
        approve: bool,  # noqa: FBT001 - see Context.effect
        needs: float,
    ) -> Plan:
        run = self._run
        asked = plan(
            name,
            (run.handler, run.source, run.event_id),
            key=key,
            args=args,
            in_doubt=in_doubt,
            key_lifetime=key_lifetime,
            approve=approve,
            needs=needs,
            takes_key=takes_key(fn),
        )
        self.reserve(name)
        return asked

    def reserve(self, name: str) -> None:
        """Takes a name for this attempt.

        Raises:
            Permanent: it is taken, or this is inside of an effect.
        """
        if _running.get():
            raise Permanent(f"effect {name!r} is inside of another effect; make them one after one")
        if name in self._names:
            raise Permanent(
                f"effect {name!r} is named twice in one run; name each, like {name + ':1'!r}"
            )
        self._names.add(name)

    def _begin(self, asked: Plan) -> Turn:
        now = self._clock.now()
        if asked.approve and not self._approved(asked, asked.arguments):
            old = self._journal.find(asked, now)
            self._require_approval(asked, old)
        self._require_time(asked, now)
        old = self._start(asked, now)
        return Turn(asked, started=True) if old is None else self._found(asked, old, now)

    def _start(self, asked: Plan, now: datetime) -> Entry | None:
        try:
            return self._journal.start(asked, now)
        except Unavailable:
            # It may be written, and nothing was done: without a word it would be in doubt.
            with suppress(Unavailable):
                self._journal.fail(asked, "the ledger did not answer; nothing was done", now)
            raise

    def _found(self, asked: Plan, old: Entry, now: datetime) -> Turn:
        """Decides about an effect of which there is a row."""
        if old.state is State.COMMITTED:
            return self._committed(asked, old)
        if self._journal.is_overtaken(old):
            raise Superseded(f"effect {asked.name!r} was started by a later attempt")
        if old.state is State.FAILED:
            return self._again(asked, old, now, doubtful=False)
        if not self._journal.is_ours(old) and old.busy_until + CLOCK_SKEW > now:
            by = f"{old.row['source']} {old.row['event_id']}"
            raise Deferred(
                old.busy_until + CLOCK_SKEW, f"effect {asked.name!r} is being done for {by}"
            )
        self._require_same(asked, old)
        return Turn(asked, doubt=old)

    def _committed(self, asked: Plan, old: Entry) -> Turn:
        self._require_same(asked, old)
        self._journal.prolong(asked, old)
        # Who approved of other arguments has seen that it is committed.
        told = _differs(asked, old) or self._approved(asked, _lack(old))
        if old.unrecorded and not told:
            raise self._held(asked, _unrecorded(asked, old.unrecorded), _lack(old))
        return Turn(asked, result=old.row["result"])

    def _require_same(self, asked: Plan, old: Entry) -> None:
        """Holds a run that asks for the same effect with other arguments."""
        if _differs(asked, old) and not self._approved(asked, _doubt(asked, old)):
            why = f"effect {asked.name!r} was {old.state} with other arguments"
            raise self._held(asked, why, _doubt(asked, old))

    def _require_time(self, asked: Plan, now: datetime) -> None:
        left = self._end - now
        if left < asked.needs:
            raise Transient(
                f"effect {asked.name!r} needs {asked.needs.total_seconds():g} s, and"
                f" {max(left.total_seconds(), 0):.1f} s are left"
            )

    # -- in doubt

    def _resolve(self, turn: Turn, found: Any, *, probed: bool) -> None:
        """Decides about an effect that started and did not commit."""
        asked, old, now = turn.plan, turn.doubt, self._clock.now()
        turn.doubt = None
        if old is None:
            return
        if found is not None:
            turn.result = self._commit(turn, found, found_by="probe")
            return
        if not probed and not self._approved(asked, _doubt(asked, old)):
            self._require_certainty(asked, old, now)
        self._require_time(asked, now)
        repeated = self._again(asked, old, now, doubtful=not probed)
        turn.result, turn.doubted = repeated.result, repeated.doubted
        turn.started = repeated.started

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
        raise self._held(asked, text, _doubt(asked, old))

    def _again(self, asked: Plan, old: Entry, now: datetime, *, doubtful: bool) -> Turn:
        met = self._journal.start_again(asked, old, now, doubtful=doubtful)
        if met is None:
            return Turn(asked, started=True, doubted=doubtful)
        if met.row.get("status") == State.COMMITTED:
            return self._committed(asked, met)
        raise Transient(f"effect {asked.name!r} was started by another worker just now")

    # -- a person's word

    def _approved(self, asked: Plan, fingerprint: str) -> bool:
        word = self._run.approvals.get(asked.subject)
        return word is not None and word.get("fingerprint", "") == fingerprint

    def _require_approval(self, asked: Plan, old: Entry | None) -> None:
        """Holds a run for a person, unless the same was begun before: it was approved then.

        What was started with other arguments is asked about by its doubt: who approves of that
        approves of them.
        """
        if old is not None:
            same = old.row.get("arguments", "") == asked.arguments
            if same or old.state is State.COMMITTED:
                return
            if old.state is State.STARTED and _differs(asked, old):
                return
        raise self._held(asked, f"effect {asked.name!r} waits for approval", asked.arguments)

    def _held(self, asked: Plan, why: str, fingerprint: str) -> Held:
        self._asked = Held(why, subject=asked.subject, shows=asked.shows, fingerprint=fingerprint)
        return self._asked

    # -- once it has happened, or not

    def _commit(self, turn: Turn, result: Any, **more: Any) -> bytes:
        """Records a result, and returns that of the first commit."""
        asked, now = turn.plan, self._clock.now()
        try:
            stored = encode(result, redact=self._redact)
        except Unstorable as error:
            turn.result = encode(None)
            self._write(asked, turn.result, now, unrecorded=str(error), **more)
            lack = f"doubt:{self._run.lease_id}"
            raise self._held(asked, _unrecorded(asked, str(error)), lack) from error
        earlier = self._write(asked, stored, now, **more)
        if earlier is None:
            return stored
        first: bytes = earlier.row["result"]
        return first

    def _write(self, asked: Plan, stored: bytes, now: datetime, **more: Any) -> Entry | None:
        try:
            return self._journal.commit(asked, stored, now, **more)
        except Unavailable:
            # It happened, and only this worker knows: once more before it is in doubt.
            return self._journal.commit(asked, stored, now, **more)

    def _fail(self, turn: Turn, error: BaseException) -> None:
        """Records that an effect certainly did not happen; anything else leaves it in doubt."""
        refused = isinstance(error, Deferred | Skipped | Held)
        refused = refused or (isinstance(error, Transient | Permanent) and error.refused)
        # A refusal says nothing of an earlier call under the same key; an answer does.
        certain = not turn.doubted if refused else isinstance(error, Permanent)
        if turn.started and turn.result is None and certain:
            with suppress(Unavailable):  # In doubt, then: the cautious side.
                self._journal.fail(turn.plan, self._redact(str(error)), self._clock.now())


def _called(fn: Callable[..., Any], key: Key) -> Any:
    return fn(key) if takes_key(fn) else fn()


def _plain(returned: Any) -> Any:
    """Returns what a plain function returned; a coroutine has not begun, and nobody awaits it."""
    if iscoroutine(returned):
        returned.close()
        text = "it returned a coroutine, and nothing was done: use aeffect, or await_for"
        raise Permanent(text, refused=True)
    return returned


async def _awaited(returned: Any) -> Any:
    """Returns what a coroutine returns; a plain function has done it all when it returns."""
    return await returned if isawaitable(returned) else returned


def _unrecorded(asked: Plan, why: str) -> str:
    return f"effect {asked.name!r} happened, and {why}: say what it was, and return less of it"


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
