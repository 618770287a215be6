"""Handlers of simulated worlds: how they act, and how each of their attempts goes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Final

from simulation.engine.stepping import Ask, Call
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.domain.errors import Deferred, Permanent, Transient, Unavailable
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.policies import Hold
from webhook_inbox.handlers.policies import Verdict as Decision

EFFECT: Final = "effect"
# How a sink words that it will never do it.
REFUSAL: Final = "no such order"


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """How one attempt of a handler goes.

    Attributes:
        posts: whether it reaches its sink.
        error: what it raises, after its effect if it has one: "transient", "permanent",
            "deferred" or "limited" (its destination wants to be called less often); "" for nothing.
        seconds: what `error` asks to wait for, or how long the handler takes without one.
    """

    posts: bool = True
    error: str = ""
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Behavior:
    """How a handler acts.

    Attributes:
        journals: whether what it does at its sink is an effect; otherwise it sends a key alone.
        in_doubt: what becomes of an effect of which nobody knows: "retry" or "hold".
        shared: the business key that it gives the effects of all events, "" for none.
        approve: whether a person has to approve the effect.
        asks: whether a policy holds each of its runs for a person.
        lifetime: how long its sink knows a key.
        destination: the destination that its sink is, "" where nothing spares it.
    """

    journals: bool = False
    in_doubt: str = "retry"
    shared: str = ""
    approve: bool = False
    asks: bool = False
    lifetime: timedelta = timedelta(days=1)
    destination: str = ""


PLAIN: Final = Behavior()


@dataclass(frozen=True, slots=True)
class Handlers:
    """The handlers of a deployment: how they act, and which cannot be imported."""

    broken: frozenset[str] = frozenset()
    behaviors: Mapping[str, Behavior] = field(default_factory=dict)


class SinkSilent(Exception):
    """The sink did not answer: nobody knows whether it did what it was told."""


def ask_a_person(_: Event, __: Context) -> Decision:
    """Holds every run: a policy."""
    return Hold("every one is looked at")


def act(ask: Ask, behavior: Behavior, event: Event, context: Context) -> None:
    """A handler: it asks how this attempt goes, posts to its sink, and ends so."""
    told = (
        context.handler,
        event.source,
        event.id,
        context.attempt,
        sha256(event.body).hexdigest(),
    )
    outcome = AttemptOutcome(*ask(Call("handler", "begin", told)))
    try:
        _go(Acting(ask, behavior, context, told[:3], outcome))
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
    if behavior.journals:
        one.context.effect(
            EFFECT,
            partial(_journalled, one),
            in_doubt=behavior.in_doubt,
            key=behavior.shared or None,
            approve=behavior.approve,
            key_lifetime=behavior.lifetime,
        )
    elif outcome.posts or behavior.destination:
        try:
            _journalled(one, one.context.idempotency_key(EFFECT))
        except SinkSilent as error:
            raise Transient("the sink did not answer") from error
    _end(one.ask, outcome)


def _journalled(one: Acting, key: str) -> dict[str, str]:
    if one.behavior.destination:
        return _spared(one, key)
    return _told(one, key)


def _spared(one: Acting, key: str) -> dict[str, str]:
    """Does around a call what `ctx.http` does."""
    spec, gate = one.context.destination(one.behavior.destination), one.context.gate
    one.ask(Call("sink", "enter", (spec.name,)))
    gate.enter(spec, one.context.reservations, until=one.context.deadline)
    one.ask(Call("sink", "entered", (spec.name,)))
    try:
        answered = _told(one, key)
    except Exception:
        gate.report(spec, _answer(one.outcome))
        raise
    gate.report(spec, CallOutcome.ok())
    return answered


def _answer(outcome: AttemptOutcome) -> CallOutcome:
    if outcome.error == "limited":
        return CallOutcome.limited(timedelta(seconds=outcome.seconds))
    return CallOutcome.ok() if outcome.error in {"permanent", "deferred"} else CallOutcome.failed()


def _told(one: Acting, key: str) -> dict[str, str]:
    if not one.outcome.posts:
        _end(one.ask, one.outcome)
    return _post(one.ask, one.run, key)


def _post(ask: Ask, run: tuple[str, str, str], key: str) -> dict[str, str]:
    try:
        ask(Call("sink", "post", (key, *run)))
    except Unavailable as error:
        raise SinkSilent from error
    return {"posted": key}


def _end(ask: Ask, outcome: AttemptOutcome) -> None:
    wait = timedelta(seconds=outcome.seconds)
    if outcome.error == "transient":
        raise Transient("down", retry_after=wait)
    if outcome.error == "limited":
        raise Transient("called too often", retry_after=wait, refused=True)
    if outcome.error == "permanent":
        raise Permanent(REFUSAL)
    if outcome.error == "deferred":
        raise Deferred(ask(Call("clock", "now")) + wait)
