"""The registered handlers: written once, kept while a run may be listed."""

from datetime import timedelta

import pytest

from tests.unit.support.faults import Plan
from webhook_inbox.adapters.memory import MemoryTable
from webhook_inbox.adapters.memory.system import START
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.ports import Key
from webhook_inbox.ledger.due_handlers import REMEMBERED, DueHandlers, deploy, registered
from webhook_inbox.ledger.schema import RUN_LIFE

A_DAY = timedelta(days=1)
END = START + RUN_LIFE


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture
def table(plan: Plan) -> MemoryTable:
    return MemoryTable(faults=plan)


def test_a_deployment_is_written_once(table: MemoryTable, plan: Plan) -> None:
    assert deploy(table, ["a", "b"], now=START) == {"a", "b"}
    assert plan.operations() == ["Query", "UpdateItem", "UpdateItem"]
    assert deploy(table, ["a", "b"], now=START) == {"a", "b"}
    assert plan.operations() == ["Query"]
    assert registered(table) == ["a", "b"]


def test_a_removed_handler_stays_until_its_last_run_is_gone(table: MemoryTable) -> None:
    deploy(table, ["a", "b"], now=START)
    assert deploy(table, ["a"], now=START) == {"a", "b"}
    assert deploy(table, ["a"], now=START + REMEMBERED - A_DAY) == {"a", "b"}
    assert deploy(table, ["a"], now=START + REMEMBERED + A_DAY) == {"a"}
    table.delete_expired(START + REMEMBERED + A_DAY)
    assert registered(table) == ["a"]


def test_a_handler_that_returns_stays(table: MemoryTable) -> None:
    deploy(table, ["a"], now=START)
    deploy(table, [], now=START)
    deploy(table, ["a"], now=START + A_DAY)
    assert table.delete_expired(START + 2 * REMEMBERED) == 0


def test_a_worker_registers_a_handler_once(table: MemoryTable, plan: Plan) -> None:
    listed = DueHandlers(table)
    for _ in range(3):
        listed.ensure("a", until=END)
    assert plan.operations() == ["GetItem", "UpdateItem"]
    DueHandlers(table).ensure("a", until=END)
    assert plan.operations() == ["GetItem"]
    assert registered(table) == ["a"]


def test_a_worker_extends_a_registration_that_ends_too_early(table: MemoryTable) -> None:
    deploy(table, ["a"], now=START)
    deploy(table, [], now=START)
    later = START + timedelta(days=20)
    DueHandlers(table).ensure("a", until=later + RUN_LIFE)
    assert "expires_at" not in (table.get(Key("due_index", "handler#a")) or {})


def test_a_worker_that_cannot_register_it_says_so_and_tries_again(
    table: MemoryTable, plan: Plan
) -> None:
    listed = DueHandlers(table)
    plan.fail("UpdateItem")
    with pytest.raises(Unavailable):
        listed.ensure("a", until=END)
    listed.ensure("a", until=END)
    assert registered(table) == ["a"]
