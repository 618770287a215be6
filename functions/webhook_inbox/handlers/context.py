"""The context of an attempt, the second argument of a handler."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Unpack

from webhook_inbox.destinations.gate import Gate
from webhook_inbox.destinations.propagation import CallChain
from webhook_inbox.domain.errors import Held, Permanent, Transient
from webhook_inbox.domain.idempotency import IdempotencyKey, key_of, versioned
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Clients, no_clients
from webhook_inbox.handlers.completions.tokens import CompletionToken
from webhook_inbox.handlers.completions.wait import Waiting, WaitOptions
from webhook_inbox.handlers.effects.effect import Effects
from webhook_inbox.handlers.effects.plan import EffectOptions
from webhook_inbox.handlers.policies import require_approval


@dataclass(frozen=True, slots=True)
class Context:
    """One attempt of a run.

    Attributes:
        source: the event's source.
        event_id: the event's id.
        handler: the handler's name.
        attempt: this attempt's number, from 1, counted over the run's whole life.
        deadline: when the attempt is aborted.
        traceparent: the W3C trace context to send on: the trace of the event, and this attempt's
            span.
        call_chain: the chain of agent calls that led to this event.
        key_version: the version of its effects' keys, raised by `webhookctl replay --new-keys`.
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
    key_version: int = 0

    def effect(
        self,
        name: str,
        fn: Callable[..., Any],
        **options: Unpack[EffectOptions],
    ) -> Any:
        """Runs a side effect once, and returns its recorded result in every later attempt.

        `fn(key)` receives the idempotency key to send downstream (`key.uuid` is the same key as a
        UUID). A function without parameters is called without it, as is one whose first parameter
        has a default, unless it is named `key` or `idempotency_key`.

        If `fn` raises `Permanent` or `Transient(refused=True)`, nothing was done. After any other
        error, or the death of the worker, the effect is in doubt. It is so until it commits, the
        probe finds nothing, or a person decides; no error ends a doubt.

        Args:
            name: its name in the journal, 1-128 printable ASCII characters without "#"; unique in
                the handler and used once per attempt.
            fn: performs it; returns JSON data, a pydantic model or a dataclass, at most 300 KB.
            key: a business key shared by several events, for an effect that happens once for all
                of them, at most 1024 bytes. By default the key is per event, handler and name.
            args: its arguments as data. A later attempt with other arguments is held.
            probe: called with the key if the effect is in doubt; returns the result of `fn` if it
                happened, or None if it did not.
            in_doubt: "retry" (repeat with the same key within `key_lifetime`) or "hold" (a person
                decides). By default "hold" if `fn` takes no key.
            key_lifetime: how long the downstream keeps a key; 24 h as at Stripe. An effect in
                doubt is held where the attempt could end later than this.
            approve: hold the run until a person approves: `webhookctl hold approve`. `Approval(…)`
                announces the request to the people of a group, and needs `args`.
            needs: seconds that must be left in the attempt for the effect to start.

        Raises:
            Held: a person must decide.
            Permanent: the name is invalid or in use, or another effect is running.
            Transient: too little time is left.
            Unavailable: the ledger failed.
        """
        return self.effects.effect(name, fn, **options)

    async def aeffect(
        self, name: str, fn: Callable[..., Awaitable[Any]], **options: Unpack[EffectOptions]
    ) -> Any:
        """Does the same as `effect` with coroutine functions for `fn` and `probe`."""
        return await self.effects.aeffect(name, fn, **options)

    def wait_for(
        self,
        name: str,
        start: Callable[[IdempotencyKey, CompletionToken], Any],
        **options: Unpack[WaitOptions],
    ) -> Any:
        """Starts a job once and returns its result; the run is deferred until the job has ended.

        A deferred run uses no worker and counts no attempt. When the job ends, the handler is
        called again from its beginning and receives the result here, as in every later attempt.
        If the completion's wake-up is lost, this takes up to 15 minutes.

        `start(key, token)` is an effect of this name. It passes the token to the job, which reports
        its end with it:

            POST {the inbox's URL}{token.path}
            {"result": …}  or  {"error": "why", "retry": true}

        After an error with `retry`, this attempt fails and the next one starts another job as the
        effect `name:2`, with a new token. So does a replay of a run that died of the error. The
        token of a job never changes.

        Args:
            name: its name in the journal, as for `effect`; at most 120 characters.
            start: starts the job; returns JSON data for `poll`, such as the job's id.
            timeout: how long the job may take, 1 second to 28 days.
            poll: called with the result of `start`; returns the job's result, or None while it
                runs. A `Transient` from it counts as None.
            every: the interval of `poll`, 1 second to 15 minutes.
            options: `args`, `probe`, `in_doubt`, `key_lifetime`, `approve` and `needs` of the
                effect that starts the job.

        Raises:
            Deferred: the job has not ended.
            Permanent: the job failed or timed out, or the name is invalid or in use.
            Transient: the job failed and may be retried.
            Held: a person must decide whether the job was started.
            Unavailable: the ledger failed.
        """
        return self.waiting.wait_for(name, start, **options)

    async def await_for(
        self,
        name: str,
        start: Callable[[IdempotencyKey, CompletionToken], Awaitable[Any]],
        **options: Unpack[WaitOptions],
    ) -> Any:
        """Does the same as `wait_for` with coroutine functions."""
        return await self.waiting.await_for(name, start, **options)

    def hold(self, reason: str, *, shows: str = "") -> None:
        """Holds the run until a person approves; returns in the attempt after the approval.

        Args:
            reason: the question, decided by `webhookctl hold approve` or `deny`.
            shows: the subject as text, at most 1 KB. An approval is valid for this reason and text
                only.

        Raises:
            Held: it is not approved.
        """
        try:
            require_approval("handler", reason, shows=shows, approvals=self.approvals)
        except Held as held:
            # A handler that catches this error must not act unapproved.
            self.effects.stop(held)

    def http(self, name: str) -> Any:
        """Returns an `httpx.Client` for a destination of inbox.toml.

        It sets the base URL, credentials, timeouts, idempotency key, signature and trace context,
        raises on error responses, and runs POST, PUT, PATCH and DELETE as effects.

        Raises:
            Permanent: the destination is not in inbox.toml.
        """
        return self.clients(self.destination(name), self)

    def idempotency_key(self, effect: str) -> IdempotencyKey:
        """Returns the idempotency key of the effect of this name, as `effect` uses it (G4).

        It is the same in every attempt, redelivery, redrive and replay, except a replay with new
        keys, and fits an HTTP header: at most 255 printable ASCII characters, the tail hashed if it
        would exceed them.
        """
        named = versioned(effect, self.key_version)
        return key_of(named, self.handler, self.source, self.event_id)

    def destination(self, name: str) -> DestinationSpec:
        """Returns a destination of inbox.toml; raises Permanent if there is none."""
        found = self.destinations.get(name)
        if found is None:
            raise Permanent(f"destination {name!r} is not in inbox.toml: add [destinations.{name}]")
        return found

    def secret(self, name: str) -> str:
        """Returns a secret's current value; raises Transient if it is not set."""
        values = self.secrets(name)
        if not values:
            raise Transient(f"secret {name!r} is not set: webhookctl secrets set {name}")
        return values[0]
