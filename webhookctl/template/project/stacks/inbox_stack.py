"""YOURS: the stack with the inbox, and with what your handlers need besides."""

from pathlib import Path

from aws_cdk import Stack
from constructs import Construct
from webhook_inbox_cdk import InboxProps, WebhookInbox, stack_name

FUNCTIONS = Path(__file__).resolve().parent.parent / "functions"


class InboxStack(Stack):
    """One inbox; `cdk -c stage=NAME` selects its stage, by default dev.

    `rights` are your handlers' AWS permissions, one line each, with `allow` of webhook_inbox_cdk:
    `allow("ses:SendEmail", on="arn:aws:ses:eu-west-1:111122223333:identity/a.example")`
    """

    def __init__(self, scope: Construct) -> None:
        super().__init__(scope, stack_name(scope), description="webhook-inbox")
        props = InboxProps.from_context(self, functions=FUNCTIONS, rights=[])
        self.inbox = WebhookInbox(self, "Inbox", props)
