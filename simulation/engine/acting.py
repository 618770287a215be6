"""The handlers of simulated worlds: their behavior, and the outcome of each attempt."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Final

from simulation.engine.sink import USED
from simulation.engine.stepping import Ask, Call
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.gate import Gate
from webhook_inbox.destinations.responses import classify, says_key_used
from webhook_inbox.domain.errors import Deferred, Permanent, Transient, Unavailable
from webhook_inbox.domain.internal_errors import TransientOfCall
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.timestamps import EPOCH
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.effects.plan import Approval
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.policies import Hold
from webhook_inbox.handlers.policies import Verdict as Decision

EFFECT: Final = "effect"
# The error text of a sink that rejects a call permanently.
REFUSAL: Final = "no such order"
# The field of JSON bodies that this text quotes; "acme" and "vary" declare it as personal.
CUSTOMER: Final = "Ada Lovelace"
SINK: Final = DestinationSpec("sink", "https://sink.example")


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """The outcome of one attempt of a handler.

    Attributes:
        posts: whether the attempt reaches the sink.
        error: the error raised, after the effect if there is one: "transient", "permanent",
            "deferred" or "limited" (the destination asks for fewer calls); "" for success.
            "redirected": the sink executes the call and answers with a redirect.
        seconds: the wait that `error` requests, or the duration of a successful attempt.
    """

    posts: bool = True
    error: str = ""
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Behavior:
    """The behavior of a handler.

    Attributes:
        journals: whether the call of the sink is an effect; otherwise only a key is sent.
        in_doubt: the policy for an effect whose result is unknown: "retry" or "hold".
        learns_keys: whether a deployment after the first attempt changes the policy to "retry".
        shared: the business key that the effects of all events share, "" for none.
        approve: whether a person has to approve the effect, or which people.
        amount: the argument of the effect, "" for none; it differs between deployments.
        asks: whether a policy holds each run for approval.
        lifetime: how long the sink remembers a key.
        varies: whether the body differs in each attempt: "" if not, "silently", or "as arguments"
            of the effect.
        probes: whether the handler looks up an effect in doubt.
        destination: the destination that is the sink, "" for a call without circuit and rate limit.
    """

    journals: bool = False
    in_doubt: str = "retry"
    learns_keys: bool = False
    shared: str = ""
    approve: bool | Approval = False
    amount: str = ""
    asks: bool = False
    lifetime: timedelta = timedelta(days=1)
    varies: str = ""
    probes: bool = False
    destination: str = ""


PLAIN: Final = Behavior()


@dataclass(frozen=True, slots=True)
class Handlers:
    """The handlers of a deployment: their behavior, and those that cannot be imported."""

    broken: frozenset[str] = frozenset()
    behaviors: Mapping[str, Behavior] = field(default_factory=dict)


class SinkSilent(Exception):
    """The sink did not answer; the result of the call is unknown."""


def ask_a_person(_: Event, __: Context) -> Decision:
    """A policy that holds every run."""
    return Hold("every run is reviewed")


def act(ask: Ask, behavior: Behavior, event: Event, context: Context) -> None:
    """A handler: asks for the outcome of the attempt, posts to the sink, and ends accordingly."""
    attempt = (
        context.handler,
        event.source,
        event.id,
        context.attempt,
        sha256(event.body).hexdigest(),
    )
    outcome = AttemptOutcome(*ask(Call("handler", "begin", attempt)))
    try:
        _go(Acting(ask, behavior, context, attempt[:3], outcome))
    finally:
        ask(Call("handler", "end"))


@dataclass(frozen=True, slots=True)
class Acting:
    """One attempt of a handler."""

    ask: Ask
    behavior: Behavior
    context: Context
    run: tuple[str, str, str]
    outcome: AttemptOutcome


def _go(one: Acting) -> None:
    outcome, behavior = one.outcome, one.behavior
    if outcome.seconds and not outcome.error:
        one.ask(Call("clock", "sleep", (outcome.seconds,)))
    learned = behavior.learns_keys and one.context.attempt > 1
    if behavior.journals:
        one.context.effect(
            EFFECT,
            partial(_call_sink, one),
            args=_arguments(one),
            probe=partial(_find, one) if behavior.probes else None,
            in_doubt="retry" if learned else behavior.in_doubt,
            key=behavior.shared or None,
            approve=behavior.approve,
            key_lifetime=behavior.lifetime,
        )
    elif outcome.posts or behavior.destination:
        try:
            _call_sink(one, one.context.idempotency_key(EFFECT))
        except SinkSilent as error:
            raise Transient("the sink did not answer") from error
    _end(one.ask, outcome)


def _call_sink(one: Acting, key: str) -> dict[str, str]:
    """Posts to the sink; enters and reports to the destination's gate as `ctx.http` does."""
    if not one.behavior.destination:
        return _post(one, key)
    spec, gate = one.context.destination(one.behavior.destination), one.context.gate
    one.ask(Call("sink", "enter", (spec.name,)))
    gate.enter(spec, one.context.reservations, until=one.context.deadline)
    one.ask(Call("sink", "entered", (spec.name,)))
    try:
        answered = _post(one, key)
    except Exception as error:
        raise error_of_call(gate, spec, _answer(one.outcome), error) from error
    gate.report(spec, CallOutcome.ok())
    return answered


