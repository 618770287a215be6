"""A testing kit for handlers: a whole inbox in memory, with fakes for destinations and time.

    inbox = Inbox("functions")
    run = inbox.run("github.announce", "events/ingest/github/issues.opened__label.json")
    assert run.status == "done"
    assert run.effects["announce"].committed

What runs is the real code, from the acceptance of a delivery to its settled run; only AWS, the
destinations and the time are doubles. `inbox.destinations["crm"]` is the fake behind
`ctx.http("crm")`; a handler that calls anything past `ctx.http` calls it in earnest.

As a fixture, one line:

    @pytest.fixture
    def inbox(): return Inbox("functions")
"""

from webhook_inbox.testing.fake import Fake, KitError, Request
from webhook_inbox.testing.inbox import Inbox
from webhook_inbox.testing.runs import Effect, Run
from webhook_inbox.testing.worker import Died

__all__ = ["Died", "Effect", "Fake", "Inbox", "KitError", "Request", "Run"]
