"""The operations on an inbox, for programs; it never ships to Lambda.

    with InboxClient.connect("WebhookInbox-prod") as inbox:
        for group in inbox.failures.summarize().groups:
            print(group.count, group.handler, group.message)

`client` has the operations, by the groups of `InboxClient`. All types of arguments are here; each
group's module has those of its results.
"""

from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.errors import EndedEarly, NotFound, OperationError, Refused, WrongArgument
from webhook_inbox.client.holds import HoldFilter
from webhook_inbox.client.rejected import RejectionFilter
from webhook_inbox.client.replays import ReplayFilter, ReplayOptions, ReplayPlan
from webhook_inbox.client.runs import JobResult
from webhook_inbox.client.search import EventQuery
from webhook_inbox.client.sources import ProviderHook, Reconciliation
from webhook_inbox.client.stats import StatsWindow
from webhook_inbox.domain.audit import Actor, AuditedAction
from webhook_inbox.domain.errors import AccessDenied, Reason, Unavailable
from webhook_inbox.domain.model import EventStatus

__all__ = [
    "AccessDenied",
    "Actor",
    "AuditedAction",
    "EndedEarly",
    "EventQuery",
    "EventStatus",
    "HoldFilter",
    "InboxClient",
    "JobResult",
    "NotFound",
    "OperationError",
    "ProviderHook",
    "Reason",
    "Reconciliation",
    "Refused",
    "RejectionFilter",
    "ReplayFilter",
    "ReplayOptions",
    "ReplayPlan",
    "StatsWindow",
    "Unavailable",
    "WrongArgument",
]