def error_of_call(
    gate: Gate, spec: DestinationSpec, answer: CallOutcome, error: Exception
) -> Exception:
    """Reports a failed call and returns its error as `ctx.http` raises it."""
    wait = gate.report(spec, answer)
    if wait is None:
        return error
    retry_after, refused = None, False
    if isinstance(error, Transient):
        retry_after, refused = error.retry_after, error.refused
    return TransientOfCall(str(error), retry_after=retry_after, refused=refused, wait=wait)


def _answer(outcome: AttemptOutcome) -> CallOutcome:
    if outcome.error == "limited":
        return CallOutcome.limited(timedelta(seconds=outcome.seconds))
    return CallOutcome.ok() if outcome.error in {"permanent", "deferred"} else CallOutcome.failed()


def _post(one: Acting, key: str) -> dict[str, str]:
    if not one.outcome.posts:
        _end(one.ask, one.outcome)
    try:
        answer = one.ask(Call("sink", "post", (key, *one.run, _body(one))))
    except Unavailable as error:
        raise SinkSilent from error
    if answer == USED:
        raise _judged(422, "Idempotency-Key is already used")
    if one.outcome.error == "redirected":
        raise _judged(303, "")
    return {"posted": key}


def _arguments(one: Acting) -> dict[str, str] | None:
    if one.behavior.amount:
        return {"amount": one.behavior.amount}
    return {"body": _body(one)} if one.behavior.varies == "as arguments" else None


def _body(one: Acting) -> str:
    return str(one.context.attempt) if one.behavior.varies else one.behavior.amount


def _judged(status: int, body: str) -> Transient | Permanent:
    """Returns the error for a response as `ctx.http` raises it."""
    verdict = classify(status, {}, spec=SINK, keyed=True, now=EPOCH)
    return verdict.error(f"the sink answered {status}", key_used=says_key_used(body))


def _find(one: Acting, key: str) -> dict[str, str] | None:
    """A probe: looks the effect up at the sink."""
    return {"found": key} if one.ask(Call("sink", "find", (key, *one.run))) else None


def _end(ask: Ask, outcome: AttemptOutcome) -> None:
    wait = timedelta(seconds=outcome.seconds)
    if outcome.error == "transient":
        raise Transient("down", retry_after=wait)
    if outcome.error == "limited":
        raise Transient("too many requests", retry_after=wait, refused=True)
    if outcome.error == "permanent":
        raise Permanent(f"{REFUSAL} of {CUSTOMER}")
    if outcome.error == "deferred":
        raise Deferred(ask(Call("clock", "now")) + wait)
