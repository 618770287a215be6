"""`smoke`: tests a deployed inbox from a delivery to a replay, and leaves nothing behind."""

import typer

from webhookctl.display.checks import failed, print_step
from webhookctl.invocation import By, Invocation, takes_options


@takes_options
def smoke(call: Invocation, *, by: By = None) -> None:
    """Test the inbox with events of its own, from a delivery to a replay.

    It takes at most two minutes, touches no other source and nothing outside the inbox, and deletes
    its events at the end. Run it after each deployment.
    """
    began, found = call.clock.now(), []
    test = call.client.health.smoke_test(by=call.actor(by))
    try:
        for result in test:
            found.append(result)
            print_step(call.output, result)
    finally:
        found.append(test.clean_up())
        print_step(call.output, found[-1])
    seconds = (call.clock.now() - began).total_seconds()
    if not call.as_json:
        outcome = "failed" if failed(found) else "passed"
        call.output.line(f"The smoke test of {call.target.name} {outcome} after {seconds:.1f} s.")
    if failed(found):
        raise typer.Exit(1)
