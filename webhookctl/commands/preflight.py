"""`preflight`: checks an AWS account before a deployment; changes nothing."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from webhook_inbox.adapters.aws.account import resolve
from webhook_inbox.client.connection import LOCAL, VARIABLE
from webhookctl.checkout import Checkout
from webhookctl.display.checks import failed, result_object, show, summarize
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, takes_options
from webhookctl.preflight.checks import identified, results
from webhookctl.preflight.identity import cdk_settings, of_cdk
from webhookctl.preflight.plan import Plan
from webhookctl.preflight.reader import Reader
from webhookctl.preflight.result import Result

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
    account = resolve(call.selection.profile, call.selection.region)
    reader = Reader(account.clients)
    found, caller = identified(reader, account, of_cdk(root))
    _print(call, found)
    if caller.account:
        call.output.note("Synthesizing the template.")
        plan = Plan.synthesized(root, stack, _context(root, stack, context or []))
        for result in results(reader, plan, caller, account, call.clock.now()):
            _print(call, [result])
            found.append(result)
    _finish(call, stack, found)


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


def _print(call: Invocation, found: Sequence[Result]) -> None:
    if not call.as_json:
        show(call.output, found)


def _finish(call: Invocation, stack: str, found: Sequence[Result]) -> None:
    """Prints the JSON or the summary; exits with 1 where a check failed."""
    if call.as_json:
        checks = [result_object(each) for each in found]
        call.output.json({"stack": stack, "checks": checks})
    else:
        summarize(call.output, found)
    raise typer.Exit(int(failed(found)))
