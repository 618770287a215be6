"""The steps of the smoke test.

    open ─► deliver ─► duplicate ─► forge ─► fail ─► redrive ─► replay ─► reconcile ─► clean up

Each step polls until its own deadline or that of the whole test, and fails with the cause.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any, Final, TypeVar

from webhook_inbox.adapters.aws.remedies import explain_failure
from webhook_inbox.client.health.result import CheckResult, Level
from webhook_inbox.client.health.smoke.source import SmokeSource
from webhook_inbox.client.health.smoke.traces import Traces, event_ids, find_dead_letters
from webhook_inbox.client.post import PostAnswer
from webhook_inbox.client.replays import invoke_replay
from webhook_inbox.client.scope import Scope
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.errors import InboxError, Unavailable
from webhook_inbox.domain.idempotency import key_of
from webhook_inbox.domain.manifest import DEFAULT_LANE, SMOKE, SMOKE_FAILS, SMOKE_WORKS
from webhook_inbox.domain.model import Overview, Run, Status
from webhook_inbox.domain.ports import Message, Outgoing, Queue
from webhook_inbox.domain.replay_report import ReplayOutcome
from webhook_inbox.domain.timestamps import from_ms
from webhook_inbox.handlers.effects.journal import EffectState, decode
from webhook_inbox.reconciler.received import CURSORS

# The limit of all steps together; cleaning up takes seconds.
WHOLE: Final = timedelta(seconds=105)
# All limits are so many times as long on a laptop, which may be busy; less than `traces.LONGEST`.
LOCAL_FACTOR: Final = 4
PAUSES: Final = (0.1, 1.0)
DUPLICATES: Final = 5
# A cold ingest, a source that is not open yet in every container, a throttle: sent again.
SENT_AGAIN: Final = frozenset({0, 404, 429, 500, 502, 503, 504})
UNAUTHORIZED: Final = 401
# Ingest may have the secret of a smoke test that has just ended, and reads again after 10 s.
SENT_AGAIN_IF_GENUINE: Final = SENT_AGAIN | {UNAUTHORIZED}
# Longer than the rest of the test: the dead letter is in no list and no metric meanwhile.
HELD_FOR: Final = 120
# The difference of clocks between Lambda and SQS.
CLOCKS: Final = timedelta(seconds=1)
# A pass of the reconciler reads events that are 3 minutes old.
RECONCILED: Final = timedelta(minutes=15)
FAULTS: Final = {
    401: "the ingest function does not see the smoke test's secret: check its log",
    404: "the API does not know the source: deploy the stack again with this version, and check"
    " that ingest may read its secrets",
    429: "API Gateway's limit for unknown sources is used up, 5 a second: run it again",
}

CLEAN_UP: Final = "clean up"

Found = TypeVar("Found")


class StepFailed(InboxError):
    """The inbox does not work; the text has the cause and the fix."""


@dataclass(frozen=True, slots=True)
class StepResult(CheckResult):
    """The result of one step, and the time that it took."""

    took: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class SmokeStep:
    """One step: `act` returns what it found, and raises an error with the cause and the fix."""

    name: str
    seconds: float
    act: Callable[[], str]


class SmokeTest:
    """One smoke test of an inbox.

    Iterating performs its steps, up to the first that fails. `clean_up` must follow, also where
    the iteration was interrupted: it removes all that the test has made.
    """

    def __init__(self, scope: Scope, by: Actor) -> None:
        target, clock = scope.target, scope.clock
        self._scope = scope
        self._target = target
        self._clock = clock
        # It makes the ids of its events unique.
        self._token = token_hex(8)
        self._by = by.on_behalf_of or by.name
        self._source = SmokeSource(target, clock)
        self._traces = Traces(scope.table, clock)
        self._works, self._fails = event_ids(self._token)
        self._dlq: Queue = target.dlqs[DEFAULT_LANE]
        self._dead_letter: Message | None = None
        self._may_have_died = False
        self._factor = LOCAL_FACTOR if target.local else 1
        self._whole = self._end = clock.now() + WHOLE * self._factor

    def __iter__(self) -> Iterator[StepResult]:
        """Performs each step within its deadline, and yields its result."""
        for step in self._steps:
            limit = timedelta(seconds=step.seconds * self._factor)
            self._end = min(self._clock.now() + limit, self._whole)
            result = self._perform(step.name, step.act)
            yield result
            if result.level is Level.FAILURE:
                return

    def clean_up(self) -> StepResult:
        """Removes everything of this test; each part even if another one fails."""
        return self._perform(CLEAN_UP, self._clean_up)

    def _perform(self, name: str, act: Callable[[], str]) -> StepResult:
        began, level = self._clock.now(), Level.OK
        try:
            figure = act()
        except InboxError as error:
            level, figure = Level.FAILURE, explain_failure(error) or ""
        return StepResult(name, level, figure, took=self._clock.now() - began)

    @property
    def _steps(self) -> Sequence[SmokeStep]:
        """The steps up to cleaning up, which follows whatever they do."""
        return (
            SmokeStep("open", 30, self._open),
            SmokeStep("deliver", 40, self._deliver),
            SmokeStep("duplicate", 15, self._duplicate),
            SmokeStep("forge", 10, self._forge),
            SmokeStep("fail", 40, self._fail),
            SmokeStep("redrive", 30, self._redrive),
            SmokeStep("replay", 30, self._replay),
            SmokeStep("reconcile", 5, self._reconcile),
        )

    def _clean_up(self) -> str:
        with ExitStack() as last_first:
            last_first.callback(self._close)
            last_first.callback(self._traces.erase, self._token)
            last_first.callback(self._drop_dead_letters)
        return "its events, messages and secret are deleted"

    def _open(self) -> str:
        killed = self._traces.tokens(killed=True)
        for token in killed:
            self._traces.erase(token)
        self._traces.begin(self._token)
        self._source.open()
        reached = self._source.send(self._works, SMOKE_WORKS, forged=True)
        if not reached.status:
            # A name that does not resolve, or a closed port: waiting does not help.
            raise _unexpected(reached, "an answer")
        self._answered(lambda: self._source.send(self._works, SMOKE_WORKS, forged=True))
        left = f"; removed what {len(killed)} killed smoke tests left" if killed else ""
        return f"the API answers, and the source is open{left}"

    def _deliver(self) -> str:
        began = self._clock.now()
        self._accept(self._works, SMOKE_WORKS)
        accepted = self._since(began)
        self._settled(self._works, Status.DONE)
        self._require_one_effect(self._works)
        return f"accepted after {accepted}, done after {self._since(began)}, one effect"

    def _duplicate(self) -> str:
        with ThreadPoolExecutor(DUPLICATES) as pool:
            sending = [pool.submit(self._send_again) for _ in range(DUPLICATES)]
            answers = [each.result() for each in sending]
        for answer in answers:
            if answer.outcome != "duplicate":
                raise _unexpected(answer, "a duplicate")
        run = self._require_one_effect(self._works)
        if run.attempt_count != 1:
            raise StepFailed(f"a duplicate ran again: attempt {run.attempt_count}, not 1")
        return f"{DUPLICATES} acknowledged; one event, one attempt, one effect"

    def _send_again(self) -> PostAnswer:
        return self._answered(
            lambda: self._source.send(self._works, SMOKE_WORKS), again=SENT_AGAIN_IF_GENUINE
        )

    def _forge(self) -> str:
        answer = self._answered(lambda: self._source.send(self._works, SMOKE_WORKS, forged=True))
        if answer.status != UNAUTHORIZED:
            raise _unexpected(answer, f"HTTP {UNAUTHORIZED} for a forged signature")
        return f"a forged signature is rejected with {answer.status}"

    def _fail(self) -> str:
        self._may_have_died = True
        self._accept(self._fails, SMOKE_FAILS)
        run = self._settled(self._fails, Status.DEAD_LETTER)
        self._hold_dead_letter()
        return f"dead after {run.attempt_count} attempts, and its message is in the DLQ"

    def _redrive(self) -> str:
        """Moves only this test's message.

        SQS's own redrive, StartMessageMoveTask, would move every message of the DLQ, also those of
        other runs.
        """
        before = self._run_of(self._fails)
        message = self._dead_letter
        if before is None or message is None:
            raise StepFailed("its run or its dead letter has disappeared: run it again")
        # A message is a redrive if it was sent after the death, by the clock of another machine.
        died = before.dead_at or self._clock.now()
        self._awaited(lambda: self._clock.now() > died + CLOCKS or None)
        refused = self._target.queues[DEFAULT_LANE].send([Outgoing(message.body)])
        if refused:
            raise Unavailable("sqs", "SendMessageBatch", "the message was not taken")
        self._release_dead_letter()
        attempts = before.attempt_count
        run = self._settled(self._fails, Status.DEAD_LETTER, beyond=attempts)
        self._hold_dead_letter()
        return f"attempted again: {run.attempt_count - attempts} attempts, and dead again"

    def _replay(self) -> str:
        request = {"event_ids": [self._fails], "source": SMOKE, "handler": SMOKE, "limit": 1}
        asked = {"rate_per_second": 10, "dry_run": False, "requested_by": self._by}
        report = invoke_replay(self._target, {**request, **asked, "reason": "smoke test"})
        if not report.counts.get(ReplayOutcome.REPLAYED) or report.failed:
            counts = ", ".join(report.counts) or "no run found"
            raise StepFailed(
                f"the replay function did not replay the run ({report.failed or counts}): check"
                " its log"
            )
        run = self._settled(self._fails, Status.DONE)
        self._release_dead_letter()
        self._require_one_effect(self._works)
        self._require_one_effect(self._fails)
        return f"done in attempt {run.attempt_count}; its effect was not repeated"

    def _reconcile(self) -> str:
        row = self._scope.table.get(CURSORS)
        if row is None:
            return "the reconciler has made no pass yet; it runs every minute"
        read = max(from_ms(at) for at in row["first"].values())
        behind = self._clock.now() - read
        if behind > RECONCILED and not self._target.local:
            raise StepFailed(
                f"the reconciler is {int(behind.total_seconds() // 60)} minutes behind, and lost or"
                " waiting runs are not resumed: check its schedule and its log"
            )
        return "the reconciler runs"

    # -- what the steps wait for

    def _accept(self, event_id: str, type_: str) -> None:
        sent = list[PostAnswer]()

        def send() -> PostAnswer:
            sent.append(self._source.send(event_id, type_))
            return sent[-1]

        answer = self._answered(send, again=SENT_AGAIN_IF_GENUINE)
        # A request whose answer was lost may have stored the event.
        known = len(sent) > 1 and answer.outcome == "duplicate"
        if answer.outcome != "accepted" and not known:
            raise _unexpected(answer, "accepted")

    def _answered(
        self, send: Callable[[], PostAnswer], *, again: frozenset[int] = SENT_AGAIN
    ) -> PostAnswer:
        """Sends until ingest itself answers, with another status than those in `again`."""
        last: PostAnswer | None = None

        def look() -> PostAnswer | None:
            nonlocal last
            last = send()
            return None if last.status in again else last

        answer = self._awaited(look)
        if answer is not None:
            return answer
        raise _unexpected(last, "an answer of ingest")

    def _settled(self, event_id: str, status: Status, *, beyond: int = 0) -> Run:
        """Returns the run once it has this status, after more than `beyond` attempts."""

        def look() -> Run | None:
            run = self._run_of(event_id)
            ended = run is not None and run.status is status and run.attempt_count > beyond
            return run if ended else None

        run = self._awaited(look)
        if run is None:
            raise StepFailed(self._why_not(event_id, status))
        return run

    def _why_not(self, event_id: str, status: Status) -> str:
        run = self._run_of(event_id)
        if run is None or not run.attempt_count:
            waiting = self._target.queues[DEFAULT_LANE].backlog().visible
            paused = f" ({run.status}: {run.last_error})" if run is not None else ""
            return (
                f"no worker has begun its run{paused}, and {waiting} messages wait in lane"
                " default: check the processor's log, its concurrency and its event source mapping"
            )
        still = "still " if run.status is status else ""
        return (
            f"its run is {still}{run.status} after {run.attempt_count} attempts"
            f" ({run.last_error or 'no error'}): check the processor's log"
        )

    def _hold_dead_letter(self) -> None:
        found = self._awaited(lambda: self._dead_letters() or None)
        if found is None:
            raise StepFailed(
                "its message is not in the DLQ of lane default: check the redrive policy of the"
                " work queue; a DLQ with thousands of messages takes longer than this test"
            )
        self._dead_letter, *copies = found
        for copy in copies:
            self._dlq.delete(copy.receipt)
        self._dlq.hide(self._dead_letter.receipt, HELD_FOR * self._factor)

    def _dead_letters(self) -> list[Message]:
        return find_dead_letters(self._dlq, self._fails, self._clock)

    def _release_dead_letter(self) -> None:
        if self._dead_letter is not None:
            self._dlq.delete(self._dead_letter.receipt)
            self._dead_letter = None

    def _drop_dead_letters(self) -> None:
        failed = self._may_have_died
        self._release_dead_letter()
        if failed:
            for message in self._dead_letters():
                self._dlq.delete(message.receipt)

    def _close(self) -> None:
        if not self._traces.tokens(killed=False):
            self._source.close()

    def _require_one_effect(self, event_id: str) -> Run:
        """Returns the run; raises StepFailed unless its effect was made once, by attempt 1."""
        overview = self._overview(event_id)
        run = self._run_of(event_id)
        if overview is None or run is None or len(overview.runs) != 1:
            raise StepFailed(f"the ledger does not have exactly one run of {event_id}")
        made = [_result(row) for row in overview.effects]
        expected = {"attempt": 1, "key": key_of(SMOKE, SMOKE, SMOKE, event_id)}
        if made != [expected]:
            raise StepFailed(f"the ledger's effects of {event_id} are {made}, not {[expected]}")
        return run

    def _overview(self, event_id: str) -> Overview | None:
        return self._scope.ledger().overview(SMOKE, event_id, now=self._clock.now())

    def _run_of(self, event_id: str) -> Run | None:
        overview = self._overview(event_id)
        return next(iter(overview.runs), None) if overview else None

    def _awaited(self, look: Callable[[], Found | None]) -> Found | None:
        """Looks until something is found; None at the step's deadline."""
        pause, longest = PAUSES
        while True:
            found = look()
            if found is not None or self._clock.now() + timedelta(seconds=pause) > self._end:
                return found
            self._clock.sleep(pause)
            pause = min(pause * 1.5, longest)

    def _since(self, began: datetime) -> str:
        return f"{(self._clock.now() - began).total_seconds():.1f} s"


def _result(effect: Any) -> Any:
    committed = effect.get("status") == EffectState.COMMITTED
    return decode(effect["result"]) if committed else effect.get("status")


def _unexpected(answer: PostAnswer | None, wanted: str) -> StepFailed:
    if answer is None or not answer.status:
        return StepFailed(answer.text if answer else "nothing was sent: run it again")
    fault = FAULTS.get(answer.status, "check the log of the ingest function")
    return StepFailed(f"answered {answer.status} {answer.outcome}, not {wanted}: {fault}")
