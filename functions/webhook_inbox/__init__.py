"""A durable webhook inbox: every event is verified, stored once, handled once and replayable.

    provider ──► ingest ──► ledger ──► queue ──► processor ──► handler ──► destinations
                              ▲          ▲           └──► DLQ
                              │          ├── replay ◄─────┘
                              └──────────┴── reconciler, every minute

`ingest` verifies and stores an event (with `providers`), `ledger` keeps events and runs in
DynamoDB, `queue` sends runs through SQS, `processor` calls a handler and settles its run, `replay`
sends runs again, `reconciler` repairs runs without a message. `handlers` is the API for
handler authors; `destinations` has the HTTP clients, `testing` the test kit. `configuration` reads
inbox.toml, `domain` holds the model and the ports, `adapters` implement the ports. Handler modules
import the names below, which load lazily. docs/guarantees.md defines the guarantees G1 to G10.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from webhook_inbox.domain.errors import Deferred, Held, Permanent, Skipped, Transient
    from webhook_inbox.domain.idempotency import IdempotencyKey
    from webhook_inbox.domain.manifest import Backoff
    from webhook_inbox.handlers.context import Context
    from webhook_inbox.handlers.current_state import current
    from webhook_inbox.handlers.effects.plan import Approval
    from webhook_inbox.handlers.event import Event
    from webhook_inbox.handlers.forwarding.aws import invoke, start_execution, to_eventbridge
    from webhook_inbox.handlers.forwarding.http import forward
    from webhook_inbox.handlers.ordering.declaration import latest, sequence, serial
    from webhook_inbox.handlers.policies import Deny, Hold, all_of, require_agent
    from webhook_inbox.handlers.router import Router
    from webhook_inbox.handlers.schema_versions import Versions

__all__ = [
    "Approval",
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
    "forward",
    "invoke",
    "latest",
    "require_agent",
    "sequence",
    "serial",
    "start_execution",
    "to_eventbridge",
]

_NAMES_BY_MODULE: Final = {
    "domain.errors": ("Deferred", "Held", "Permanent", "Skipped", "Transient"),
    "domain.idempotency": ("IdempotencyKey",),
    "domain.manifest": ("Backoff",),
    "handlers.context": ("Context",),
    "handlers.current_state": ("current",),
    "handlers.effects.plan": ("Approval",),
    "handlers.event": ("Event",),
    "handlers.forwarding.aws": ("invoke", "start_execution", "to_eventbridge"),
    "handlers.forwarding.http": ("forward",),
    "handlers.ordering.declaration": ("latest", "sequence", "serial"),
    "handlers.policies": ("Deny", "Hold", "all_of", "require_agent"),
    "handlers.router": ("Router",),
    "handlers.schema_versions": ("Versions",),
}

# Hidden from type checkers, which would otherwise accept any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        for module, names in _NAMES_BY_MODULE.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{module}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
