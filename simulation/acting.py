"""Handlers of simulated worlds: how they act, and how each of their attempts goes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Final

from simulation.stepping import Ask, Call
from webhook_inbox.context import Context, Event
from webhook_inbox.errors import Deferred, Permanent, Transient, Unavailable
from webhook_inbox.policies import Hold
from webhook_inbox.policies import Verdict as Decision

EFFECT: Final = "effect"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one attempt of a handler goes.

    Attributes:
        posts: whether it reaches its sink.
        error: what it raises, after its effect if it has one: "transient", "permanent" or
            "deferred"; "" for nothing.
        seconds: what `error` asks to wait for, or how long the handler takes without one.
    """

    posts: bool = True
    error: str = ""
    seconds: int = 0


@dataclass(frozen=True, slots=True)
class Way:
    """How a handler acts.

    Attributes:
        journals: whether what it does at its sink is an effect; otherwise it sends a key alone.
        in_doubt: what becomes of an effect of which nobody knows: "retry" or "hold".
        shared: the business key that it gives the effects of all events, "" for none.
        approve: whether a person has to approve the effect.
        asks: whether a policy holds each of its runs for a person.
    """

    journals: bool = False
    in_doubt: str = "retry"
    shared: str = ""
    approve: bool = False
    asks: bool = False


PLAIN: Final = Way()


@dataclass(frozen=True, slots=True)
class Handlers:
    """The handlers of a deployment: how they act, and which cannot be imported."""

    broken: frozenset[str] = frozenset()
    ways: Mapping[str, Way] = field(default_factory=dict)


class SinkSilent(Exception):
    """The sink did not answer: nobody knows whether it did what it was told."""


def ask_a_person(_: Event, __: Context) -> Decision:
    """Holds every run: a policy."""
    return Hold("every one is looked at")


def act(ask: Ask, way: Way, event: Event, context: Context) -> None:
    """A handler: it asks how this attempt goes, posts to its sink, and ends so."""
    told = (
        context.handler,
        event.source,
        event.id,
        context.attempt,
        sha256(event.body).hexdigest(),
    )
    verdict = Verdict(*ask(Call("handler", "begin", told)))
    if verdict.seconds and not verdict.error:
        ask(Call("clock", "sleep", (verdict.seconds,)))
    if way.journals:
        context.effect(
            EFFECT,
            partial(_journalled, ask, told[:3], verdict),
            in_doubt=way.in_doubt,
            key=way.shared or None,
            approve=way.approve,
        )
    elif verdict.posts:
        try:
            _post(ask, told[:3], context.idempotency_key(EFFECT))
        except SinkSilent as error:
            raise Transient("the sink did not answer") from error
    _end(ask, verdict)


def _journalled(ask: Ask, run: tuple[str, str, str], verdict: Verdict, key: str) -> dict[str, str]:
    if not verdict.posts:
        _end(ask, verdict)
    return _post(ask, run, key)


def _post(ask: Ask, run: tuple[str, str, str], key: str) -> dict[str, str]:
    try:
        ask(Call("sink", "post", (key, *run)))
    except Unavailable as error:
        raise SinkSilent from error
    return {"posted": key}


def _end(ask: Ask, verdict: Verdict) -> None:
    wait = timedelta(seconds=verdict.seconds)
    if verdict.error == "transient":
        raise Transient("down", retry_after=wait)
    if verdict.error == "permanent":
        raise Permanent("no such order")
    if verdict.error == "deferred":
        raise Deferred(ask(Call("clock", "now")) + wait)
