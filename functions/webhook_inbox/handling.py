"""All that a handler's module imports."""

from webhook_inbox.context import Context, Event
from webhook_inbox.errors import Deferred, Permanent, Transient
from webhook_inbox.manifest import Backoff
from webhook_inbox.routing import Router

__all__ = ["Backoff", "Context", "Deferred", "Event", "Permanent", "Router", "Transient"]
