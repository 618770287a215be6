"""All that a handler's module imports."""

from webhook_inbox.context import Context, Event
from webhook_inbox.current import current
from webhook_inbox.effects.plan import Key
from webhook_inbox.errors import Deferred, Held, Permanent, Skipped, Transient
from webhook_inbox.manifest import Backoff
from webhook_inbox.order import latest, sequence, serial
from webhook_inbox.policies import Deny, Hold, all_of, require_agent
from webhook_inbox.routing import Router
from webhook_inbox.versions import Versions

__all__ = [
    "Backoff",
    "Context",
    "Deferred",
    "Deny",
    "Event",
    "Held",
    "Hold",
    "Key",
    "Permanent",
    "Router",
    "Skipped",
    "Transient",
    "Versions",
    "all_of",
    "current",
    "latest",
    "require_agent",
    "sequence",
    "serial",
]
