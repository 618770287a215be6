"""What a handler is given: the event, and the context of its attempt."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from webhook_inbox.destinations.gate import Gate
from webhook_inbox.destinations.propagation import CallChain
from webhook_inbox.domain.errors import Held, Permanent, Transient
from webhook_inbox.domain.idempotency import IdempotencyKey, key_of
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.handlers.completions.tokens import CompletionToken
from webhook_inbox.handlers.completions.wait import EVERY, Waiting
from webhook_inbox.handlers.effects.effect import Effects
from webhook_inbox.handlers.effects.plan import DAY, NEEDS
from webhook_inbox.handlers.policies import require_approval

Clients = Callable[[DestinationSpec, "Context"], Any]


def no_clients(spec: DestinationSpec, _: "Context") -> Any:
    """Gives no client: for a processor without any destination."""
    raise Permanent(f"nothing here can call destination {spec.name!r}")


@dataclass(frozen=True, slots=True)
class Context:
    """One attempt of a run.

    Attributes:
        source: the event's source.
        event_id: the event's id.
        handler: the handler's name.
        attempt: this attempt's number, from 1, over the run's whole life.
        deadline: when the attempt is ended, whatever it is doing.
        traceparent: the W3C trace context that the event came with, "" for none.
        call_chain: the agents that have called one another up to here.
    """

    source: str
    event_id: str
    handler: str
    attempt: int
    deadline: datetime
    destinations: Mapping[str, DestinationSpec]
    secrets: Callable[[str], tuple[str, ...]]
    effects: Effects
    waiting: Waiting
    gate: Gate
    clients: Clients = no_clients
    traceparent: str = ""
    call_chain: CallChain = field(default_factory=CallChain)
    reservations: dict[str, int] = field(default_factory=dict)
    approvals: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

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
        """Lets a side effect happen once, and returns its result, also in every later attempt.

        `fn(key)` is called with the idempotency key to send downstream (`key.uuid` is the same as
        a UUID); a function without parameters is called without, and so is one whose first
        parameter has a default, unless that is called `key` or `idempotency_key`. Its start and its
        result are recorded, so a committed effect is not executed again: its result is returned,
        as the JSON that was recorded.

        What `fn` raises decides: `Permanent` and `Transient(refused=True)` say that nothing was
        done; anything else, or a worker that dies, leaves the effect in doubt.

        Args:
            name: what it is called in the journal, 1-128 printable ASCII characters without "#";
                unique in its handler, and used once an attempt.
            fn: does it; returns JSON, a pydantic model or a dataclass, up to 300 KB as JSON.
            key: a business key that several events share, for what must happen once for all of
                them. By default the event, the handler and the name make the key.
            args: what it is called with. Other arguments in a later attempt hold the run.
            probe: asked where the effect is in doubt, with the key: returns what `fn` would have
                returned if it happened, None if it did not.
            in_doubt: "retry" (with the same key, while the downstream knows it) or "hold" (a
                person decides). By default "hold" for a function that takes no key.
            key_lifetime: how long the downstream knows a key; 24 hours as at Stripe. Beyond that
                the run is held.
            approve: a person has to approve it first: `webhookctl hold approve`.
            needs: seconds that have to be left of the attempt for it to start.

        Raises:
            Held: a person has to decide.
            Permanent: the name was used before, or is inside of another effect.
            Transient: too little time is left.
            Unavailable: the ledger failed.
        """
        return self.effects.effect(
            name,
            fn,
            key=key,
            args=args,
            probe=probe,
            in_doubt=in_doubt,
            key_lifetime=key_lifetime,
            approve=approve,
            needs=needs,
        )

    async def aeffect(self, name: str, fn: Callable[..., Awaitable[Any]], **options: Any) -> Any:
        """Does the same as `effect` with a coroutine function, and so for `probe`."""
        return await self.effects.aeffect(name, fn, **options)

    def wait_for(
        self,
        name: str,
        start: Callable[[IdempotencyKey, CompletionToken], Any],
        *,
        timeout: str | timedelta = DAY,
        poll: Callable[[Any], Any] | None = None,
        every: str | timedelta = EVERY,
        **options: Any,
    ) -> Any:
        """Lets a job begin once that takes longer than a function, and returns its result.

        Until there is one the run waits, without a worker and without spending an attempt; then
        the handler is called again, from its beginning, and gets the result here, as it does in
        every later attempt. It may take up to a quarter of an hour to be called where the news
        of the job's end was lost on its way.

        `start(key, token)` is an effect of this name: it hands the key to the downstream, and the
        token to the job, which tells with it what came of it:

            POST {the inbox's address}{token.path}
            {"result": …}  or  {"error": "why", "retry": true}

        Where it failed and may be retried, this attempt fails, and the next one starts another
        job, as the effect `name:2`, with a token of its own. So does a replay after the run died
        of it. The token is the same whenever `start` is called for the same job.

        Args:
            name: what it is called in the journal, as for `effect`; up to 120 characters.
            start: begins the job, and returns what `poll` needs, such as its id.
            timeout: how long it is waited for, from one second to 28 days.
            poll: asked in addition, with what `start` returned: returns the result, or None while
                there is none. A `Transient` of its counts as none.
            every: how often it is asked, from one second to 15 minutes.
            options: of the effect that starts it: `args`, `probe`, `in_doubt`, `key_lifetime`,
                `approve`, `needs`.

        Raises:
            Deferred: the job has not ended.
            Permanent: it failed, or has not ended in time; or what `effect` has against its name.
            Transient: it failed, and may be retried.
            Held: a person has to decide whether it was started.
            Unavailable: the ledger failed.
        """
        return self.waiting.wait_for(
            name, start, timeout=timeout, poll=poll, every=every, **options
        )

    async def await_for(
        self,
        name: str,
        start: Callable[[IdempotencyKey, CompletionToken], Awaitable[Any]],
        *,
        timeout: str | timedelta = DAY,
        poll: Callable[[Any], Awaitable[Any]] | None = None,
        every: str | timedelta = EVERY,
        **options: Any,
    ) -> Any:
        """Does the same as `wait_for` with coroutine functions."""
        return await self.waiting.await_for(
            name, start, timeout=timeout, poll=poll, every=every, **options
        )

    def hold(self, reason: str, *, shows: str = "") -> None:
        """Lets the run wait until a person approves, and returns in the attempt after that.

        Args:
            reason: what a person is told, who decides by `webhookctl hold approve` or `deny`.
            shows: what it is about, as text; up to 1 KB of it is kept. An approval is for this
                reason and this text: others are asked about anew.

        Raises:
            Held: nobody has approved of it.
        """
        try:
            require_approval("handler", reason, shows=shows, approvals=self.approvals)
        except Held as held:
            # Caught by the handler, it would let that act unapproved.
            self.effects.stop(held)

    def http(self, name: str) -> Any:
        """Returns the client of a destination of inbox.toml: an httpx.Client that knows it.

        Its base URL, credentials, time-outs, idempotency keys, signature and trace are set, its
        answers are judged, and POST, PUT, PATCH and DELETE are effects of their own.

        Raises:
            Permanent: there is no such destination.
        """
        return self.clients(self.destination(name), self)

    def idempotency_key(self, effect: str) -> IdempotencyKey:
        """Returns the key to send downstream with the side effect of this name (G4).

        The same in every attempt, redelivery, redrive and replay, and the one that `effect` uses.
        It fits an HTTP header: at most 255 printable ASCII characters, the tail hashed where the
        whole would not be.
        """
        return key_of(effect, self.handler, self.source, self.event_id)

    def destination(self, name: str) -> DestinationSpec:
        """Returns a destination of inbox.toml; one that is not there is a permanent failure."""
        found = self.destinations.get(name)
        if found is None:
            raise Permanent(f"destination {name!r} is not in inbox.toml: add [destinations.{name}]")
        return found

    def secret(self, name: str) -> str:
        """Returns a handler secret's current value; one that is not set is a transient failure."""
        values = self.secrets(name)
        if not values:
            raise Transient(f"secret {name!r} is not set: webhookctl secrets set {name}")
        return values[0]
