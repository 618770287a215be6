"""All that a handler's module imports."""

from webhook_inbox.domain.errors import Deferred, Held, Permanent, Skipped, Transient
from webhook_inbox.domain.idempotency import IdempotencyKey
from webhook_inbox.domain.manifest import Backoff
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.current_state import current
from webhook_inbox.handlers.event import Event
from webhook_inbox.handlers.ordering.declaration import latest, sequence, serial
from webhook_inbox.handlers.policies import Deny, Hold, all_of, require_agent
from webhook_inbox.handlers.router import Router
from webhook_inbox.handlers.schema_versions import Versions

__all__ = [
    "Backoff",
    "Context",
    "Deferred",
    "Deny",
    "Event",
    "Held",
    "Hold",
    "IdempotencyKey",
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
