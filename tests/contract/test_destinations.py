"""The gate's writes are such as every table takes."""

from dataclasses import replace
from datetime import timedelta

from tests.unit.support.world import World
from webhook_inbox.adapters.memory import ManualClock, SeededRandomness
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.gate import Gate
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec
from webhook_inbox.domain.ports import Table

CRM = DestinationSpec("crm", "https://crm.example", rate=1.0, breaker=BreakerSpec(failures=2))


def test_a_rate_a_pause_and_a_circuit_are_kept_in_any_table(table: Table) -> None:
    clock = ManualClock()
    ports = replace(World().ports, table=table, clock=clock)
    gate, other = (Gate(replace(ports, randomness=SeededRandomness(n))) for n in range(2))
    reservations = dict(gate.admit([CRM], kept={}).reservations)
    gate.enter(CRM, reservations, until=clock.now() + timedelta(seconds=30))
    rest = [other.admit([CRM], kept={}) for _ in range(4)]
    assert [one.go for one in rest] == [True, False, False, False]
    assert rest[-1].on_limit == "queue"

    gate.report(CRM, CallOutcome.limited(timedelta(seconds=20)))
    clock.advance(seconds=1)
    assert "paused" in other.admit([CRM], kept=rest[1].reservations).why

    for _ in range(2):
        gate.report(CRM, CallOutcome.failed())
    clock.advance(seconds=81)
    assert [gate.admit([CRM], kept={}).go, other.admit([CRM], kept={}).go] == [True, False]
    gate.enter(CRM, reservations, until=clock.now() + timedelta(seconds=30))
    gate.report(CRM, CallOutcome.ok())
    clock.advance(seconds=30)
    assert other.admit([CRM], kept={}).go
    assert [*gate.degraded(), *other.degraded()] == []
