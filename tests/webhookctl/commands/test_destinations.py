"""`destinations list`: circuit, rate, waiting runs, oldest run and next probe."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.support.world import handler
from tests.webhookctl.commands.stage import KIM, MANIFEST, Cli, Inbox
from webhook_inbox.client import waiting
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.gate import Gate
from webhook_inbox.domain.audit import Actor
from webhook_inbox.domain.manifest import BreakerSpec, DestinationSpec

CRM = DestinationSpec("crm", "https://crm.example", rate=2.0, breaker=BreakerSpec(failures=3))
PLAIN = DestinationSpec("plain", "https://plain.example", breaker=None)
CALLING = replace(
    MANIFEST,
    handlers={"acme.fulfil": handler("acme.fulfil", "paid", destinations=("crm",))},
    destinations={"crm": CRM, "plain": PLAIN},
)


@pytest.fixture
def inbox(inbox: Inbox) -> Inbox:
    """An inbox whose handler calls a destination."""
    inbox.deploy(CALLING)
    return inbox


@pytest.fixture
def cli(cli: Cli) -> Cli:
    cli.manifest = CALLING
    return cli


@pytest.fixture
def gate(inbox: Inbox) -> Gate:
    return Gate(inbox.ports)


def fail(gate: Gate, times: int) -> None:
    for _ in range(times):
        gate.report(CRM, CallOutcome.failed())


def listed(cli: Cli, name: str = "crm") -> dict[str, Any]:
    """Returns one destination as JSON."""
    [found] = [
        each
        for each in cli("destinations", "list", "--json").objects
        if each["destination"] == name
    ]
    return dict(found)


def row(cli: Cli) -> list[str]:
    """Returns the cells of the first destination."""
    shown = cli("destinations", "list")
    assert shown.code == 0
    return [cell.strip() for cell in shown.out.splitlines()[1].split("  ") if cell.strip()]


def test_a_healthy_destination_has_a_closed_circuit_and_nothing_waits(cli: Cli) -> None:
    assert listed(cli) == {
        "destination": "crm",
        "base_url": "https://crm.example",
        "circuit": "closed",
        "opened_by_hand": None,
        "failures": 0,
        "next_probe": None,
        "paused_until": None,
        "rate": "2/s",
        "queue_until": None,
        "waiting": 0,
        "waiting_is_complete": True,
        "oldest": None,
    }
    assert row(cli) == ["crm", "closed", "2/s", "0", "-", "-"]


def test_one_without_breaker_and_rate_has_neither(cli: Cli) -> None:
    found = listed(cli, "plain")
    assert (found["circuit"], found["rate"], found["next_probe"]) == (None, None, None)
    assert "plain        none     -" in cli("destinations", "list").out


def test_failures_below_the_threshold_are_counted(cli: Cli, gate: Gate) -> None:
    fail(gate, 2)
    assert listed(cli)["failures"] == 2
    assert row(cli)[1] == "closed, 2 failures"


def test_an_open_circuit_names_its_next_probe_and_the_oldest_of_the_runs_that_wait(
    cli: Cli, inbox: Inbox, gate: Gate
) -> None:
    fail(gate, 3)
    inbox.deliver("evt-1")
    inbox.clock.advance(seconds=5)
    inbox.deliver("evt-2")
    inbox.work_once()
    inbox.work_once()
    assert inbox.handled == []
    found = listed(cli)
    assert (found["circuit"], found["waiting"]) == ("open", 2)
    assert found["next_probe"] == "2026-01-01T00:01:00.000Z"
    assert found["oldest"]["event_id"] == "evt-1"
    assert found["oldest"]["handler"] == "acme.fulfil"
    assert listed(cli, "plain")["waiting"] == 0
    cells = row(cli)
    assert cells[:4] == ["crm", "open, 3 failures", "2/s", "2"]
    assert cells[4].endswith("s ago")
    assert cells[5].startswith("in 54 s")


def test_after_the_recovery_a_probe_is_allowed_now(cli: Cli, inbox: Inbox, gate: Gate) -> None:
    fail(gate, 3)
    inbox.clock.advance(seconds=CRM.breaker.recovery + 1 if CRM.breaker else 0)
    assert listed(cli)["circuit"] == "recovering"
    assert row(cli)[5] == "now"


def test_a_pause_has_its_end(cli: Cli, gate: Gate) -> None:
    gate.report(CRM, CallOutcome.limited(timedelta(seconds=30)))
    assert listed(cli)["paused_until"] == "2026-01-01T00:00:30.000Z"
    assert row(cli)[1] == "closed, paused for 30 s"


def test_the_number_is_at_least_one_where_the_index_has_more_than_is_read(
    cli: Cli, inbox: Inbox, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "PER_SHARD", 1)
    fail(gate, 3)
    for number in range(12):
        inbox.deliver(f"evt-{number}")
        inbox.work_once()
    found = listed(cli)
    assert not found["waiting_is_complete"]
    assert 1 <= found["waiting"] < 12
    assert row(cli)[3].startswith("at least ")


def test_an_expired_row_counts_as_absent(cli: Cli, inbox: Inbox, gate: Gate) -> None:
    fail(gate, 2)
    inbox.clock.advance(minutes=36 * 24 * 60)
    assert listed(cli)["failures"] == 0


def test_no_destination_and_no_manifest_are_said(cli: Cli) -> None:
    cli.manifest = MANIFEST
    assert cli("destinations", "list").err == "The deployed inbox has no destinations.\n"
    cli.manifest = None
    assert cli("destinations", "list").code == 1


# -- by hand


WHY = ("--reason", "maintenance", "--by", "kim")


def audited(inbox: Inbox) -> list[tuple[str, str, str, dict[str, int]]]:
    rows = (row for row in inbox.table if row["pk"].startswith("audit#"))
    return [
        (row["action"], str(Actor.of(row)), row["request"]["destination"], row["counts"])
        for row in rows
    ]


def test_a_circuit_that_is_opened_by_hand_holds_the_runs_until_it_is_closed_by_hand(
    cli: Cli, inbox: Inbox
) -> None:
    shown = cli("destinations", "open", "crm", *WHY)
    assert (shown.code, shown.out) == (0, "The circuit of crm is open by hand.\n")
    inbox.deliver("evt-1")
    inbox.work_once()
    inbox.clock.advance(hours=2)
    inbox.work_once()
    assert inbox.handled == []
    assert inbox.run().attempt_count == 0
    found = listed(cli)
    assert (found["circuit"], found["waiting"], found["next_probe"]) == ("open", 1, None)
    assert found["opened_by_hand"] == {
        "at": "2026-01-01T00:00:00.000Z",
        "by": KIM,
        "reason": "maintenance",
    }
    assert row(cli)[1] == "open by hand"

    shown = cli("destinations", "close", "crm", "--by", "kim", "--json")
    assert shown.data == {"destination": "crm", "opened_by_hand": False}
    inbox.clock.advance(minutes=2)
    inbox.work_once()
    assert inbox.handled == [("acme.fulfil", "evt-1", 1)]
    assert audited(inbox) == [
        ("open circuit", KIM, "crm", {"opened": 1}),
        ("close circuit", KIM, "crm", {"closed": 1}),
    ]


def test_one_without_a_breaker_can_be_opened_as_well(cli: Cli) -> None:
    assert cli("destinations", "open", "plain", *WHY).code == 0
    assert listed(cli, "plain")["circuit"] == "open"


def test_an_open_one_names_the_person_who_opened_it(cli: Cli, inbox: Inbox) -> None:
    cli("destinations", "open", "crm", *WHY)
    inbox.clock.advance(seconds=1)
    shown = cli("destinations", "open", "crm", *WHY)
    assert shown.code == 1
    assert f"already open by hand since 2026-01-01T00:00:00.000Z by {KIM}: maintenance" in shown.err
    assert "`webhookctl destinations close crm`" in shown.err


def test_a_circuit_that_failures_opened_can_be_closed(cli: Cli, gate: Gate) -> None:
    fail(gate, 3)
    assert cli("destinations", "close", "crm", "--by", "kim").code == 0
    assert (listed(cli)["circuit"], listed(cli)["failures"]) == ("closed", 0)


def test_a_closed_or_unknown_one_is_an_error(cli: Cli) -> None:
    assert "is not open" in cli("destinations", "close", "crm", "--by", "kim").err
    assert 'did you mean "crm"?' in cli("destinations", "close", "crn").err
