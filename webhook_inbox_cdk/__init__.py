"""The AWS infrastructure: one construct per component, and `WebhookInbox`, which combines them.

    API Gateway ─► Ingest ─► Ledger (DynamoDB), Bodies (S3), Lane (SQS with its DLQ)
    Lane ─► Processor        DLQ ─► Replay        every minute: Reconciler        Alarms

A CDK app imports the names below. They load lazily: `bundle` and `vendor`, which the local runtime
uses too, do without CDK.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from webhook_inbox_cdk.app import synthesis
    from webhook_inbox_cdk.inbox import InboxProps, WebhookInbox
    from webhook_inbox_cdk.names import stack_name, stage_of
    from webhook_inbox_cdk.processor import Placement, allow

# jsii prints a banner on the Node that most machines still have.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

__all__ = [
    "InboxProps",
    "Placement",
    "WebhookInbox",
    "allow",
    "stack_name",
    "stage_of",
    "synthesis",
]

_MODULES: Final = {
    "InboxProps": "inbox",
    "Placement": "processor",
    "WebhookInbox": "inbox",
    "allow": "processor",
    "stack_name": "names",
    "stage_of": "names",
    "synthesis": "app",
}

# Hidden from type checkers, which would otherwise accept any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
