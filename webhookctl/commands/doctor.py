"""`doctor`: checks a deployed inbox, and names the remedy of each finding."""

from typing import Annotated

import typer

from webhookctl.display.checks import failed, result_object, show, summarize
from webhookctl.doctor.checks import findings
from webhookctl.doctor.examination import Examination
from webhookctl.errors import CommandError
from webhookctl.invocation import Invocation, takes_options
from webhookctl.preflight.reader import Unread


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
    try:
        exam = Examination.of(call.target, call.clock.now(), call.program)
    except Unread as error:
        raise CommandError(f"the stack's resources cannot be listed: {error}") from error
    found = []
    for result in findings(exam, start_drift=drift):
        found.append(result)
        if call.as_json:
            call.output.json(result_object(result))
        else:
            show(call.output, [result])
    if not call.as_json:
        summarize(call.output, found)
    raise typer.Exit(int(failed(found)))
