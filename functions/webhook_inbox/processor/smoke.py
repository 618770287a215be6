"""The built-in handler of `webhookctl smoke`, which touches nothing outside the inbox."""

from webhook_inbox.domain.errors import Transient
from webhook_inbox.domain.manifest import SMOKE, SMOKE_FAILS
from webhook_inbox.domain.model import Run
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.router import Registered


def smoke_handler(run: Run) -> Registered:
    """Returns the handler for one attempt of a run.

    Its effect records the attempt and the key of its only call. The run of an event `smoke.fails`
    fails until it is replayed.
    """

    def handle(event: Event, ctx: Context) -> None:
        ctx.effect(SMOKE, lambda key: {"attempt": ctx.attempt, "key": key})
        if event.type == SMOKE_FAILS and not run.replays:
            raise Transient("the smoke test makes this run fail until it is replayed")

    return Registered(handle)
