"""The next action for an event (G9), as steps: sentences, and the commands that they introduce.

Most runs need none: their message or the reconciler continues them. The text then names that step
and its time. `client.effects` adds the state of the run's effects.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final

from webhook_inbox.client.effects import RunEffect, Standing, effects_of, verdict
from webhook_inbox.client.holds import HeldRun
from webhook_inbox.client.suggestions import PLAIN, Command, Program
from webhook_inbox.client.times import relative, span, spelled
from webhook_inbox.domain.death import REMEDIES
from webhook_inbox.domain.manifest import SPLIT
from webhook_inbox.domain.model import (
    SETTLED,
    EventStatus,
    Overview,
    Run,
    Status,
    StoredEvent,
    TypeDoubt,
)
from webhook_inbox.domain.printable import cut
from webhook_inbox.handlers.completions.tokens import COMPLETION
from webhook_inbox.ledger.deadlines import VISIBILITY_TIMEOUT, overdue_at
from webhook_inbox.ledger.lease import CLOCK_SKEW
from webhook_inbox.ledger.pauses import RESUMPTIONS, TENANT_RESUMPTION
from webhook_inbox.ledger.schema import EVENT_LIFE, hold_reason
from webhook_inbox.processor.settlement import ROLLING
from webhook_inbox.queue.line import TURN

SHORT: Final = 160
# The reconciler reads events older than 3 minutes, every five minutes.
SENT_AGAIN_BY: Final = timedelta(minutes=10)

# The steps before a decision about a run whose event has no certain type.
_UNCERTAIN: Final[Mapping[str, str]] = {
    TypeDoubt.UNREADABLE: (
        "Read the body. If it was cut, let the provider send the event again under a new id (under"
        " this one, other content is refused with 409), and deny. If its type is elsewhere, correct"
        " the source's `event_type`, deploy, and approve the handlers that the event is meant for:"
        " they run with the type shown."
    ),
    TypeDoubt.CONTRADICTED: (
        "Compare the headers with the body and with the provider's log of deliveries. Approve only"
        " the handlers that the body is meant for: a changed header is a sign of an attack."
    ),
}
# Sentences and commands, in their order; `" ".join` makes one text of them.
Steps = tuple[str | Command, ...]


def next_steps(
    overview: Overview,
    *,
    now: datetime,
    max_attempts: Mapping[str, int] | None = None,
    program: Program = PLAIN,
) -> Steps:
    """Returns the next action, or the next automatic step, for the runs that decide the status.

    `program` makes the commands in it. The event may expire before its runs.
    """
    status, event = overview.status, overview.event
    if event.received_at + EVENT_LIFE <= now:
        return ("Ask the provider to send it again: the event has expired, its runs end with it.",)
    if status is EventStatus.ACCEPTED:
        return _accepted(overview, now, program)
    if status is EventStatus.DONE:
        return ("Nothing to do: every run is done.",)
    if not overview.runs:
        options = ("--source", event.source, "--handler", "NAME")
        added = program.command("replay", *options, argument=event.event_id)
        return (
            f"Nothing to do: {without_runs(event, overview.runs)}. To add a handler's run:",
            added,
        )
    limits = max_attempts or {}
    deciding = [run for run in overview.runs if str(run.status) == str(status)]
    return tuple(
        step
        for run in deciding
        for step in run_steps(
            run,
            now=now,
            limit=limits.get(run.handler),
            effects=effects_of(overview, run.handler, now=now),
            program=program,
        )
    )


def run_steps(
    run: Run,
    *,
    now: datetime,
    limit: int | None = None,
    effects: Sequence[RunEffect] | None = None,
    program: Program = PLAIN,
) -> Steps:
    """Returns the next action for a run, and whether a retry is safe.

    `limit` is its handler's max_attempts, where known; `effects` is None where they were not read.
    """
    steps = _steps(run, now, limit, effects or (), program)
    judged = effects is not None and _may_be_repeated(run, now)
    told = verdict(run, effects or (), now=now, program=program) if judged else ""
    return (*steps, f"Effects: {told}.") if told else steps


def _may_be_repeated(run: Run, now: datetime) -> bool:
    if run.handler == SPLIT:
        return False  # It has no effects; items are stored once.
    if run.status is Status.PROCESSING:
        return (run.claimed_until or now) + CLOCK_SKEW < now
    return run.status not in SETTLED


def _steps(
    run: Run, now: datetime, limit: int | None, effects: Sequence[RunEffect], program: Program
) -> Steps:
    match run.status:
        case Status.PENDING:
            steps: Steps = (_pending(run, now),)
        case Status.PROCESSING:
            steps = (_processing(run, now),)
        case Status.FAILED:
            steps = _failed(run, now, limit, program)
        case Status.DEFERRED:
            steps = _deferred(run, now, program)
        case Status.HELD:
            steps = _held(run, effects, program)
        case Status.DEAD_LETTER:
            steps = _dead(run, program)
        case Status.DONE | Status.SKIPPED:
            skipped = run.status is Status.SKIPPED and run.last_error
            why = f" ({_short(run.last_error)})" if skipped else ""
            steps = (f"Nothing to do: {run.handler} is {run.status}{why}.",)
            if skipped:
                steps = (*steps, "To run it all the same:", _forced(run, program))
    return steps


def without_runs(event: StoredEvent, runs: Sequence[Run]) -> str:
    """Returns why an event has no runs; "" if it has any."""
    if runs or event.runs:
        return ""
    if event.dropped:
        return f"dropped: its body was received before as {event.identical_to}"
    if event.doubt:
        return f"its type is {event.doubt}, and its source had no handler when the event arrived"
    return f"no handler wanted the type {event.type!r} when the event arrived"


def _forced(run: Run, program: Program) -> Command:
    options = (*_selecting_options(run), "--force", "--reason", "TEXT")
    return program.command("replay", *options, argument=run.event_id)


def _accepted(overview: Overview, now: datetime, program: Program) -> Steps:
    event = overview.event
    begun = {run.handler for run in overview.runs}
    waiting = [name for name in event.runs if name not in begun]
    names = ", ".join(waiting)
    age = now - event.received_at
    if event.held:
        return (
            f"Wait: {hold_reason(event)}. The reconciler holds {names} within"
            f" {span(SENT_AGAIN_BY)}. To decide then:",
            program.command("hold list"),
        )
    if age <= SENT_AGAIN_BY:
        return (f"Wait: {names} is queued and has not started.",)
    return (
        f"Check that the processor and the reconciler run: {names} has not started {span(age)}"
        f" after the event arrived, and lost messages are sent again within {span(SENT_AGAIN_BY)}."
        " To send it now:",
        replay_command(event, waiting, program),
    )


def _held(run: Run, effects: Sequence[RunEffect], program: Program) -> Steps:
    """Returns a held run's approval request, with the commands that decide it."""
    hold = HeldRun.of(run)
    why = f": {_short(hold.reason)}" if hold.reason else ""
    shows = f" It shows {_short(hold.shows)}." if hold.shows else ""
    subject = next((effect for effect in effects if effect.name == hold.effect), None)
    words = f"Decide: {run.handler} waits for approval{why}.{shows}"
    approve, deny = (_hold_command(program, hold, verb) for verb in ("approve", "deny"))
    happened = _hold_command(program, hold, "approve", "--happened", "--result", "JSON")
    if subject is not None and subject.unrecorded:
        return (words, "To record its result:", happened, "To deny:", deny)
    if subject is not None and subject.state is Standing.IN_DOUBT:
        name = subject.name
        ask = f"Ask the destination, once its slow calls have ended, whether {name} happened."
        again = "If not, do it again with the same key (twice where the destination ignores keys):"
        told = "If it happened, record its result, as in a run that is done:"
        return (words, ask, told, happened, again, approve, "To deny:", deny)
    decisions: Steps = ("To approve:", approve, "To deny:", deny)
    if hold.subject in _UNCERTAIN:
        return (words, _UNCERTAIN[hold.subject], *decisions)
    if hold.identical_to not in {None, run.event_id}:
        first = program.command("inbox inspect", "--source", run.source, argument=hold.identical_to)
        return (words, "Compare with the first event:", first, *decisions)
    return (words, *decisions)


