"""The worlds of destinations, ordering and pauses hold and detect violations."""

from dataclasses import replace

import pytest

from simulation.engine import invocations
from simulation.engine.failure import Failure
from simulation.engine.invocations import with_preloaded
from simulation.engine.stepping import Stepping
from simulation.engine.world import World
from simulation.search.exhaustive import explore
from simulation.worlds.builders import FIRST
from simulation.worlds.destinations import DESTINATION_WORLDS
from simulation.worlds.ordered import ORDERING_WORLDS, PAUSE_WORLDS
from tests.simulation.tiny import TINY, finish, fresh, happens, offered, received, row, with_budget
from webhook_inbox.destinations.circuit import UNKNOWN
from webhook_inbox.destinations.circuit_breaker import CircuitBreaker
from webhook_inbox.destinations.gate import DestinationAdmission, Gate
from webhook_inbox.handlers.ordering.gaps import Gaps
from webhook_inbox.handlers.ordering.key_state import KeyState
from webhook_inbox.ledger.pauses import HandlerPauses, TenantPauses, control_key
from webhook_inbox.processor.admission import Admission
from webhook_inbox.processor.attempt import RunAttempt

WORLDS = {
    scenario.name: scenario for scenario in (*DESTINATION_WORLDS, *ORDERING_WORLDS, *PAUSE_WORLDS)
}
PERSON = "person 1"


@pytest.mark.parametrize("name", WORLDS)
def test_their_first_states_hold(name: str) -> None:
    found = explore(WORLDS[name], states=400)
    assert found.complete or found.states >= 200
    assert found.states > 100
    assert found.schedules > 0


def broken(name: str, states: int = 30_000) -> str:
    """Returns how a world breaks."""
    with pytest.raises(Failure) as failure:
        explore(WORLDS[name], states=states)
    return str(failure.value.violation)


# -- what would go wrong


def test_a_gate_that_admits_every_call_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gate, "admit", lambda *_, **__: DestinationAdmission(go=True))
    monkeypatch.setattr(Gate, "enter", lambda *_, **__: None)
    assert "rate: sink is called more often" in broken("a rate limit with three events")


def test_an_ignored_circuit_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CircuitBreaker, "look", lambda *_: UNKNOWN)
    assert "circuit: sink is called on an outdated read of its circuit" in broken(
        "too many requests"
    )


def test_an_unguarded_ordering_key_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyState, "check_free_for", lambda *_: None)
    assert "order: " in broken("the latest of two")


def test_an_ignored_gap_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gaps, "close", lambda self, early: early.state)
    assert "order: " in broken("a sequence of three")


def test_an_ignored_pause_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HandlerPauses, "paused", lambda *_: None)
    assert "pause: " in broken("a handler is paused and resumed")


def test_an_ignored_pause_of_a_tenant_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TenantPauses, "paused", lambda *_: None)
    assert "pause: " in broken("a tenant is paused and resumed")


def test_a_wait_that_no_message_carries_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    admit = Admission.admit

    def late(self: Admission, attempt: RunAttempt) -> RunAttempt:
        found = admit(self, attempt)
        if found.deferral is None:
            return found
        due = found.deferral.due.replace(year=2036)
        return replace(found, deferral=replace(found.deferral, due=due))

    monkeypatch.setattr(Admission, "admit", late)
    assert "is left without a message" in broken("a circuit opens and recovers")


# -- worlds in which something is there


def test_preloaded_webhooks_are_accepted_at_the_start() -> None:
    world = with_preloaded(
        World(replace(TINY, webhooks=(replace(FIRST, preloaded=True),)), Stepping())
    )
    assert world.observer.acknowledged == {FIRST.event}
    assert world.jobs == {}
    assert offered(world, "sends") == []
    assert len(offered(world, "receives")) == 1


def test_other_webhooks_are_not_sent_at_the_start() -> None:
    assert with_preloaded(fresh()).tries == {}


# -- people who pause


def test_a_person_pauses_and_resumes_as_often_as_may_be() -> None:
    world = fresh(with_budget(pauses=2))
    assert offered(world, "resumes") == []
    happens(world, "pauses", "mail")
    finish(world, PERSON)
    assert world.observer.paused == {"mail": world.clock.ms}
    assert offered(world, "pauses") == []
    happens(world, "resumes", "mail")
    finish(world, PERSON)
    assert world.observer.paused == {}
    assert (offered(world, "pauses"), offered(world, "resumes")) == ([], [])
    control = world.aws.table.row(control_key("mail"))
    assert control is not None
    assert control["paused"] is False


def test_a_second_pause_leaves_the_time_of_the_first() -> None:
    world = fresh()
    world.observer.pause_changed("mail", 1, paused=True)
    world.observer.pause_changed("mail", 2, paused=True)
    assert world.observer.paused == {"mail": 1}


def test_a_pause_whose_answer_is_lost_may_be_in_force() -> None:
    world = fresh(with_budget(pauses=1, faults=1))
    happens(world, "pauses", "mail")
    invocations.step(world, PERSON, "ok")
    happens(world, "step", PERSON, "after")
    assert world.observer.paused == {"mail": world.clock.ms}
    assert world.jobs == {}


def test_a_run_of_a_paused_handler_is_parked() -> None:
    world = received(with_budget(pauses=1))
    happens(world, "pauses", "mail")
    finish(world, PERSON)
    finish(world, "worker 1")
    found = row(world)
    assert found is not None
    assert (found["status"], found["parked"], found["generation"]) == ("deferred", True, 1)
