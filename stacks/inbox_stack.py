"""This repository's stack: the inbox and your handlers' rights, configured by CDK context."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from stacks.bundle import HOME
from stacks.inbox import InboxProps, WebhookInbox
from stacks.permissions import handler_rights
from stacks.processor import DEFAULT_CONCURRENCY, Placement
from webhook_inbox.domain.errors import ConfigurationError

LOCAL = "local"


class InboxStack(Stack):
    """A stack with one inbox, named after its stage.

    Context: `stage` (default "dev"); `functions`, the directory with your handlers and
    inbox.toml (default: this repository's); `local`, no wheels in the bundles (implied by the
    stage "local"); `max_concurrency`; `reserved_concurrency`; and `vpc`, an object with `id`,
    `availability_zones` and `private_subnet_ids`, so that synthesis needs no lookup.
    """

    def __init__(self, scope: Construct) -> None:
        stage = scope.node.try_get_context("stage") or "dev"
        super().__init__(scope, f"WebhookInbox-{stage}", description="webhook-inbox")
        self.inbox = WebhookInbox(
            self,
            "Inbox",
            InboxProps(
                stage=stage,
                functions=Path(self.node.try_get_context("functions") or HOME),
                local=stage == LOCAL or _switch(self.node.try_get_context("local")),
                placement=self._placement(),
            ),
        )

    def _placement(self) -> Placement:
        context = self.node.try_get_context
        many = _number("max_concurrency", context("max_concurrency"))
        return Placement(
            max_concurrency=DEFAULT_CONCURRENCY if many is None else many,
            reserved_concurrency=_number("reserved_concurrency", context("reserved_concurrency")),
            vpc=self._vpc(context("vpc")),
            rights=handler_rights(),
        )

    def _vpc(self, given: Mapping[str, Any] | None) -> ec2.IVpc | None:
        if not given:
            return None
        return ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=given["id"],
            availability_zones=given["availability_zones"],
            private_subnet_ids=given["private_subnet_ids"],
        )


def _number(name: str, given: Any) -> int | None:
    """Returns a context value as an integer; the command line passes text."""
    if given is None:
        return None
    try:
        return int(given)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"context {name}: {given!r} is not a whole number") from error


def _switch(given: Any) -> bool:
    return str(given).lower() == "true"
