"""Serial worlds keep their order, and violations are detected."""

from dataclasses import replace

import pytest

from simulation.engine.failure import Failure
from simulation.search.exhaustive import explore
from simulation.worlds.scenario import Scenario
from simulation.worlds.serial import BLOCKING, CONTINUING, SERIAL_WORLDS
from webhook_inbox.processor.settlement import Settler
from webhook_inbox.queue.line import Line
from webhook_inbox.queue.message import RunMessage

BY_NAME = {scenario.name: scenario for scenario in SERIAL_WORLDS}


def smaller(name: str, **budget: int) -> Scenario:
    scenario = BY_NAME[name]
    return replace(scenario, budget=replace(scenario.budget, **budget))


@pytest.mark.parametrize("name", BY_NAME)
def test_serial_worlds_hold(name: str) -> None:
    assert explore(BY_NAME[name], states=1500).states > 10


def test_their_lanes_are_fifo_and_their_handlers_serial() -> None:
    for deployed in (CONTINUING, BLOCKING):
        assert deployed.manifest.serial_lanes == {"mail"}


def test_a_failed_run_whose_message_is_dropped_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle = Settler.settle
    monkeypatch.setattr(
        Settler,
        "settle",
        lambda *args, **named: replace(settle(*args, **named), keeps_message=False),
    )

    with pytest.raises(Failure):
        explore(smaller("serial, failing"), states=5000)


def test_groups_that_do_not_keep_ordering_keys_together_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RunMessage, "_group", lambda self: self.event_id)

    with pytest.raises(Failure, match="order: "):
        explore(BY_NAME["serial"], states=20_000)


def test_an_ordering_key_that_goes_on_although_it_should_stop_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Line, "head", lambda *_: None)

    with pytest.raises(Failure, match="order: "):
        explore(BY_NAME["a blocked ordering key"], states=20_000)


def test_a_line_that_does_not_move_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Line, "advance", lambda *_, **__: None)

    with pytest.raises(Failure, match="was not sent when its turn came"):
        explore(BY_NAME["a line of three"], states=20_000)
