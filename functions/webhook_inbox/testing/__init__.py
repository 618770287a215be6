"""A test kit for handlers: an in-memory inbox with fake destinations and a manual clock.

    inbox = Inbox("functions")
    run = inbox.run("github.announce", "events/ingest/github/issues.opened__label.json")
    assert run.status == "done"
    assert run.effects["announce"].committed

The production code runs, from ingest to the settled run; only AWS, the destinations and the clock
are doubles. `inbox.destinations["crm"]` is the fake behind `ctx.http("crm")`. Calls that bypass
`ctx.http` are real.
"""

from webhook_inbox.testing.fake import Fake, KitError, Request
from webhook_inbox.testing.inbox import Inbox
from webhook_inbox.testing.runs import Effect, HandlerRun
from webhook_inbox.testing.worker import Died

__all__ = ["Died", "Effect", "Fake", "HandlerRun", "Inbox", "KitError", "Request"]
