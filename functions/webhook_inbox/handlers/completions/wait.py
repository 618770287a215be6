"""Implements `ctx.wait_for`: starts a job once and defers the run until the job has ended."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Unpack

from webhook_inbox.domain.errors import ConfigurationError, Permanent, Transient
from webhook_inbox.domain.idempotency import IdempotencyKey
from webhook_inbox.domain.internal_errors import Postponed
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
    silent,
    without,
)
from webhook_inbox.handlers.effects.effect import (
    Adapter,
    Effects,
    as_coroutine_function,
    run_without_loop,
    wrap_async,
)
from webhook_inbox.handlers.effects.journal import Unstorable
from webhook_inbox.handlers.effects.plan import DAY, JobOptions, check_name, require_plain

# Leaves room for the number of a later job.
NAME_LIMIT: Final = 120
# An event is kept for 35 days; the alarm on waiting runs fires seven days earlier.
LONGEST: Final = timedelta(days=28)
EVERY: Final = "1m"
# The usual time between the begin of a wait and the start of its job, two calls. A longer delay
# does not count as the job's time.
AT_ONCE: Final = timedelta(minutes=1)
POLLED: Final = "poll"

Start = Callable[[IdempotencyKey, CompletionToken], Any]
Poll = Callable[[Any], Any]


class WaitOptions(JobOptions, total=False):
    """The options of a wait and of the effect that starts its job; see `Context.wait_for`."""

    timeout: str | timedelta
    poll: Poll | None
    every: str | timedelta


class Incomplete(Postponed):
    """The run waits for a job; `wait` is the wait as read, `note` the outcome of a poll."""

    def __init__(self, wait: CompletionWait, until: datetime, note: str) -> None:
        text = f"started {_spelled(wait.since)}, to end by {_spelled(wait.until)}{note}"
        super().__init__(until, text, waits_for=wait.place.subject)
        self.wait = wait


@dataclass(slots=True)
class _Turn:
    """A wait in this attempt.

    Attributes:
        wait: as last read.
        timeout: how long the job may take.
        pause: how long the run pauses before it looks again.
        started: whether this attempt started the job.
        note: the error of a poll, or "".
    """

    wait: CompletionWait
    timeout: timedelta
    pause: timedelta
    started: bool = False
    note: str = ""


class Waiting:
    """The waits of one attempt.

    Args:
        waits: the rows.
        effects: the effects of the attempt.
        run: the run as leased.
        received_at: when its event was received.
        secrets: hold the signing key of the tokens, and redact tokens in texts.
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

    def wait_for(self, name: str, start: Start, **options: Unpack[WaitOptions]) -> Any:
        """See `Context.wait_for`."""
        require_plain(name, start, options.get("poll"), options.get("probe"))
        return run_without_loop(self._wait(name, start, as_coroutine_function, **options))

    async def await_for(self, name: str, start: Start, **options: Unpack[WaitOptions]) -> Any:
        """See `Context.await_for`."""
        return await self._wait(name, start, wrap_async, **options)

    async def _wait(
        self,
        name: str,
        start: Start,
        adapt: Adapter,
        *,
        timeout: str | timedelta = DAY,
        poll: Poll | None = None,
        every: str | timedelta = EVERY,
        **options: Unpack[JobOptions],
    ) -> Any:
        if "key" in options:
            raise Permanent(f"wait_for {name!r} takes no key: a job's token belongs to one run")
        turn = self._begin(name, timeout, _pause(name, poll, every))
        if turn.wait.state is not WaitState.WAITING:
            self._effects.reserve(turn.wait.place.job)
            return self._outcome(turn)

        async def starting(key: IdempotencyKey) -> Any:
            token = self._token(turn)
            with silent(token):
                return without(token, await adapt(start)(key, token))

        if probe := options.get("probe"):
            options["probe"] = adapt(probe)
        job = await self._effects.aeffect(turn.wait.place.job, starting, **options)
        if poll is not None and not turn.started:
            self._conceal(turn)
            with _patient(turn):
                self._take(turn, await adapt(poll)(job))
        return self._outcome(turn)

    # -- before the job

    def _begin(self, name: str, timeout: str | timedelta, pause: timedelta) -> _Turn:
        check_name(name)
        if self._effects.running is not None:
            raise Permanent(f"wait {name!r} is inside an effect; run one after the other")
        if len(name) > NAME_LIMIT:
            raise Permanent(f"wait {name!r}: a name has up to {NAME_LIMIT} characters")
        limit = _span(name, "timeout", timeout)
        now, run = self._clock.now(), self._run
        place = WaitAddress(run.source, run.event_id, run.handler, name)
        found = self._waits.newest(place, now, key_version=run.key_version)
        wait = self._new(place, now, limit) if found is None else self._renewed(found, now, limit)
        return _Turn(wait, limit, pause)

    def _new(self, place: WaitAddress, now: datetime, limit: timedelta) -> CompletionWait:
        token = self._mint.current(place)
        return self._waits.begin(
            place,
            token,
            now=now,
            until=now + limit,
            received_at=self._received_at,
            key_version=self._run.key_version,
        )

    def _renewed(self, wait: CompletionWait, now: datetime, limit: timedelta) -> CompletionWait:
        """Returns the wait for this attempt.

        An end that failed an earlier round does not count, nor any job under earlier keys.
        """
        if wait.key_version < self._run.key_version:
            return self._new(wait.place.next, now, limit)
        if wait.state is WaitState.COMPLETED or not self._is_from_before_replay(wait):
            return wait
        if wait.failed:
            return self._new(wait.place.next, now, limit)
        if wait.digest:
            return self._waits.accept(wait)
        # The job's end is unknown: wait for the same job.
        return self._waits.prolong(wait, now=now, until=now + limit)

    def _is_from_before_replay(self, wait: CompletionWait) -> bool:
        """Returns whether a wait ended before the run's last death or replay."""
        if wait.state is WaitState.AGAIN or (wait.state is WaitState.FAILED and wait.late):
            return True
        replays = self._run.replays
        replayed = from_ms(replays[-1]["at"]) if replays else None
        begun = max(filter(None, (self._run.dead_at, replayed)), default=None)
        over = wait.ended_at if wait.state is WaitState.FAILED else wait.until
        return begun is not None and over is not None and over <= begun

    # -- the token

    def _token(self, turn: _Turn) -> CompletionToken:
        """Returns the token for a job that starts now; its timeout runs from now."""
        wait, now = turn.wait, self._clock.now()
        if wait.since + AT_ONCE < now:
            # A hold or a failed start came between; it does not count as the job's time.
            wait = self._waits.prolong(wait, now=now, until=now + turn.timeout)
        # A token of an earlier start, perhaps under the previous key, is used again.
        token = next(self._mint.issued(wait.place, wait.row["tokens"]), None)
        if token is None:
            token = self._mint.current(wait.place)
            wait = self._waits.admit(wait, token)
        turn.wait, turn.started = wait, True
        self._secrets.conceal(token)
        return token

    def _conceal(self, turn: _Turn) -> None:
        """Redacts a token that another worker issued from the poll's result and errors."""
        for token in self._mint.issued(turn.wait.place, turn.wait.row["tokens"]):
            self._secrets.conceal(token)

    # -- after the job, or while it runs

    def _take(self, turn: _Turn, found: Any) -> None:
        """Records the result of a poll; None means that the job has not ended."""
        if found is None:
            return
        try:
            ending = Ending.of(found)
        except Unstorable as error:
            raise Permanent(f"wait {turn.wait.place.name!r}: {error}") from error
        turn.wait = self._waits.end(turn.wait, ending, now=self._clock.now(), by=POLLED)

    def _outcome(self, turn: _Turn) -> Any:
        """Returns the job's result, or raises."""
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
                raise Transient(f"{name} was changed by another worker")


def _spelled(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _pause(name: str, poll: object, every: str | timedelta) -> timedelta:
    """Returns how long the run pauses before it looks again."""
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
    """Treats a transient error of a poll as "not ended": it counts no attempt."""
    try:
        yield
    except Transient as error:
        turn.note = f"; the poll failed: {error}"
        turn.pause = min(max(turn.pause, error.retry_after or turn.pause), RECHECK)
