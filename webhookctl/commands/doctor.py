"""`doctor`: checks a deployed inbox, and names the remedy of each finding."""

from typing import Annotated

import typer

from webhookctl.checkout import declared_configuration
from webhookctl.display.checks import failed, print_result, summarize
from webhookctl.invocation import Invocation, takes_options


@takes_options
def doctor(
    call: Invocation,
    *,
    drift: Annotated[
        bool, typer.Option("--drift", help="Start a drift detection; it takes minutes.")
    ] = False,
) -> None:
    """Check the stack, queues, secrets, schedule, alarms and waiting runs; changes nothing.

    Each finding has its remedy. The exit status is 1 if a check failed.
    """
    results = call.client.health.examine(
        configuration=declared_configuration(call.client.target.stage), start_drift=drift
    )
    found = []
    for result in results:
        found.append(result)
        print_result(call.output, result)
    summarize(call.output, found)
    raise typer.Exit(int(failed(found)))
