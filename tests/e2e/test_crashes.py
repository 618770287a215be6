"""Workers that are killed in the middle of a handler, and a downstream that is away for a while.

The time in which a lane notices a lost worker is the same for all of its runs, so they are lost
together and looked at afterwards.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.inquiry import FRAGILE
from tests.e2e.waiting import eventually
from tests.e2e.whole_inbox import WholeInbox
from webhook_inbox.model import Run, Status

HANDLERS_AT_WORK = 4
AT_WORK = {Status.PROCESSING}


@dataclass(frozen=True)
class Crashes:
    """What was going on when workers died: events by what became of their handler."""

    killed: list[str]
    lethal: str
    once_lethal: str


@pytest.fixture(scope="module")
def crashes(inbox: WholeInbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashes]:
    directory = tmp_path_factory.mktemp("crashes")
    # The first round starts the workers: cold ones would not all be at work within a handler's
    # three seconds on a slow machine.
    for event_id in _all_at_work(inbox, directory / "warm"):
        inbox.settled("lab", event_id)

    killed = _all_at_work(inbox, directory / "killed", kill=True)

    lethal = _send(inbox, "lethal", "die", _gate(directory / "lethal"))
    once = _gate(directory / "once")
    once_lethal = _send(inbox, "patient", "die", once)
    eventually(lambda: inbox.effects(once_lethal), what="the first attempt's effect")
    once.unlink()
    yield Crashes(killed, lethal, once_lethal)
    (directory / "lethal").unlink()


def _all_at_work(inbox: WholeInbox, file: Path, *, kill: bool = False) -> list[str]:
    """Brings handlers to their middle, may kill their workers there, and opens the gate."""
    gate = _gate(file)
    events = [_send(inbox, "patient", "wait", gate) for _ in range(HANDLERS_AT_WORK)]
    eventually(lambda: all(map(inbox.effects, events)), what="every handler in its middle")
    if kill:
        assert {run.status for event in events for run in _runs(inbox, event)} == AT_WORK
        assert inbox.kill_workers() >= HANDLERS_AT_WORK
    gate.unlink()
    return events


def _gate(file: Path) -> Path:
    file.touch()
    return file


def _send(inbox: WholeInbox, type_: str, mood: str, gate: Path) -> str:
    return inbox.accept(type_, mood=mood, **{"while": str(gate)})


def _runs(inbox: WholeInbox, event_id: str) -> list[Run]:
    return list(inbox.runs("lab", event_id).values())


def test_killed_workers_lose_no_run_and_double_no_effect(
    inbox: WholeInbox, crashes: Crashes
) -> None:
    for event_id in crashes.killed:
        (run,) = inbox.settled("lab", event_id).runs

        _lost_then_done(run)
        (effect,) = inbox.effects(event_id).values()
        assert effect["requests"] == run.attempt_count


def test_a_handler_that_killed_its_process_once_is_tried_again(
    inbox: WholeInbox, crashes: Crashes
) -> None:
    (run,) = inbox.settled("lab", crashes.once_lethal).runs

    _lost_then_done(run)
    assert len(inbox.effects(crashes.once_lethal)) == 1


def _lost_then_done(run: Run) -> None:
    outcomes = [attempt.outcome for attempt in run.attempts]
    assert (outcomes[0], outcomes[-1]) == ("lost", "done")


def test_a_handler_that_kills_its_process_every_time_is_given_up(
    inbox: WholeInbox, crashes: Crashes
) -> None:
    run = inbox.becomes(crashes.lethal, "lab.gamble", Status.DEAD_LETTER)

    assert run.attempt_count == 2
    assert run.last_error == "exhausted: its workers stopped silently"
    letter = inbox.buried(crashes.lethal, lane=FRAGILE)
    assert letter["MessageId"] == run.message_id
    assert json.loads(letter["Body"])["handler"] == "lab.gamble"


def test_the_default_lane_works_on_while_workers_of_another_one_die(
    inbox: WholeInbox, crashes: Crashes
) -> None:
    event_id = inbox.accept("task")

    inbox.settled("lab", event_id, deadline=10)


def test_what_the_sink_could_not_take_is_done_when_it_is_back(inbox: WholeInbox) -> None:
    inbox.stop_sink()
    try:
        events = [inbox.accept("patient") for _ in range(5)]
        for event_id in events:
            run = inbox.becomes(event_id, "lab.endure", Status.FAILED)
            assert "ConnectError" in run.last_error
    finally:
        inbox.start_sink()

    for event_id in events:
        inbox.settled("lab", event_id)
        assert [effect["requests"] for effect in inbox.effects(event_id).values()] == [1]
