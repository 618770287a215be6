"""Workers that are killed in the middle of a handler, and a downstream that is away for a while.

The time in which a lane notices a lost worker is the same for all of its runs, so they are lost
together and looked at afterwards.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.inquiry import FRAGILE
from tests.e2e.waiting import eventually
from tests.e2e.whole_inbox import WholeInbox
from webhook_inbox.model import Run, Status

HANDLERS_AT_WORK = 4


@dataclass(frozen=True)
class Crashes:
    """What was going on when workers died: events by what became of their handler."""

    killed: list[str]
    lethal: str
    once_lethal: str


@pytest.fixture(scope="module")
def crashes(inbox: WholeInbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashes]:
    directory = tmp_path_factory.mktemp("crashes")
    gates = {name: directory / name for name in ("killed", "lethal", "once")}
    for gate in gates.values():
        gate.touch()
    wishes = [("wait", gates["killed"])] * HANDLERS_AT_WORK
    killed = [_send(inbox, "patient", mood, gate) for mood, gate in wishes]
    at_work = [lambda event=event: inbox.effects(event) for event in killed]
    eventually(lambda: all(look() for look in at_work), what="every handler in its middle")
    assert {run.status for event in killed for run in _runs(inbox, event)} == {Status.PROCESSING}

    assert inbox.kill_workers() >= HANDLERS_AT_WORK

    gates["killed"].unlink()
    lethal = _send(inbox, "lethal", "die", gates["lethal"])
    once_lethal = _send(inbox, "patient", "die", gates["once"])
    eventually(lambda: inbox.effects(once_lethal), what="the first attempt's effect")
    gates["once"].unlink()
    yield Crashes(killed, lethal, once_lethal)
    with suppress(FileNotFoundError):
        gates["lethal"].unlink()


def _send(inbox: WholeInbox, type_: str, mood: str, gate: Path) -> str:
    return inbox.accept(type_, mood=mood, **{"while": str(gate)})


def _runs(inbox: WholeInbox, event_id: str) -> list[Run]:
    return list(inbox.runs("lab", event_id).values())


def test_killed_workers_lose_no_run_and_double_no_effect(
    inbox: WholeInbox, crashes: Crashes
) -> None:
    for event_id in crashes.killed:
        (run,) = inbox.settled("lab", event_id).runs

        assert [attempt.outcome for attempt in run.attempts] == ["lost", "done"]
        (effect,) = inbox.effects(event_id).values()
        assert effect["requests"] == 2


def test_a_handler_that_killed_its_process_once_is_tried_again(
    inbox: WholeInbox, crashes: Crashes
) -> None:
    (run,) = inbox.settled("lab", crashes.once_lethal).runs

    assert [attempt.outcome for attempt in run.attempts] == ["lost", "done"]
    assert [effect["requests"] for effect in inbox.effects(crashes.once_lethal).values()] == [2]


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
