"""A destination answers 503 all night; the run that waits for it is done in the morning.

`tests/simulation/worlds/test_nights.py` has nights with more runs and several workers.
"""

import pytest

from webhook_inbox import Context, Event, Router, serial
from webhook_inbox.testing import Fake, Inbox

NIGHT_HOURS = 12
# The defaults of a breaker.
RECOVERY = 60
FAILURES = 5


@pytest.mark.parametrize("lane", ["standard", "serial"])
def test_a_run_is_done_after_a_night_and_the_calls_are_bounded(lane: str) -> None:
    mailer = Fake().answers(503, times=None)
    router = Router("orders")
    options = {"order": serial(key="customer")} if lane == "serial" else {}

    @router.on("paid", destinations=["mailer"], **options)
    def thank(event: Event, ctx: Context) -> None:
        ctx.http("mailer").post("/thanks", json=event.json(), effect="thank")

    inbox = Inbox(router, destinations={"mailer": mailer})
    run = inbox.run("orders.thank", {"customer": "c-9"})

    inbox.advance(hours=NIGHT_HOURS)
    status, calls = run.status, len(mailer.requests)
    mailer.recovers()
    inbox.settle()

    assert (status, run.status) == ("deferred", "done")
    assert len(mailer.done) == 1
    assert calls <= FAILURES + NIGHT_HOURS * 3600 / RECOVERY
    # The fifth failure opens the circuit.
    assert run.attempts == FAILURES
