"""Implements `ctx.effect`: an effect happens once; a person decides an effect in doubt."""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime
from inspect import isawaitable, iscoroutine
from typing import Any, Final, Unpack

from webhook_inbox.domain.error_text import describe, text_of
from webhook_inbox.domain.errors import Held, Permanent, Unavailable
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Clock
from webhook_inbox.handlers.effects.begin import (
    ApprovalCheck,
    EffectStarter,
    unrecorded,
)
from webhook_inbox.handlers.effects.journal import EffectJournal, Entry, Unstorable, decode, encode
from webhook_inbox.handlers.effects.plan import EffectOptions, Plan, plan, require_plain, takes_key
from webhook_inbox.handlers.effects.started import StartedEffect

AsyncFunction = Callable[..., Coroutine[Any, Any, Any]]
Adapter = Callable[[Callable[..., Any]], AsyncFunction]

# Python's text for a StopIteration that leaves a coroutine.
_STOPPED: Final = "coroutine raised StopIteration"
# The outcomes of an effect in an attempt.
COMMITTED: Final = "committed"
RECORDED: Final = "recorded"
FAILED: Final = "failed"
IN_DOUBT: Final = "in doubt"
# Each asyncio task and each thread with a copy of the context has an effect of its own.
_running: ContextVar[StartedEffect | None] = ContextVar("running", default=None)


