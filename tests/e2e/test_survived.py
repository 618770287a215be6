"""Dead workers, a handler that hangs, a downstream that is away: what becomes of their runs.

All but the last befell the inbox when it started; see `misfortunes`.
"""

import json

from tests.e2e.inquiry import FRAGILE
from tests.e2e.misfortunes import Misfortunes
from tests.e2e.whole_inbox import WholeInbox
from tests.waiting import eventually
from webhook_inbox.domain.model import Run, Status


def test_killed_workers_lose_no_run_and_double_no_effect(
    inbox: WholeInbox, misfortunes: Misfortunes
) -> None:
    for event_id in misfortunes.killed:
        (run,) = inbox.settled("lab", event_id).runs

        _lost_then_done(run)
        (effect,) = inbox.effects(event_id).values()
        assert effect["requests"] == run.attempt_count


def test_a_handler_that_killed_its_process_once_is_tried_again(
    inbox: WholeInbox, misfortunes: Misfortunes
) -> None:
    (run,) = inbox.settled("lab", misfortunes.once_lethal).runs

    _lost_then_done(run)
    assert len(inbox.effects(misfortunes.once_lethal)) == 1


def _lost_then_done(run: Run) -> None:
    outcomes = [attempt.outcome for attempt in run.attempts]
    assert (outcomes[0], outcomes[-1]) == ("lost", "done")


def test_a_handler_that_kills_its_process_every_time_is_given_up(
    inbox: WholeInbox, misfortunes: Misfortunes
) -> None:
    run = inbox.becomes(misfortunes.lethal, "lab.gamble", Status.DEAD_LETTER)

    assert run.attempt_count == 2
    assert run.last_error == "exhausted: its worker stopped silently"
    letter = inbox.moved_to_dlq(misfortunes.lethal, lane=FRAGILE, id_=run.message_id)
    assert json.loads(letter["Body"])["handler"] == "lab.gamble"


def test_the_default_lane_works_on_while_workers_of_another_one_die(
    inbox: WholeInbox, misfortunes: Misfortunes
) -> None:
    (unhindered,) = inbox.settled("lab", misfortunes.unhindered).runs

    for event_id in misfortunes.killed:
        (run,) = inbox.settled("lab", event_id).runs
        assert unhindered.done_at < run.attempts[1].started_at


def test_a_handler_that_hangs_is_ended_and_delays_no_other(
    inbox: WholeInbox, misfortunes: Misfortunes
) -> None:
    run = inbox.becomes(misfortunes.hanging, "lab.hurry", Status.DEAD_LETTER)

    assert [attempt.outcome for attempt in run.attempts] == ["timed out", "dead"]
    assert "still running after 30 s" in run.last_error
    (unhindered,) = inbox.settled("lab", misfortunes.unhindered).runs
    assert unhindered.done_at < run.attempts[0].ended_at


def test_a_run_that_hung_is_finished_by_a_replay_after_the_fix(
    inbox: WholeInbox, misfortunes: Misfortunes
) -> None:
    inbox.moved_to_dlq(misfortunes.hanging)
    misfortunes.gate.unlink()

    inbox.replay(event_ids=[misfortunes.hanging])

    inbox.settled("lab", misfortunes.hanging)
    (effect,) = inbox.effects(misfortunes.hanging).values()
    assert effect["requests"] == 3


def test_runs_that_failed_without_the_sink_are_done_when_it_is_back(inbox: WholeInbox) -> None:
    inbox.stop_sink()
    try:
        events = inbox.at_once(5, lambda: inbox.accept("patient"))
        eventually(lambda: all(_refused(inbox, event) for event in events), what="five refusals")
    finally:
        inbox.start_sink()

    for event_id in events:
        inbox.settled("lab", event_id)
        assert [effect["requests"] for effect in inbox.effects(event_id).values()] == [1]


def _refused(inbox: WholeInbox, event_id: str) -> bool:
    """Tells whether an attempt failed because the sink was not there."""
    runs = inbox.runs("lab", event_id).values()
    return any("ConnectError" in attempt.error for run in runs for attempt in run.attempts)
