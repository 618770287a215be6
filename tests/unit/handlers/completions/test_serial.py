"""Serial lanes: later runs of the ordering key wait behind an awaited job, other keys do not."""

import json
from typing import Any

import pytest

from tests.unit.support.serial import BILL, SerialWorld
from webhook_inbox.domain.model import Status
from webhook_inbox.handlers.completions.receiver import CompletionOutcome
from webhook_inbox.handlers.completions.tokens import CompletionToken

LONGEST_LOOK = 20 * 60


class Press:
    """A serial inbox whose handler waits for a job."""

    def __init__(self) -> None:
        self.world = SerialWorld()
        self.tokens: dict[str, CompletionToken] = {}
        self.printed: list[tuple[str, Any]] = []
        self.world.behaviours[BILL] = self._handle

    def _handle(self, event: Any, ctx: Any) -> None:
        def start(key: str, token: CompletionToken) -> None:
            assert event.id not in self.tokens
            self.tokens[event.id] = token

        self.printed.append((event.id, ctx.wait_for("print", start)))

    def complete(self, event_id: str, result: Any) -> CompletionOutcome:
        body = json.dumps({"result": result}).encode()
        return self.world.completions.by_token(self.tokens[event_id], body).outcome


@pytest.fixture
def press() -> Press:
    return Press()


def test_the_next_ones_of_an_ordering_key_wait_for_the_job_and_others_do_not(press: Press) -> None:
    press.world.accept_all("e1", "e2")
    press.world.accept("f1", "cus_2")
    press.world.outcomes()

    assert set(press.tokens) == {"e1", "f1"}
    assert press.world.bill("e1").status is Status.DEFERRED
    assert press.world.bill("e1").waits_for == "completion of print"

    assert press.complete("e1", 1) is CompletionOutcome.RECORDED
    press.world.wait(LONGEST_LOOK)
    assert press.printed == [("e1", 1)]
    assert set(press.tokens) == {"e1", "f1", "e2"}


def test_jobs_end_in_any_order_and_are_taken_in_the_order_of_acceptance(press: Press) -> None:
    press.world.accept_all("e1", "e2", "e3")
    for event_id in ("e1", "e2", "e3"):
        press.world.wait(LONGEST_LOOK)
        assert press.complete(event_id, event_id.upper()) is CompletionOutcome.RECORDED
    press.world.wait(2 * LONGEST_LOOK)

    assert press.printed == [("e1", "E1"), ("e2", "E2"), ("e3", "E3")]
    assert all(press.world.bill(e).status is Status.DONE for e in ("e1", "e2", "e3"))


def test_a_wait_of_many_hours_keeps_its_message_and_its_attempts(press: Press) -> None:
    press.world.accept_all("e1", "e2")
    press.world.wait(20 * 3600)
    assert press.complete("e1", 1) is CompletionOutcome.RECORDED
    press.world.wait(LONGEST_LOOK)

    assert press.printed == [("e1", 1)]
    assert press.world.bill("e1").attempt_count == 1
    assert len(press.tokens) == 2