def _hold_command(program: Program, hold: HeldRun, verb: str, *more: str) -> Command:
    """Returns the command that approves or denies an approval request."""
    options = (*_selecting_options(hold), "--hold", hold.hold, "--reason", "TEXT", *more)
    return program.command(f"hold {verb}", *options, argument=hold.event_id)


def _selecting_options(run: Run | HeldRun) -> tuple[str, ...]:
    return ("--source", run.source, "--handler", run.handler)


def _pending(run: Run, now: datetime) -> str:
    sent = run.last_at or now
    again = overdue_at(sent)
    begun = f"{run.handler} was sent again {relative(sent, now)} and has not started"
    if run.ordering_key:
        begun += f" (earlier events of {run.ordering_key} come first)"
    if again > now:
        return (
            f"Wait: {begun}; if its message is lost, the reconciler sends it"
            f" {relative(again, now)}."
        )
    return f"Check that the processor runs: {begun}, and the reconciler has {_resent(run)}."


def _processing(run: Run, now: datetime) -> str:
    until = run.claimed_until or now
    if until + CLOCK_SKEW >= now:
        return (
            f"Wait: {run.handler} is in attempt {run.attempt_count}, which ends"
            f" {relative(until, now)} at the latest."
        )
    lost = (
        f"the worker of {run.handler} stopped without a result in attempt {run.attempt_count}"
        f" (its lease expired {relative(until, now)})"
    )
    if now <= until + VISIBILITY_TIMEOUT:
        visible = span(until + VISIBILITY_TIMEOUT - now)
        return f"Wait: {lost}; its message becomes visible again within {visible}."
    if now <= overdue_at(until):
        return f"Wait: {lost}; the reconciler sends it {relative(overdue_at(until), now)}."
    return (
        f"Check that the processor and the reconciler run: {lost}, and it should have been"
        f" sent again {relative(overdue_at(until), now)}."
    )


