"""What `ctx.effect` does: an effect happens once, and a person is asked where nobody knows."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from inspect import isawaitable, iscoroutine
from typing import Any, Final

from webhook_inbox.domain.errors import Deferred, Held, Permanent, Skipped, Transient, Unavailable
from webhook_inbox.domain.idempotency import IdempotencyKey
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Clock
from webhook_inbox.handlers.effects.begin import EffectStarter, StartedEffect, unrecorded
from webhook_inbox.handlers.effects.journal import EffectJournal, Entry
from webhook_inbox.handlers.effects.plan import Plan, plan, require_plain, takes_key
from webhook_inbox.handlers.effects.results import Unstorable, decode, encode

DAY: Final = "24h"
# What a start needs: the call, and its record.
NEEDS: Final = 2.0

# The effect that is being run, None outside of any.
_running: ContextVar[StartedEffect | None] = ContextVar("running", default=None)


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
        journal: EffectJournal,
        run: Run,
        *,
        clock: Clock,
        end: datetime,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._journal = journal
        self._run = run
        self._clock = clock
        self._redact = redact
        self._names: set[str] = set()
        self._stopped: Held | None = None
        self._beginnings = EffectStarter(journal, run, clock=clock, end=end)

    def effect(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        key: str | None = None,
        args: Any = None,
        probe: Callable[[IdempotencyKey], Any] | None = None,
        in_doubt: str | None = None,
        key_lifetime: str | timedelta = DAY,
        approve: bool = False,
        needs: float = NEEDS,
    ) -> Any:
        """See `Context.effect`."""
        require_plain(name, fn, probe)
        asked = self._plan(name, fn, key, args, in_doubt, key_lifetime, approve, needs)
        begun = self._beginnings.begin(asked)
        token = _running.set(begun)
        try:
            if begun.doubt is not None:
                found = _plain(probe(asked.key)) if probe else None
                self._resolve(begun, found, probed=probe is not None)
            if begun.result is None:
                begun.result = self._commit(begun, _plain(_called(fn, asked.key)))
        except BaseException as error:
            self._fail(begun, error)
            raise
        finally:
            _running.reset(token)
        return decode(begun.result)

    async def aeffect(
        self,
        name: str,
        fn: Callable[..., Awaitable[Any]],
        *,
        key: str | None = None,
        args: Any = None,
        probe: Callable[[IdempotencyKey], Awaitable[Any]] | None = None,
        in_doubt: str | None = None,
        key_lifetime: str | timedelta = DAY,
        approve: bool = False,
        needs: float = NEEDS,
    ) -> Any:
        """See `Context.aeffect`."""
        asked = self._plan(name, fn, key, args, in_doubt, key_lifetime, approve, needs)
        begun = self._beginnings.begin(asked)
        token = _running.set(begun)
        try:
            if begun.doubt is not None:
                found = await _awaited(probe(asked.key)) if probe else None
                self._resolve(begun, found, probed=probe is not None)
            if begun.result is None:
                begun.result = self._commit(begun, await _awaited(_called(fn, asked.key)))
        except BaseException as error:
            self._fail(begun, error)
            raise
        finally:
            _running.reset(token)
        return decode(begun.result)

    @staticmethod
    def current_key() -> str:
        """Returns the key of the effect that is being run, "" outside of any."""
        begun = _running.get()
        return "" if begun is None else begun.plan.key

    @staticmethod
    def calling(what: str) -> None:
        """Notes the call that is about to be made under the key of the effect that is being run.

        Raises:
            Permanent: another one was made under it, which a downstream could not tell from this.
        """
        begun = _running.get()
        if begun is None:
            return
        if begun.call and begun.call != what:
            raise Permanent(
                f"effect {begun.plan.name!r} makes a second call under its key: give each call an"
                " effect of its own, or effect=None where it changes nothing"
            )
        begun.call = what

    @staticmethod
    def called() -> None:
        """Notes that this call succeeded: whatever follows, something was done."""
        begun = _running.get()
        if begun is not None:
            begun.acted = True

    def stop(self, held: Held) -> None:
        """Lets nothing begin any more in this attempt, and the run be held at its end.

        Raises:
            Held: this.
        """
        self._stopped = self._beginnings.question = held
        raise held

    def redact(self, text: str) -> str:
        """Returns a text as it may be recorded, without any secret that is known (G10)."""
        return self._redact(text)

    def require_answers(self) -> None:
        """Holds a run whose handler has returned, though a person is asked about an effect.

        It has caught everything: finished, it would ask nobody, and leave a doubt behind.

        Raises:
            Held: as an effect did.
        """
        if self._beginnings.question is not None:
            raise self._beginnings.question

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
            Held: a person has to decide before anything begins.
        """
        if self._stopped is not None:
            raise self._stopped
        if _running.get() is not None:
            raise Permanent(f"effect {name!r} is inside of another effect; make them one after one")
        if name in self._names:
            raise Permanent(
                f"effect {name!r} is named twice in one run; name each, like {name + ':1'!r}"
            )
        self._names.add(name)

    # -- once it has happened, or not

    def _resolve(self, begun: StartedEffect, found: Any, *, probed: bool) -> None:
        """Ends a doubt by what a probe has found, or lets the effect begin anew."""
        if found is None:
            self._beginnings.begin_again(begun, probed=probed)
            return
        begun.doubt = None
        begun.result = self._commit(begun, found, found_by="probe")

    def _commit(self, begun: StartedEffect, result: Any, **more: Any) -> bytes:
        """Records a result, and returns that of the first commit."""
        asked, now = begun.plan, self._clock.now()
        try:
            stored = encode(result, redact=self._redact)
        except Unstorable as error:
            begun.result = encode(None)
            earlier = self._write(asked, begun.result, now, unrecorded=str(error), **more)
            if earlier is not None and not earlier.unrecorded:
                return _result(earlier)
            lack = f"doubt:{self._run.lease_id}"
            raise self._beginnings.held(asked, unrecorded(asked, str(error)), lack) from error
        earlier = self._write(asked, stored, now, **more)
        return stored if earlier is None else _result(earlier)

    def _write(self, asked: Plan, stored: bytes, now: datetime, **more: Any) -> Entry | None:
        try:
            return self._journal.commit(asked, stored, now, **more)
        except Unavailable:
            # It happened, and only this worker knows: once more before it is in doubt.
            return self._journal.commit(asked, stored, now, **more)

    def _fail(self, begun: StartedEffect, error: BaseException) -> None:
        """Records that an effect certainly did not happen; anything else leaves it in doubt."""
        refused = isinstance(error, Deferred | Skipped | Held)
        refused = refused or (isinstance(error, Transient | Permanent) and error.refused)
        # A refusal says nothing of an earlier call under the same key; an answer does. But of a
        # call that was answered with a success only its handler can say that nothing was done.
        answered = isinstance(error, Permanent) and not begun.acted
        certain = not begun.doubted if refused else answered
        if begun.started and begun.result is None and certain:
            with suppress(Unavailable):  # In doubt, then: the cautious side.
                self._journal.fail(begun.plan, self._redact(str(error)), self._clock.now())


def _result(committed: Entry) -> bytes:
    first: bytes = committed.row["result"]
    return first


def _called(fn: Callable[..., Any], key: IdempotencyKey) -> Any:
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
