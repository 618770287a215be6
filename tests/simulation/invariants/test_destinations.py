"""A destination is called only as its circuit, its pause and its rate limit allow."""

from dataclasses import replace
from typing import Any

import pytest

from simulation.engine.acting import Behavior
from simulation.engine.jobs import Job
from simulation.engine.stepping import Call
from simulation.engine.world import World
from simulation.invariants.destinations import BELIEVED_MS, called, is_optional, note_circuit_read
from simulation.invariants.observer import Violation
from simulation.worlds.scenario import Deployment, handler, manifest
from tests.simulation.tiny import TINY, WORKER, received
from webhook_inbox.destinations.circuit import breaker_key, limit_key
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.ports import Change, Key
from webhook_inbox.ledger.pauses import control_key

ROW = breaker_key("sink")


def calling(**settings: Any) -> World:
    """Returns a world in which a worker is about to work on a run that calls a destination."""
    sink = DestinationSpec("sink", "https://sink.example", **settings)
    mail = handler("mail", destinations=("sink",))
    deployed = Deployment(
        "calling", manifest(mail, sink=sink), behaviors={"mail": Behavior(destination="sink")}
    )
    return received(replace(TINY, deployments=(deployed,)))


def circuit(world: World, **values: int | str) -> None:
    """Writes the circuit's row, some time ago."""
    world.aws.table.update(ROW, Change(set=values))
    world.aws.table.written.clear()
    number, _ = world.observer.circuits.get(ROW.pk, (0, 0))
    world.observer.circuits[ROW.pk] = number + 1, world.clock.ms - BELIEVED_MS


def job(world: World, **parts: Any) -> Job:
    """Returns the worker, which has just looked at the circuit."""
    found = note_circuit_read(world, world.jobs[WORKER], ROW)
    return found._replace(**{"entering": world.clock.ms, **parts})


def refused(world: World, one: Job, text: str) -> None:
    with pytest.raises(Violation, match=text):
        called(world, one, "sink")


# -- the circuit


def test_a_call_while_the_circuit_is_open_is_a_violation() -> None:
    world = calling()
    circuit(world, open_until=world.clock.ms + 1)
    refused(world, job(world), "circuit: sink is called although its circuit is open")


def test_a_circuit_read_before_it_opened_is_valid_for_a_second() -> None:
    world = calling()
    before = job(world)
    circuit(world, open_until=world.clock.ms + 60_000)
    called(world, before._replace(entering=world.clock.ms - 1), "sink")
    refused(world, before, "circuit: sink is called on an outdated read of its circuit")


def test_only_the_probe_calls_while_it_recovers() -> None:
    world = calling()
    mine = job(world).message
    assert mine is not None
    circuit(world, open_until=world.clock.ms, probe=f"{mine.receipt}.0")
    called(world, job(world), "sink")
    circuit(world, probe="another-receipt.0")
    refused(world, job(world), "circuit: sink is called in addition to its probe")


def test_a_destination_without_a_breaker_is_open_to_all() -> None:
    world = calling(breaker=None)
    circuit(world, open_until=world.clock.ms + 60_000)
    called(world, job(world), "sink")


def test_a_call_while_the_destination_is_paused_is_a_violation() -> None:
    world = calling(breaker=None)
    circuit(world, paused_until=world.clock.ms + 1)
    refused(world, job(world), "circuit: sink is called although it is paused")


@pytest.mark.parametrize("excuse", ["blind", "overdue"])
def test_a_worker_that_cannot_read_the_circuit_may_call(excuse: str) -> None:
    world = calling()
    circuit(world, open_until=world.clock.ms + 60_000)
    called(world, job(world, **{excuse: True}), "sink")
    assert world.observer.calls == {}


def test_without_a_breaker_only_a_circuit_that_a_person_opened_bars_calls() -> None:
    world = calling(breaker=None)
    circuit(world, open_until=world.clock.ms + 1)
    called(world, job(world), "sink")
    circuit(world, held_since=1)
    refused(world, job(world), "circuit: sink is called although its circuit is open")


# -- the rate


def test_a_rate_is_a_rate_in_any_ten_seconds() -> None:
    world = calling(rate=0.1)
    for _ in range(2):
        called(world, job(world), "sink")
    refused(world, job(world), "rate: sink is called more often than 0.1/s")


def test_calls_are_forgotten_after_ten_seconds() -> None:
    world = calling(rate=0.1)
    for _ in range(2):
        called(world, job(world), "sink")
    world.clock.ms += 10_000
    called(world, job(world), "sink")
    assert world.observer.calls == {"sink": (world.clock.ms,)}


def test_calls_without_a_rate_are_not_limited() -> None:
    world = calling()
    for _ in range(100):
        called(world, job(world), "sink")
    assert world.observer.calls == {}


# -- what a worker may go without


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (ROW, True),
        (limit_key("sink"), True),
        (control_key("mail"), True),
        (Key("event#acme#e1", "run#mail"), False),
    ],
)
def test_it_goes_on_without_destinations_and_controls(key: Key, expected: bool) -> None:
    assert is_optional(Call("table", "get", (key,))) is expected


def test_it_goes_on_without_the_pauses_of_tenants() -> None:
    assert is_optional(Call("table", "query", (control_key("mail").pk,)))


@pytest.mark.parametrize(
    "call",
    [
        Call("table", "query", ("destination#sink",)),
        Call("clock", "now"),
        Call("blobs", "get", (ROW,)),
    ],
    ids=["a query", "the clock", "another port"],
)
def test_any_other_call_has_to_be_answered(call: Call) -> None:
    assert not is_optional(call)
