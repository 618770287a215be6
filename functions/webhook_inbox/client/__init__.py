"""The operations on an inbox, for programs; it never ships to Lambda.

    with InboxClient.connect("WebhookInbox-prod") as inbox:
        for group in inbox.failures.summarize().groups:
            print(group.count, group.handler, group.message)

`client` has the operations, by the groups of `InboxClient`; each group's module has its arguments
and results.
"""

from webhook_inbox.client.client import InboxClient
from webhook_inbox.client.errors import EndedEarly, NotFound, OperationError, Refused, WrongArgument
from webhook_inbox.client.holds import HoldFilter
from webhook_inbox.client.rejected import RejectionFilter
from webhook_inbox.client.replays import ReplayFilter, ReplayOptions
from webhook_inbox.client.search import EventQuery
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.errors import AccessDenied, Unavailable

__all__ = [
    "AccessDenied",
    "Actor",
    "EndedEarly",
    "EventQuery",
    "HoldFilter",
    "InboxClient",
    "NotFound",
    "OperationError",
    "Refused",
    "RejectionFilter",
    "ReplayFilter",
    "ReplayOptions",
    "Unavailable",
    "WrongArgument",
]
