"""A test kit for handlers: an in-memory inbox with fake destinations and a manual clock.

    inbox = Inbox("functions")
    run = inbox.run("github.announce", "events/ingest/github/issues.opened__label.json")
    assert run.status == "done"
    assert run.effects["announce"].committed

The production code runs, from ingest to the settled run; only AWS, the destinations and the clock
are doubles. `inbox.destinations["crm"]` is the fake behind `ctx.http("crm")`. Calls that bypass
`ctx.http` are real. `plugin` provides the pytest fixtures `inbox` and `fake`. The names below load
lazily, because pytest imports this package at each start.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from webhook_inbox.testing.errors import KitError
    from webhook_inbox.testing.fake import Fake, Request
    from webhook_inbox.testing.inbox import Inbox
    from webhook_inbox.testing.runs import Effect, HandlerRun
    from webhook_inbox.testing.worker import Died, Step

__all__ = ["Died", "Effect", "Fake", "HandlerRun", "Inbox", "KitError", "Request", "Step"]

_MODULES: Final = {
    "Died": "worker",
    "Effect": "runs",
    "Fake": "fake",
    "HandlerRun": "runs",
    "Inbox": "inbox",
    "KitError": "errors",
    "Request": "fake",
    "Step": "worker",
}

# Hidden from type checkers, which would otherwise accept any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
