"""What `ctx.effect` does: an effect happens once, and a person is asked where nobody knows."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from inspect import isawaitable, iscoroutine
from typing import Any, Final

from webhook_inbox.effects.beginnings import Beginnings, Begun, unrecorded
from webhook_inbox.effects.journal import Entry, Journal
from webhook_inbox.effects.plan import Key, Plan, plan, require_plain, takes_key
from webhook_inbox.effects.results import Unstorable, decode, encode
from webhook_inbox.errors import (
    Deferred,
    Held,
    Permanent,
    Skipped,
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
        self._redact = redact
        self._names: set[str] = set()
        self._beginnings = Beginnings(journal, run, clock=clock, end=end)

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
        begun = self._beginnings.begin(asked)
        token = _running.set(asked.key)
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
        probe: Callable[[Key], Awaitable[Any]] | None = None,
        in_doubt: str | None = None,
        key_lifetime: str | timedelta = DAY,
        approve: bool = False,
        needs: float = NEEDS,
    ) -> Any:
        """See `Context.aeffect`."""
        asked = self._plan(name, fn, key, args, in_doubt, key_lifetime, approve, needs)
        begun = self._beginnings.begin(asked)
        token = _running.set(asked.key)
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
        """
        if _running.get():
            raise Permanent(f"effect {name!r} is inside of another effect; make them one after one")
        if name in self._names:
            raise Permanent(
                f"effect {name!r} is named twice in one run; name each, like {name + ':1'!r}"
            )
        self._names.add(name)

    # -- once it has happened, or not

    def _resolve(self, begun: Begun, found: Any, *, probed: bool) -> None:
        """Ends a doubt by what a probe has found, or lets the effect begin anew."""
        if found is None:
            self._beginnings.begin_again(begun, probed=probed)
            return
        begun.doubt = None
        begun.result = self._commit(begun, found, found_by="probe")

    def _commit(self, begun: Begun, result: Any, **more: Any) -> bytes:
        """Records a result, and returns that of the first commit."""
        asked, now = begun.plan, self._clock.now()
        try:
            stored = encode(result, redact=self._redact)
        except Unstorable as error:
            begun.result = encode(None)
            self._write(asked, begun.result, now, unrecorded=str(error), **more)
            lack = f"doubt:{self._run.lease_id}"
            raise self._beginnings.held(asked, unrecorded(asked, str(error)), lack) from error
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

    def _fail(self, begun: Begun, error: BaseException) -> None:
        """Records that an effect certainly did not happen; anything else leaves it in doubt."""
        refused = isinstance(error, Deferred | Skipped | Held)
        refused = refused or (isinstance(error, Transient | Permanent) and error.refused)
        # A refusal says nothing of an earlier call under the same key; an answer does.
        certain = not begun.doubted if refused else isinstance(error, Permanent)
        if begun.started and begun.result is None and certain:
            with suppress(Unavailable):  # In doubt, then: the cautious side.
                self._journal.fail(begun.plan, self._redact(str(error)), self._clock.now())


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
