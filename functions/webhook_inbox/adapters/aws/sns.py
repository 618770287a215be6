"""Publishes to topics of Amazon SNS, and lists their subscriptions."""

from collections.abc import Callable
from typing import Any, Final

from webhook_inbox.adapters.aws.errors import once

PENDING: Final = "PendingConfirmation"
DELETED: Final = "Deleted"

# Returns the client of a region, None for the default one.
Clients = Callable[[str], Any]


class SnsTopics:
    """The topics that announce requests for approval.

    Args:
        clients: returns a client of a region; by default one is created for each message.
    """

    def __init__(self, clients: Clients = lambda _: None) -> None:
        self._clients = clients

    def publish(self, arn: str, subject: str, text: str) -> None:
        """Publishes one message; its subject is printable ASCII, of up to 99 characters.

        Raises:
            Permanent: a retry will not help.
            Transient: a retry may succeed.
        """
        # Loaded with the first message, since few processors announce requests.
        from webhook_inbox.adapters.aws.operation import AwsOperation  # noqa: PLC0415

        # A topic is reached in its own region only.
        region = arn.split(":")[3]
        right = f'allow("sns:Publish", on="{arn}")'
        target = AwsOperation(
            "sns", "publish", right=right, client=self._clients(region), region=region
        )
        target.call(TopicArn=arn, Subject=subject, Message=text)


def list_subscriptions(clients: Callable[[str], Any], topic: str) -> list[tuple[str, bool]]:
    """Returns the addresses that subscribe to a topic, and whether each is confirmed.

    Raises:
        Unavailable: SNS failed; AccessDenied: it refused the call.
    """
    pages = clients("sns").get_paginator("list_subscriptions_by_topic")
    found = once("sns", "ListSubscriptionsByTopic", lambda: list(pages.paginate(TopicArn=topic)))
    every = [(e["Endpoint"], e["SubscriptionArn"]) for page in found for e in page["Subscriptions"]]
    return [(address, arn != PENDING) for address, arn in every if arn != DELETED]
