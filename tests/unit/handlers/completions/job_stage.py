"""A handler that starts a job and waits for it, in an inbox in memory, and the job's worker."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from tests.unit.support.world import FULFIL, MANIFEST, World
from webhook_inbox import Context, Event, IdempotencyKey, Permanent
from webhook_inbox.domain.ports import Item
from webhook_inbox.handlers.completions.receiver import CompletionOutcome, Completions
from webhook_inbox.handlers.completions.tokens import CompletionToken
from webhook_inbox.ledger.schema import effect_key, wait_key

NAME: Final = "render"


class Labour:
    """An inbox whose handler waits for `render`.

    Attributes:
        started: (key, token) of each time the job was started.
        returned: what the handler was given, each time.
        options: what the handler gives to `wait_for`, beside its name and `starting`.
        starting: what happens when the job is started, beside that it is noted.
        around: what the handler does with the wait, if it does not just return its result.
    """

    def __init__(self, world: World | None = None, **options: Any) -> None:
        self.world = world or World()
        self.started: list[tuple[IdempotencyKey, CompletionToken]] = []
        self.returned: list[Any] = []
        self.options = options
        self.starting: Callable[[IdempotencyKey, CompletionToken], Any] = lambda key, token: {
            "job": str(key)
        }
        self.around: Callable[[Callable[[], Any]], Any] = lambda wait: wait()
        self.world.behaviours["acme.fulfil"] = self._handle

    def _handle(self, event: Event, ctx: Context) -> None:
        def start(key: IdempotencyKey, token: CompletionToken) -> Any:
            self.started.append((key, token))
            return self.starting(key, token)

        self.returned.append(self.around(lambda: ctx.wait_for(NAME, start, **self.options)))

    def allow(self, attempts: int) -> None:
        """Lets the handler have so many attempts."""
        handlers = {**MANIFEST.handlers, "acme.fulfil": replace(FULFIL, max_attempts=attempts)}
        self.world.deploy(replace(MANIFEST, handlers=handlers))

    def begin(self) -> CompletionToken:
        """Delivers an event, lets its handler start the job, and returns the job's token."""
        self.world.deliver()
        self.world.work()
        return self.token

    @property
    def token(self) -> CompletionToken:
        """The token of the job that was started last."""
        return self.started[-1][1]

    def complete(self, token: str = "", body: Any = None) -> CompletionOutcome:
        """Tells what came of the job; with the last token, and a result, unless told otherwise."""
        told = {"result": {"pages": 3}} if body is None else body
        data = told if isinstance(told, bytes) else json.dumps(told).encode()
        return self.completions.by_token(token or self.token, data).outcome

    @property
    def completions(self) -> Completions:
        """The completing use case."""
        return self.world.completions

    @property
    def row(self) -> Item:
        """The row of the first job."""
        return self.job(1)

    def job(self, number: int) -> Item:
        """The row of a job by its number."""
        name = NAME if number == 1 else f"{NAME}:{number}"
        row = self.world.table.get(wait_key("acme", "evt-1", "acme.fulfil", name))
        assert row is not None, f"job {number} has no row"
        return row

    def effect(self, name: str = NAME) -> Item:
        """The row of the effect that starts the job."""
        row = self.world.table.get(effect_key("acme", "evt-1", "acme.fulfil", name))
        assert row is not None, f"no effect {name}"
        return row

    def pass_seconds(self, seconds: float) -> None:
        """Lets time pass, and workers work."""
        self.world.clock.advance(seconds=seconds)
        self.world.work()


class Lost(BaseException):
    """The worker is gone."""


def refuse(key: IdempotencyKey, token: CompletionToken) -> None:
    """Answers as a downstream that accepts no such job."""
    raise Permanent("422: no such template")
