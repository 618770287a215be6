"""The next action of serial runs: the run that each waits for, and the end of the wait."""

from datetime import timedelta

from tests.unit.client.test_next_action import MINUTE, NOW, words
from webhook_inbox.domain.model import Status
from webhook_inbox.ledger.pauses import RESUMPTION
from webhook_inbox.queue.line import TURN


def test_one_that_waits_for_its_turn_says_behind_which() -> None:
    said = words(
        Status.DEFERRED,
        waits_for=TURN,
        parked=True,
        ordering_key="cus_1",
        next_attempt_at=NOW,
        last_error="it waits for its turn: the run of evt_0 is the first of cus_1",
    )

    assert said.startswith("Finish the runs before it: ")
    assert "the run of evt_0 is the first of cus_1" in said


def test_a_dead_one_that_stops_its_ordering_key_says_so() -> None:
    said = words(
        Status.DEAD_LETTER, last_error="permanent: a 422", ordering_key="cus_1", blocking=True
    )

    assert said.startswith("Fix stripe.fulfil: ")
    assert " Until then later events of cus_1 wait; " in said
    assert said.endswith(
        "webhookctl skip evt_1 --source stripe --handler stripe.fulfil --reason TEXT"
    )


def test_a_dead_one_whose_ordering_key_went_on_says_nothing_of_it() -> None:
    said = words(Status.DEAD_LETTER, last_error="permanent: a 422", ordering_key="cus_1")

    assert "cus_1" not in said


def test_one_that_was_sent_and_not_begun_may_be_behind_others() -> None:
    said = words(Status.PENDING, last_at=NOW - MINUTE, ordering_key="cus_1")

    assert said.startswith("Wait: ")
    assert "earlier events of cus_1 come first" in said


def test_one_of_a_paused_handler_continues_like_any_other() -> None:
    waits = {"waits_for": RESUMPTION, "next_attempt_at": NOW + timedelta(hours=1)}

    assert "within two minutes of" in words(
        Status.DEFERRED, parked=True, ordering_key="cus_1", **waits
    )
