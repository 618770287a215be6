"""`preflight`: checks an AWS account before a deployment; changes nothing."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from webhook_inbox.client.connection import LOCAL, VARIABLE
from webhook_inbox.client.health.preflight.checks import check_account
from webhook_inbox.client.health.preflight.identity import cdk_settings
from webhook_inbox.client.health.preflight.plan import DeploymentPlan
from webhookctl.checkout import Checkout
from webhookctl.display.checks import failed, print_result, summarize
from webhookctl.display.json_object import json_object
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, takes_options
from webhookctl.local.deployment.plan import synthesize_plan

# The name of a stack is this or the context value `stack`, a dash and the stage.
PREFIX: Final = "WebhookInbox"
Context = Annotated[
    list[str] | None,
    typer.Option(
        "-c",
        "--context",
        metavar="KEY=VALUE",
        help="A context value, as for `cdk deploy`; the stage follows from the stack's name.",
    ),
]


@partial(takes_options, without=("local",))
def preflight(call: Invocation, *, context: Context = None) -> None:
    """Check the AWS account, its quotas and its names before `cdk deploy`; changes nothing."""
    stack = _stack(call)
    root = Checkout.required().functions.parent
    values = _context(root, stack, context or [])

    def synthesize() -> DeploymentPlan:
        call.output.note("Synthesizing the template.")
        return synthesize_plan(root, stack, values)

    found = []
    for result in check_account(
        call.selection, project=root, synthesize=synthesize, clock=call.clock
    ):
        found.append(result)
        if not call.as_json:
            print_result(call.output, result)
    if call.as_json:
        call.output.json({"stack": stack, "checks": json_object(found)})
    summarize(call.output, found)
    raise typer.Exit(int(failed(found)))


def _stack(call: Invocation) -> str:
    named = call.selection.stack or os.environ.get(VARIABLE, "")
    if not named or named == LOCAL:
        raise CommandError("preflight checks an AWS account: name the stack with --stack NAME")
    return named


def _context(root: Path, stack: str, given: Sequence[str]) -> dict[str, str]:
    """Returns the context; without a stage, the one that the stack's name ends with."""
    values = {}
    for each in given:
        key, separator, value = each.partition("=")
        if not separator:
            raise typer.BadParameter(f"{each!r} is not KEY=VALUE, as in `-c stage=prod`")
        values[key] = value
    settings = cdk_settings(root / "cdk.json").get("context") or {}
    prefix = f"{values.get('stack') or settings.get('stack') or PREFIX}-"
    stage = stack.removeprefix(prefix) if stack.startswith(prefix) else stack.rpartition("-")[2]
    return {"stage": stage, **values}
