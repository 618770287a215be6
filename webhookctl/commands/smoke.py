"""`smoke`: tests a deployed inbox from a delivery to a replay, and leaves nothing behind."""

from collections.abc import Callable
from functools import partial
from secrets import token_hex
from typing import Final

import typer
from botocore.exceptions import BotoCoreError, ClientError

from webhook_inbox.domain.errors import InboxError
from webhookctl.errors import CommandError, explain
from webhookctl.invocation import By, Invocation, takes_options
from webhookctl.smoke.steps import SmokeTest

CLEAN_UP: Final = "clean up"
# The errors of an inbox that does not work; any other is a fault of this program.
FAILURES: Final = (CommandError, InboxError, BotoCoreError, ClientError)


@takes_options
def smoke(call: Invocation, *, by: By = None) -> None:
    """Test the inbox with events of its own, from a delivery to a replay.

    It takes at most two minutes, touches no other source and nothing outside the inbox, and deletes
    its events at the end. Run it after each deployment.
    """
    target = call.target
    test = SmokeTest(target, call.clock, token=token_hex(8), by=by or call.caller)
    began, passed = call.clock.now(), False
    try:
        passed = all(_passes(call, step.name, partial(test.run, step)) for step in test.steps)
    finally:
        passed = _passes(call, CLEAN_UP, test.clean_up) and passed
    seconds = (call.clock.now() - began).total_seconds()
    if not call.as_json:
        result = "passed" if passed else "failed"
        call.output.line(f"The smoke test of {target.name} {result} after {seconds:.1f} s.")
    if not passed:
        raise typer.Exit(1)


def _passes(call: Invocation, name: str, act: Callable[[], str]) -> bool:
    """Runs a step, prints its result and its time, and returns whether it succeeded."""
    began, result = call.clock.now(), "ok"
    try:
        detail = act()
    except FAILURES as error:
        result, detail = "failed", explain(error)
    seconds = (call.clock.now() - began).total_seconds()
    if call.as_json:
        told = {"step": name, "result": result, "seconds": round(seconds, 3), "detail": detail}
        call.output.json(told)
    else:
        call.output.labelled(name, [f"{result:<6} {seconds:5.1f} s  {detail}"])
    return result == "ok"
