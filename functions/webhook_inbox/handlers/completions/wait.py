"""What `ctx.wait_for` does: a job is started once, and its run waits until it has ended."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from webhook_inbox.domain.errors import ConfigurationError, Deferred, Permanent, Transient
from webhook_inbox.domain.idempotency import IdempotencyKey
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Clock
from webhook_inbox.domain.secrets import SecretCache
from webhook_inbox.domain.timestamps import duration, from_ms
from webhook_inbox.handlers.completions.journal import CompletionWait, Waits, WaitState
from webhook_inbox.handlers.completions.results import Ending
from webhook_inbox.handlers.completions.resume import RECHECK
from webhook_inbox.handlers.completions.tokens import (
    CompletionToken,
    TokenIssuer,
    WaitAddress,
    hashed,
    silent,
    without,
)
from webhook_inbox.handlers.effects.effect import Effects
from webhook_inbox.handlers.effects.plan import check_name, require_plain
from webhook_inbox.handlers.effects.results import Unstorable

# Room for the number that later jobs of the same name get.
NAME_LIMIT: Final = 120
# An event lives for 35 days, and what waits is alarmed seven days before.
LONGEST: Final = timedelta(days=28)
EVERY: Final = "1m"
# Between a wait's beginning and its job's start lie two calls; more is no time of the job's.
AT_ONCE: Final = timedelta(minutes=1)
POLLED: Final = "poll"

Start = Callable[[IdempotencyKey, CompletionToken], Any]
Poll = Callable[[Any], Any]


class Incomplete(Deferred):
    """The run waits for a job; `wait` is what it has seen of it, `note` what a poll met with."""

    def __init__(self, wait: CompletionWait, until: datetime, note: str) -> None:
        told = f"started {_spelled(wait.since)}, to end by {_spelled(wait.until)}{note}"
        super().__init__(until, told, waits_for=wait.place.subject)
        self.wait = wait


@dataclass(slots=True)
class _Turn:
    """A wait in this attempt.

    Attributes:
        wait: as it was seen last.
        timeout: how long its job is waited for.
        pause: after how long the run looks again by itself.
        started: whether its job was started in this attempt.
        note: what a poll met with, "" for nothing special.
    """

    wait: CompletionWait
    timeout: timedelta
    pause: timedelta
    started: bool = False
    note: str = ""


class Waiting:
    """The waits of one attempt.

    Args:
        waits: their rows.
        effects: the effects of the attempt.
        run: as it was claimed.
        received_at: when its event came.
        secrets: have the key that tokens are made with, and keep them out of texts.
        clock: the time.
    """

    def __init__(
        self,
        waits: Waits,
        effects: Effects,
        run: Run,
        *,
        received_at: datetime,
        secrets: SecretCache,
        clock: Clock,
    ) -> None:
        self._waits = waits
        self._effects = effects
        self._run = run
        self._received_at = received_at
        self._secrets = secrets
        self._mint = TokenIssuer(secrets, received_at)
        self._clock = clock

    def wait_for(
        self,
        name: str,
        start: Start,
        *,
        timeout: str | timedelta,
        poll: Poll | None = None,
        every: str | timedelta = EVERY,
        **options: Any,
    ) -> Any:
        """See `Context.wait_for`."""
        require_plain(name, start, poll)
        _require_own(name, options)
        turn = self._begin(name, timeout, _pause(name, poll, every))
        if turn.wait.state is WaitState.WAITING:

            def starting(key: IdempotencyKey) -> Any:
                token = self._token(turn)
                with silent(token):
                    return without(token, start(key, token))

            job = self._effects.effect(turn.wait.effect, starting, **options)
            if poll is not None and not turn.started:
                self._conceal(turn)
                with _patient(turn):
                    self._take(turn, poll(job))
        else:
            self._effects.reserve(turn.wait.effect)
        return self._outcome(turn)

    async def await_for(
        self,
        name: str,
        start: Callable[[IdempotencyKey, CompletionToken], Awaitable[Any]],
        *,
        timeout: str | timedelta,
        poll: Callable[[Any], Awaitable[Any]] | None = None,
        every: str | timedelta = EVERY,
        **options: Any,
    ) -> Any:
        """See `Context.await_for`."""
        _require_own(name, options)
        turn = self._begin(name, timeout, _pause(name, poll, every))
        if turn.wait.state is WaitState.WAITING:

            async def starting(key: IdempotencyKey) -> Any:
                token = self._token(turn)
                with silent(token):
                    return without(token, await start(key, token))

            job = await self._effects.aeffect(turn.wait.effect, starting, **options)
            if poll is not None and not turn.started:
                self._conceal(turn)
                with _patient(turn):
                    self._take(turn, await poll(job))
        else:
            self._effects.reserve(turn.wait.effect)
        return self._outcome(turn)

    # -- before the job

    def _begin(self, name: str, timeout: str | timedelta, pause: timedelta) -> _Turn:
        check_name(name)
        if self._effects.current_key():
            raise Permanent(f"wait {name!r} is inside of an effect; make them one after one")
        if len(name) > NAME_LIMIT:
            raise Permanent(f"wait {name!r}: a name has up to {NAME_LIMIT} characters")
        limit = _span(name, "timeout", timeout)
        now, run = self._clock.now(), self._run
        place = WaitAddress(run.source, run.event_id, run.handler, name)
        found = self._waits.find(place, now)
        if found is None:
            token = self._mint.tokens(place, 1)[0]
            found = self._waits.begin(
                place, token, now=now, until=now + limit, received_at=self._received_at
            )
        return _Turn(self._renewed(found, now + limit), limit, pause)

    def _renewed(self, wait: CompletionWait, until: datetime) -> CompletionWait:
        """Returns the wait as this attempt has it: what killed the run is not to kill it again."""
        now, state = self._clock.now(), wait.state
        if state is WaitState.COMPLETED or not self._is_of_before(wait):
            return wait
        failed_late = state is WaitState.EXPIRED and wait.digest and "result" not in wait.row
        if state in {WaitState.AGAIN, WaitState.FAILED} or failed_late:
            token = self._mint.tokens(wait.place, wait.number + 1)[0]
            return self._waits.begin_anew(wait, token, now=now, until=until)
        if state is WaitState.EXPIRED and wait.digest:
            return self._waits.accept(wait)
        # Nobody knows what came of the job, so it is the same one that is waited for.
        return self._waits.prolong(wait, now=now, until=until)

    def _is_of_before(self, wait: CompletionWait) -> bool:
        """Tells whether a wait was over before the run died last, or was replayed."""
        if wait.state is WaitState.AGAIN or (wait.state is WaitState.FAILED and wait.late):
            return True
        replays = self._run.replays
        replayed = from_ms(replays[-1]["at"]) if replays else None
        begun = max(filter(None, (self._run.dead_at, replayed)), default=None)
        over = wait.ended_at if wait.state is WaitState.FAILED else wait.until
        return begun is not None and over is not None and over <= begun

    # -- the token

    def _token(self, turn: _Turn) -> CompletionToken:
        """Returns the token for a job that is about to be started; it is waited for from now on."""
        wait, now = turn.wait, self._clock.now()
        if wait.since + AT_ONCE < now:
            # It was held for a person, or failed to start: that is not the job's time.
            wait = self._waits.prolong(wait, now=now, until=now + turn.timeout)
        made = self._mint.tokens(wait.place, wait.number)
        known = [token for token in made if hashed(token) in wait.row["tokens"]]
        token = known[0] if known else made[0]
        if not known:
            wait = self._waits.admit(wait, token)
        turn.wait, turn.started = wait, True
        self._secrets.conceal(token)
        return token

    def _conceal(self, turn: _Turn) -> None:
        """Keeps a token that another worker has handed out of whatever a poll may tell."""
        for token in self._mint.tokens(turn.wait.place, turn.wait.number):
            self._secrets.conceal(token)

    # -- after the job, or while it runs

    def _take(self, turn: _Turn, found: Any) -> None:
        """Records what a poll has found, None for nothing yet."""
        if found is None:
            return
        try:
            ending = Ending.of(found)
        except Unstorable as error:
            raise Permanent(f"wait {turn.wait.place.name!r}: {error}") from error
        turn.wait = self._waits.end(turn.wait, ending, now=self._clock.now(), by=POLLED)

    def _outcome(self, turn: _Turn) -> Any:
        """Returns what came of the job, or lets the run wait."""
        wait, now = turn.wait, self._clock.now()
        if wait.state is WaitState.WAITING and now >= wait.until:
            wait = self._waits.expire(wait)
        if wait.state is WaitState.WAITING:
            raise Incomplete(wait, min(wait.until, now + turn.pause), turn.note)
        return self._ended(wait)

    def _ended(self, wait: CompletionWait) -> Any:
        name = wait.place.name
        match wait.state:
            case WaitState.COMPLETED:
                return wait.result
            case WaitState.FAILED if wait.retry:
                self._waits.let_go(wait)
                raise Transient(f"{name} failed: {wait.error}")
            case WaitState.FAILED:
                raise Permanent(f"{name} failed: {wait.error}")
            case WaitState.EXPIRED:
                waited = wait.until - wait.since
                raise Permanent(f"{name} was not completed within {waited}")
            case _:
                raise Transient(f"{name} changes under another worker")


def _spelled(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _pause(name: str, poll: object, every: str | timedelta) -> timedelta:
    """Returns after how long a run looks by itself."""
    return RECHECK if poll is None else min(_span(name, "every", every), RECHECK)


def _span(name: str, what: str, given: str | timedelta) -> timedelta:
    try:
        found = duration(given) if isinstance(given, str) else given
    except ConfigurationError as error:
        raise Permanent(f"wait {name!r}: {what}: {error}") from error
    if not timedelta(seconds=1) <= found <= LONGEST:
        raise Permanent(f"wait {name!r}: {what} is {found}; use one second to 28 days")
    return found


@contextmanager
def _patient(turn: _Turn) -> Iterator[None]:
    """Takes a poll that failed for one that found nothing: it costs no attempt."""
    try:
        yield
    except Transient as error:
        turn.note = f"; asking failed: {error}"
        turn.pause = min(max(turn.pause, error.retry_after or turn.pause), RECHECK)


def _require_own(name: str, options: Mapping[str, Any]) -> None:
    if "key" in options:
        raise Permanent(
            f"wait_for {name!r} takes no key: a job's token is one run's, and nobody else's"
        )