class Effects:
    """The effects of one attempt.

    Args:
        journal: the effects' rows.
        run: the run as leased.
        clock: the time.
        end: when the attempt ends.
        redact: removes secrets from recorded texts (G10).
        hide: removes personal values from recorded errors; a result is what the handler gets again.
        outcomes: receives the outcome of each effect by name, see `queue.outcomes.Observed`.
        check_approval: asks the people of a group; None refuses effects that need them.
    """

    def __init__(
        self,
        journal: EffectJournal,
        run: Run,
        *,
        clock: Clock,
        end: datetime,
        redact: Callable[[str], str] = str,
        hide: Callable[[str], str] = str,
        outcomes: dict[str, str] | None = None,
        check_approval: ApprovalCheck | None = None,
    ) -> None:
        self._journal = journal
        self._run = run
        self._clock = clock
        self._redact = redact
        self._hide = hide
        self._outcomes = {} if outcomes is None else outcomes
        self._names: set[str] = set()
        self._stopped: Held | None = None
        self._beginnings = EffectStarter(
            journal, run, clock=clock, end=end, check_approval=check_approval
        )

    def effect(
        self,
        name: str,
        fn: Callable[..., Any],
        **options: Unpack[EffectOptions],
    ) -> Any:
        """See `Context.effect`."""
        require_plain(name, fn, options.get("probe"))
        return run_without_loop(self._perform(name, fn, as_coroutine_function, options))

    async def aeffect(
        self,
        name: str,
        fn: Callable[..., Awaitable[Any]],
        **options: Unpack[EffectOptions],
    ) -> Any:
        """See `Context.aeffect`."""
        return await self._perform(name, fn, wrap_async, options)

    async def _perform(
        self, name: str, fn: Callable[..., Any], adapt: Adapter, options: EffectOptions
    ) -> Any:
        """Performs an effect; suspends only where `fn` or the probe do."""
        asked = plan(name, self._run, takes_key=takes_key(fn), **options)
        self.reserve(name)
        begun = self._beginnings.begin(asked)
        self._outcomes[name] = IN_DOUBT if begun.result is None else RECORDED
        token = _running.set(begun)
        try:
            if begun.doubt is not None:
                found = await adapt(asked.probe)(asked.key) if asked.probe else None
                self._resolve(begun, found, probed=asked.probe is not None)
            if begun.result is None:
                returned = await (adapt(fn)(asked.key) if asked.keyed else adapt(fn)())
                begun.result = self._commit(begun, returned)
                self._outcomes[name] = COMMITTED
        except BaseException as error:
            self._fail(begun, error)
            raise
        finally:
            _running.reset(token)
        return decode(begun.result)

    @property
    def running(self) -> StartedEffect | None:
        """The effect within which the caller runs, None outside of any."""
        return _running.get()

    def stop(self, held: Held) -> None:
        """Blocks further effects in this attempt and holds the run at its end.

        Raises:
            Held: the given error.
        """
        self._stopped = self._beginnings.question = held
        raise held

    def redact(self, text: str) -> str:
        """Removes known secrets from a text that will be recorded (G10)."""
        return self._redact(text)

    def require_answers(self) -> None:
        """Holds or ends the run if its handler caught the error of a missing approval.

        Raises:
            Held: the one that an effect raised.
            Skipped: a person has denied the effect.
            Permanent: the request has expired.
        """
        if self._beginnings.question is not None:
            raise self._beginnings.question

    def reserve(self, name: str) -> None:
        """Reserves a name for this attempt.

        Raises:
            Permanent: the name is in use, or an effect is running.
            Held: a person must decide before any effect begins.
        """
        if self._stopped is not None:
            raise self._stopped
        if self.running is not None:
            raise Permanent(f"effect {name!r} is inside another effect; run one after the other")
        if name in self._names:
            raise Permanent(
                f"effect {name!r} is named twice in one run; name each, like {name + ':1'!r}"
            )
        self._names.add(name)

    # -- once it has happened, or not

    def _resolve(self, begun: StartedEffect, found: Any, *, probed: bool) -> None:
        """Resolves a doubt with the probe's result, or starts the effect again."""
        if found is None:
            self._beginnings.begin_again(begun, probed=probed)
            return
        begun.doubt = None
        begun.result = self._commit(begun, found, found_by="probe")
        self._outcomes[begun.plan.name] = COMMITTED

    def _commit(self, begun: StartedEffect, result: Any, **more: Any) -> bytes:
        """Records a result and returns the result of the first commit."""
        asked, now = begun.plan, self._clock.now()
        try:
            stored = encode(result, redact=self._redact)
        except Unstorable as error:
            begun.result = encode(None)
            why = self._hide(self._redact(text_of(error)))
            earlier = self._write(asked, begun.result, now, unrecorded=why, **more)
            if earlier is not None and not earlier.unrecorded:
                return _result(earlier)
            lack = f"doubt:{self._run.lease_id}"
            raise self._beginnings.held(asked, unrecorded(asked, why), lack) from error
        earlier = self._write(asked, stored, now, **more)
        return stored if earlier is None else _result(earlier)

    def _write(self, asked: Plan, stored: bytes, now: datetime, **more: Any) -> Entry | None:
        try:
            return self._journal.commit(asked, stored, now, **more)
        except Unavailable:
            # Only this worker knows that it happened: retry once before it is in doubt.
            return self._journal.commit(asked, stored, now, **more)

    def _fail(self, begun: StartedEffect, error: BaseException) -> None:
        """Records that an effect did not happen if that is certain; else it stays in doubt."""
        # A worker that is killed records nothing.
        if not (begun.started and begun.result is None and isinstance(error, Exception)):
            return
        why = self._hide(self._redact(describe(error)))
        with suppress(Unavailable):  # The effect then stays in doubt, which is safe.
            if begun.is_denied_by(error):
                self._journal.fail(begun.plan, why, self._clock.now())
                self._outcomes[begun.plan.name] = FAILED
            else:
                self._journal.doubt(begun.plan, why)


def _result(committed: Entry) -> bytes:
    first: bytes = committed.row["result"]
    return first


def as_coroutine_function(function: Callable[..., Any]) -> AsyncFunction:
    """Returns a plain function as a coroutine function that never suspends."""

    async def call(*args: Any) -> Any:
        returned = function(*args)
        if iscoroutine(returned):
            returned.close()
            raise Permanent(
                "it returned a coroutine, which nothing awaits: use aeffect, or await_for"
            )
        return returned

    return call


def wrap_async(function: Callable[..., Any]) -> AsyncFunction:
    """Returns a function, plain or not, as a coroutine function."""

    async def call(*args: Any) -> Any:
        returned = function(*args)
        return await returned if isawaitable(returned) else returned

    return call


def run_without_loop(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine that never suspends, without an event loop, and returns its result."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    except RuntimeError as error:
        # A coroutine cannot raise StopIteration (PEP 479), but the plain function may have.
        if isinstance(error.__cause__, StopIteration) and str(error) == _STOPPED:
            raise error.__cause__ from None
        raise
    raise RuntimeError("the coroutine suspended")