def _failed(run: Run, now: datetime, limit: int | None, program: Program) -> Steps:
    left = "" if limit is None else f" ({_left(run, limit)})"
    attempt = f"attempt {run.attempt_count + 1} of {run.handler}{left}"
    retry = replay_command(run, [run.handler], program)
    return (_waiting(run, now, attempt), "To retry now:", retry)


def _left(run: Run, limit: int) -> str:
    left, of = limit - run.attempts_in_round, limit
    if run.attempt_limit:
        # The error allows fewer; they count consecutive failures with the same reason.
        counted = reversed(run.counted_attempts)
        same = takewhile(lambda attempt: attempt.error == run.last_error, counted)
        fewer = run.attempt_limit - sum(1 for _ in same)
        left, of = min((left, of), (fewer, run.attempt_limit))
    return f"{max(left, 0)} of {of} left"


def _deferred(run: Run, now: datetime, program: Program) -> Steps:
    if run.unknown_since is not None:
        end = run.unknown_since + ROLLING
        return (
            f"Deploy a version that has the handler {run.handler}: the run is given up"
            f" {relative(end, now)} ({spelled(end)}).",
        )
    if run.waits_for in RESUMPTIONS:
        return _paused(run, program)
    if run.waits_for == TURN:
        return (_behind(run),)
    if run.waits_for.startswith(COMPLETION):
        return _job(run, now, program)
    named = run.waits_for or "something outside"
    # Removes the repeated subject from the error.
    told = _short(run.last_error.removeprefix(f"{named}: "))
    why = f" It waits for {named}: {told}" if run.last_error else ""
    return (_waiting(run, now, f"{run.handler}, deferred without an attempt,") + why,)


def _paused(run: Run, program: Program) -> Steps:
    why = f" ({_short(run.last_error)})" if run.last_error else ""
    of_tenant = run.waits_for == TENANT_RESUMPTION
    group, name = ("tenants", run.tenant) if of_tenant else ("handlers", run.handler)
    return (
        f"Resume: {name} was paused{why}; its run continues within two minutes of:",
        program.command(f"{group} resume", argument=name),
        "To see the pause:",
        program.command(f"{group} list"),
    )


def _job(run: Run, now: datetime, program: Program) -> Steps:
    name = run.waits_for.removeprefix(COMPLETION)
    due = run.next_attempt_at
    looks = f"; it checks by itself {relative(due, now)}" if due and due > now else ""
    named = ("--source", run.source, "--handler", run.handler)
    job = (*named, "--effect", name, "--result", "JSON")
    return (
        f"Wait: {run.handler} continues when its job {name} is completed ({_short(run.last_error)})"
        f"{looks}. To record the result:",
        program.command("complete", *job, argument=run.event_id),
    )


def _behind(run: Run) -> str:
    return (
        f"Finish the runs before it: {run.handler} takes the events of {run.ordering_key} in order"
        f" ({_short(run.last_error)}). It continues by itself when its turn has come."
    )


def _waiting(run: Run, now: datetime, what: str) -> str:
    due = run.next_attempt_at or now
    if due > now:
        carrier = ", sent by the reconciler" if run.parked else ""
        return f"Wait: {what} begins {relative(due, now)} ({spelled(due)}){carrier}."
    if run.parked:
        return f"Wait: {what} is due; the reconciler sends it within minutes."
    again = overdue_at(due)
    if again > now:
        return (
            f"Wait: {what} was due {relative(due, now)} and its message is on its way; if it"
            f" is lost, the reconciler sends it {relative(again, now)}."
        )
    return (
        f"Check that the processor runs: {what} was due {relative(due, now)}, and the reconciler"
        f" has {_resent(run)}."
    )


def _resent(run: Run) -> str:
    if run.resends == 0:
        return "not sent it again yet"
    return "sent it again " + ("once" if run.resends == 1 else f"{run.resends} times")


def _dead(run: Run, program: Program) -> Steps:
    remedy = REMEDIES.get(run.last_error.partition(":")[0], "after fixing the cause,")
    stops = _stops(run, program) if run.blocking else ()
    replay = replay_command(run, [run.handler], program)
    return (f"Fix {run.handler}: {remedy} replay it:", replay, *stops)


def _stops(run: Run, program: Program) -> Steps:
    skip = program.command(
        "skip", *_selecting_options(run), "--reason", "TEXT", argument=run.event_id
    )
    return (f"Until then later events of {run.ordering_key} wait; to continue without it:", skip)


def replay_command(of: Run | StoredEvent, handlers: Iterable[str], program: Program) -> Command:
    """Returns the command that replays runs of an event."""
    named = list(handlers)
    # Several handlers need no filter: runs that are done stay done.
    handler = ("--handler", named[0]) if len(named) == 1 else ()
    options = ("--source", of.source, *handler, "--yes")
    return program.command("replay", *options, argument=of.event_id)


def _short(text: str) -> str:
    return cut(" ".join(text.split()), SHORT)
