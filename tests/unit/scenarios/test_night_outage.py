"""A destination answers 503 all night; with the default retries and breaker, no run dies of it."""

import pytest

from webhook_inbox import Context, Event, Router, serial
from webhook_inbox.testing import Fake, Inbox

NIGHT_HOURS = 12
RECOVERY = 60
FAILURES = 5


def inbox_of(mailer: Fake, *, lane: str = "standard") -> Inbox:
    router = Router("orders")
    options = {"order": serial(key="customer")} if lane == "serial" else {}

    @router.on("paid", destinations=["mailer"], **options)
    def thank(event: Event, ctx: Context) -> None:
        ctx.http("mailer").post("/thanks", json=event.json(), effect="thank")

    return Inbox(router, destinations={"mailer": mailer})


@pytest.mark.parametrize("lane", ["standard", "serial"])
@pytest.mark.parametrize("runs", [1, 5, 20])
def test_every_run_is_done_after_a_night_and_the_calls_are_bounded(runs: int, lane: str) -> None:
    mailer = Fake().answers(503, times=None)
    inbox = inbox_of(mailer, lane=lane)
    waiting = [inbox.run("orders.thank", {"customer": f"c-{n % 7}"}) for n in range(runs)]

    inbox.advance(hours=NIGHT_HOURS)
    calls = len(mailer.requests)
    statuses = {run.status for run in waiting}
    mailer.recovers()
    inbox.settle()

    assert "dead_letter" not in statuses
    assert {run.status for run in waiting} == {"done"}
    assert len(mailer.done) == runs
    assert calls <= FAILURES + NIGHT_HOURS * 3600 / RECOVERY
    assert all(run.attempts <= FAILURES + 1 for run in waiting)
