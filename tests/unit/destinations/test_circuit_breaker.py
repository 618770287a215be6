"""The circuit breaker: all workers count together, no run calls a failing host, one run probes."""

from dataclasses import replace
from datetime import timedelta
from math import ceil

import pytest

from tests.unit.destinations.site import BREAKER, CRM, FRAGILE, LIMITED, Site
from tests.unit.support.people import person
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.adapters.memory.system import SeededRandomness
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.destinations.circuit_breaker import PROBE_MARGIN
from webhook_inbox.destinations.gate import RECHECK, Gate
from webhook_inbox.destinations.manual_circuit import (
    CircuitRequest,
    close_circuit,
    open_circuit,
)
from webhook_inbox.destinations.rate_limiter import SECOND
from webhook_inbox.domain.manifest import BreakerSpec

OK, FAILED = CallOutcome.ok(), CallOutcome.failed()
LEASE = FRAGILE.timeout + PROBE_MARGIN.total_seconds()


@pytest.fixture
def site() -> Site:
    return Site(FRAGILE)


@pytest.fixture
def opened(site: Site) -> Site:
    site.open()
    return site


@pytest.fixture
def recovering(opened: Site) -> Site:
    opened.clock.advance(seconds=BREAKER.recovery)
    return opened


# -- closed


def test_a_healthy_destination_costs_one_read_a_second_and_no_write(site: Site) -> None:
    for _ in range(20):
        site.call(OK)
        site.clock.advance(seconds=0.1)

    assert site.plan.operations() == ["GetItem"] * 2
    assert list(site.table) == []


def test_failures_of_all_workers_are_counted_together(site: Site) -> None:
    site.fail(1, gate=site.worker())
    site.fail(1, gate=site.worker())
    assert site.admit(gate=site.worker()).go

    site.fail(1, gate=site.worker())

    assert not site.admit(gate=site.worker()).go


def test_a_success_begins_the_count_anew(site: Site) -> None:
    site.fail(2)
    site.call(OK)
    site.fail(2)
    assert site.admit().go

    site.fail(1)

    assert not site.admit().go


def test_a_success_of_another_worker_begins_the_count_anew_as_soon_as_it_has_looked(
    site: Site,
) -> None:
    other = site.worker()
    site.fail(2)
    site.clock.advance(seconds=1)
    site.call(OK, gate=other)

    site.fail(2)

    assert site.admit().go


def test_a_success_writes_once_until_the_next_failure(site: Site) -> None:
    site.fail(1)
    site.plan.operations()

    for _ in range(3):
        site.call(OK)

    assert site.plan.operations() == ["UpdateItem"]


def test_without_a_breaker_no_failure_counts(site: Site) -> None:
    site.spec = replace(CRM, breaker=None)

    site.fail(20)

    assert site.admit().go
    assert list(site.table) == []


def test_a_removed_breaker_stops_no_run_although_its_row_is_open(
    opened: Site,
) -> None:
    opened.spec = replace(CRM, breaker=None)

    assert opened.admit().go
    opened.enter()


def test_an_expired_row_says_nothing(opened: Site) -> None:
    opened.clock.advance(days=36)
    gate = opened.worker()

    assert opened.admit(gate=gate).go
    assert opened.admit(gate=gate).go


# -- open


def test_no_run_begins_or_calls_while_it_is_open(opened: Site) -> None:
    other = opened.worker()
    for _ in range(59):
        assert not opened.admit().go
        assert not opened.admit(gate=other).go
        opened.put_off()
        opened.put_off(gate=other)
        opened.clock.advance(seconds=1)


def test_a_run_that_was_let_through_before_it_opened_makes_no_call_any_more(site: Site) -> None:
    admission = site.admit()
    site.open()

    assert site.put_off(dict(admission.reservations)) >= BREAKER.recovery


def test_another_worker_learns_of_it_within_a_second(site: Site) -> None:
    other = site.worker()
    assert site.admit(gate=other).go
    site.open()

    site.clock.advance(seconds=0.999)
    assert site.admit(gate=other).go
    site.clock.advance(seconds=0.001)
    assert not site.admit(gate=other).go


def test_it_opens_once_though_more_calls_fail_that_were_under_way(site: Site) -> None:
    workers = [site.worker() for _ in range(9)]
    for gate in workers:
        site.enter(dict(site.admit(gate=gate).reservations), gate=gate)
    until = set()
    for gate in workers:
        gate.report(site.spec, FAILED)
        site.clock.advance(seconds=1)
        until.add(site.breaker_row().get("open_until"))

    assert len(until) == 2  # None, and when it opened
    assert site.breaker_row()["failures"] == BREAKER.failures


def test_a_success_of_a_call_that_was_under_way_does_not_close_it(site: Site) -> None:
    late = site.worker()
    site.enter(dict(site.admit(gate=late).reservations), gate=late)
    site.open()
    site.clock.advance(seconds=2)
    site.admit(gate=late)

    late.report(site.spec, OK)

    assert not site.admit(gate=site.worker()).go


def test_who_waits_is_told_why(opened: Site) -> None:
    admission = opened.admit()

    assert admission.why == "destination crm: its circuit is open"
    assert admission.on_limit == ""
    assert admission.degraded == ()


def test_who_comes_while_it_is_open_is_to_come_from_its_recovery_on_at_the_drain_rate(
    opened: Site,
) -> None:
    waits = [opened.wait(opened.admit(gate=opened.worker())) for _ in range(11)]

    assert waits == pytest.approx([60] + [61] * 4 + [62] * 5 + [63], abs=0.001)


def test_a_rate_below_the_drain_rate_is_kept_as_well(site: Site) -> None:
    site.spec = replace(FRAGILE, rate=2.0)
    for _ in range(3):
        site.call(FAILED)
        site.clock.advance(seconds=0.6)

    first, second = site.admit(), site.admit()

    assert site.wait(second) - site.wait(first) >= 0.5


def test_on_limit_does_not_drop_whom_an_open_circuit_keeps(site: Site) -> None:
    site.spec = replace(FRAGILE, rate=10.0, on_limit="drop")
    site.open()

    admissions = [site.admit() for _ in range(40)]

    assert {one.on_limit for one in admissions} == {""}
    assert all(one.due and one.reservations for one in admissions)


# -- recovering


def test_one_run_of_one_worker_probes(recovering: Site) -> None:
    workers = [recovering.worker() for _ in range(5)]

    admitted = [recovering.admit(gate=gate).go for gate in [*workers, *workers]]

    assert admitted == [True] + [False] * 9


def test_the_probe_makes_one_call_until_that_is_answered(recovering: Site) -> None:
    reservations = dict(recovering.admit().reservations)
    recovering.enter(reservations)

    assert 0 < recovering.put_off(reservations) <= 2
    recovering.gate.report(recovering.spec, OK)
    recovering.enter(reservations)


def test_all_runs_call_after_a_successful_probe(recovering: Site) -> None:
    recovering.call(OK)

    for gate in (recovering.gate, recovering.worker()):
        recovering.call(OK, gate=gate)
    assert recovering.breaker_row().keys() == {"pk", "sk", "failures", "expires_at"}
    recovering.fail(2)
    assert recovering.admit().go


def test_no_run_calls_after_a_failed_probe_until_the_next_recovery(recovering: Site) -> None:
    recovering.call(FAILED)

    other = recovering.worker()
    assert not recovering.admit(gate=other).go
    recovering.clock.advance(seconds=BREAKER.recovery - 0.001)
    assert not recovering.admit(gate=other).go
    recovering.clock.advance(seconds=0.001)
    assert recovering.admit(gate=other).go


def test_until_a_second_success_one_failure_opens_it_again(recovering: Site) -> None:
    recovering.call(OK)
    recovering.fail(1)
    assert not recovering.admit(gate=recovering.worker()).go


def test_after_a_second_success_it_opens_after_as_many_failures_as_ever(recovering: Site) -> None:
    recovering.call(OK)
    recovering.call(OK, gate=recovering.worker())
    recovering.clock.advance(seconds=1)

    recovering.fail(BREAKER.failures - 1)

    assert recovering.admit().go
    recovering.fail(1)
    assert not recovering.admit().go


def test_runs_continue_at_once_after_the_first_success(recovering: Site) -> None:
    """A second probe would stay open while no other run waits."""
    recovering.call(OK)
    assert all(recovering.admit(gate=recovering.worker()).go for _ in range(5))


def test_who_comes_while_another_probes_comes_again_soon_and_one_after_the_other(
    recovering: Site,
) -> None:
    recovering.admit()

    waits = [recovering.wait(recovering.admit(gate=recovering.worker())) for _ in range(4)]

    assert waits == pytest.approx([1, 2, 2, 2], abs=0.01)


def test_a_probe_whose_worker_died_is_taken_over_when_its_lease_is_over(recovering: Site) -> None:
    assert recovering.admit().go
    heir = recovering.worker()
    recovering.clock.advance(seconds=LEASE)
    assert not recovering.admit(gate=heir).go

    recovering.clock.advance(seconds=0.001)

    assert [recovering.admit(gate=heir).go, recovering.admit(gate=recovering.worker()).go] == [
        True,
        False,
    ]
    recovering.enter(gate=heir)
    heir.report(recovering.spec, OK)
    recovering.call(OK)


@pytest.mark.parametrize("answer", [OK, FAILED])
def test_a_probe_that_was_taken_over_decides_nothing_any_more(
    recovering: Site, answer: CallOutcome
) -> None:
    lost = recovering.worker()
    recovering.enter(dict(recovering.admit(gate=lost).reservations), gate=lost)
    recovering.clock.advance(seconds=LEASE + 1)
    assert recovering.admit().go
    before = recovering.breaker_row()

    lost.report(recovering.spec, answer)

    assert recovering.breaker_row() == before


def test_a_probe_that_comes_to_its_call_too_late_is_put_off_while_another_probes(
    recovering: Site,
) -> None:
    slow = recovering.worker()
    reservations = dict(recovering.admit(gate=slow).reservations)
    recovering.clock.advance(seconds=LEASE + 1)
    assert recovering.admit().go

    recovering.put_off(reservations, gate=slow)


def test_a_late_probe_still_probes_if_no_other_run_does(
    recovering: Site,
) -> None:
    reservations = dict(recovering.admit().reservations)
    recovering.clock.advance(seconds=LEASE + 1)

    recovering.enter(reservations)

    assert not recovering.admit(gate=recovering.worker()).go


def test_a_call_of_a_destination_that_was_not_declared_may_be_the_probe(recovering: Site) -> None:
    recovering.enter()
    recovering.put_off(gate=recovering.worker())

    recovering.gate.report(recovering.spec, OK)

    recovering.call(OK, gate=recovering.worker())


def test_a_probe_whose_answer_was_lost_is_known_for_ones_own(recovering: Site) -> None:
    """The SDK tries again what had happened, and the second try finds the lease there."""
    recovering.admit()
    row = recovering.breaker_row()
    recovering.table.put({k: v for k, v in row.items() if not k.startswith("probe")})
    other = recovering.worker()
    recovering.clock.advance(seconds=1)

    class Twice:
        def __getattr__(self, name: str) -> object:
            return getattr(recovering.table, name)

        def update(self, *args: object, **options: object) -> object:
            recovering.table.update(*args, **options)  # type: ignore[arg-type]
            return recovering.table.update(*args, **options)  # type: ignore[arg-type]

    other._breaker._table = Twice()  # type: ignore[assignment]

    assert recovering.admit(gate=other).go


def test_a_lost_report_of_a_probe_leaves_its_lease_to_run_out(recovering: Site) -> None:
    reservations = dict(recovering.admit().reservations)
    recovering.enter(reservations)
    recovering.plan.fail("UpdateItem", Fault.BEFORE)
    recovering.gate.report(recovering.spec, OK)

    assert recovering.gate.degraded() != ()
    assert not recovering.admit(gate=recovering.worker()).go
    recovering.clock.advance(seconds=LEASE + 1)
    recovering.call(OK)
    recovering.call(OK)


def test_who_has_not_seen_yet_that_a_probe_failed_does_not_probe(recovering: Site) -> None:
    behind = recovering.worker()
    behind._breaker.look(recovering.spec)
    recovering.call(FAILED)

    assert not recovering.admit(gate=behind).go
    recovering.put_off(gate=behind)


def test_the_probe_needs_no_reservation_of_the_rate(site: Site) -> None:
    """No run has called for so long that one more call exceeds no limit."""
    site.spec = replace(LIMITED, breaker=BREAKER)
    site.open()
    kept = [dict(site.admit().reservations) for _ in range(30)]
    site.clock.advance(seconds=BREAKER.recovery)
    site.clock.slept.clear()
    assert site.admit(kept[0]).go

    site.enter(kept[0])

    assert site.clock.slept == []


def test_the_probing_run_need_not_queue_for_its_second_call(site: Site) -> None:
    site.spec = replace(LIMITED, breaker=BREAKER)
    site.open()
    for _ in range(60):
        site.admit()
    site.clock.advance(seconds=BREAKER.recovery)
    reservations = dict(site.admit().reservations)
    site.enter(reservations)
    site.gate.report(site.spec, OK)

    site.enter(reservations)


def test_those_who_waited_come_before_those_who_did_not(site: Site) -> None:
    site.spec = replace(FRAGILE, rate=5.0)
    for _ in range(3):
        site.call(FAILED)
    waiting = [dict(site.admit().reservations) for _ in range(50)]
    site.clock.advance(seconds=BREAKER.recovery + 2)
    site.call(OK)

    fresh = site.wait(site.admit())

    assert fresh >= 8
    assert site.admit(waiting[0]).go


def test_those_who_waited_begin_in_their_order_though_it_opens_again(opened: Site) -> None:
    kept = [dict(opened.admit().reservations) for _ in range(20)]
    opened.clock.advance(seconds=BREAKER.recovery)
    opened.call(FAILED)

    again = [opened.admit(reservations) for reservations in kept]
    fresh = opened.admit()

    waits = [opened.wait(admission) for admission in again]
    assert waits == sorted(waits)
    assert waits[0] >= BREAKER.recovery
    assert waits[-1] - waits[0] == pytest.approx(ceil(19 / BREAKER.drain))
    assert opened.wait(fresh) > waits[-1]


def test_a_row_outlives_every_wait_by_far(opened: Site) -> None:
    opened.admit()
    month = (opened.clock.now() + timedelta(days=30)).timestamp()

    assert opened.breaker_row()["expires_at"] > month
    assert opened.limit_row()["expires_at"] > month


def test_a_call_that_succeeds_ends_the_wait_of_an_earlier_one(recovering: Site) -> None:
    recovering.call(FAILED)
    recovering.clock.advance(seconds=BREAKER.recovery)
    recovering.call(OK)
    assert recovering.gate.waits() == {}


def test_a_wait_is_reported_once(recovering: Site) -> None:
    recovering.call(FAILED)
    assert list(recovering.gate.waits()) == ["crm"]
    assert recovering.gate.waits() == {}


def test_a_failed_probe_returns_behind_all_runs_that_wait(recovering: Site) -> None:
    assert recovering.admit().go
    waits = [recovering.wait(recovering.admit(gate=recovering.worker())) for _ in range(10)]
    recovering.enter()
    wait = recovering.gate.report(FRAGILE, FAILED)
    assert wait is not None
    seconds = (wait.until - recovering.clock.now()).total_seconds()
    assert seconds >= BREAKER.recovery + waits[-1]


# -- the wait of a run whose call failed


def test_a_failure_of_a_closed_circuit_counts(site: Site) -> None:
    for _ in range(BREAKER.failures - 1):
        site.enter(site.admitted())
        assert site.gate.report(site.spec, FAILED) is None


@pytest.mark.parametrize("answer", [OK, CallOutcome.limited()])
def test_a_call_that_did_not_fail_waits_for_nothing(recovering: Site, answer: CallOutcome) -> None:
    recovering.enter()
    assert recovering.gate.report(recovering.spec, answer) is None


def waits(site: Site, gate: Gate | None = None) -> float:
    """Reports a failure and returns the seconds that its run waits."""
    wait = (gate or site.gate).report(site.spec, FAILED)
    assert wait is not None
    assert wait.waits_for == "destination crm"
    return (wait.until - site.clock.now()).total_seconds()


def test_the_failure_that_opens_it_does_not_count(site: Site) -> None:
    site.fail(BREAKER.failures - 1)
    site.enter(site.admitted())
    assert waits(site) == BREAKER.recovery + 1


def test_a_failed_probe_does_not_count_and_returns_after_the_runs_that_wait(
    recovering: Site,
) -> None:
    recovering.enter()
    assert waits(recovering) == BREAKER.recovery + 1
    first = recovering.wait(recovering.admit())
    assert first <= BREAKER.recovery


def test_a_call_in_flight_when_it_opened_does_not_count(site: Site) -> None:
    late = site.worker()
    site.enter(site.admitted(), gate=late)
    site.open()
    site.clock.advance(seconds=10)
    assert waits(site, late) == BREAKER.recovery - 10 + 1
    site.clock.advance(hours=1)
    assert waits(site, late) == 1


@pytest.mark.parametrize("breaker", [BREAKER, None], ids=["breaker", "no breaker"])
def test_a_call_in_flight_when_a_person_opened_it_does_not_count(
    site: Site, breaker: BreakerSpec | None
) -> None:
    site.spec = replace(CRM, breaker=breaker)
    site.enter(site.admitted())
    open_by_hand(site)
    assert waits(site) == RECHECK / SECOND


def test_a_failed_probe_that_a_person_overtook_does_not_count(recovering: Site) -> None:
    recovering.enter()
    open_by_hand(recovering)
    assert waits(recovering) == RECHECK / SECOND


def test_a_failed_probe_whose_lease_was_taken_over_does_not_count(recovering: Site) -> None:
    slow, heir = recovering.worker(), recovering.worker()
    recovering.enter(gate=slow)
    recovering.clock.advance(seconds=LEASE + 1)
    recovering.enter(gate=heir)
    heir.report(recovering.spec, OK)
    recovering.clock.advance(seconds=1)
    assert waits(recovering, slow) == BREAKER.recovery + 1


def test_a_failed_probe_that_cannot_be_recorded_does_not_count(recovering: Site) -> None:
    recovering.enter()
    recovering.plan.fail("UpdateItem", Fault.BEFORE)
    assert waits(recovering) == BREAKER.recovery + 1


def test_a_failure_that_cannot_be_recorded_counts(site: Site) -> None:
    site.enter(site.admitted())
    site.plan.fail("UpdateItem", Fault.BEFORE)
    assert site.gate.report(site.spec, FAILED) is None


# -- by hand


def by_hand(site: Site) -> CircuitRequest:
    return CircuitRequest(
        site.spec.name, by=person("kim"), reason="maintenance", now=site.clock.now()
    )


def open_by_hand(site: Site) -> None:
    assert open_circuit(site.table, SeededRandomness(9), by_hand(site)) is None
    site.clock.advance(seconds=1)


def test_one_that_a_person_opened_has_no_recovery_and_no_probe(site: Site) -> None:
    open_by_hand(site)
    for _ in range(50):
        assert site.wait(site.admit(gate=site.worker())) <= RECHECK / SECOND + 1
        assert not site.gate._breaker.acquire(site.spec)
        site.clock.advance(days=1)


def test_a_person_opens_one_of_a_destination_without_a_breaker(site: Site) -> None:
    site.spec = replace(CRM, breaker=None)
    open_by_hand(site)
    assert site.put_off() > 0


def test_no_response_of_a_call_in_flight_closes_it(recovering: Site) -> None:
    probing = recovering.worker()
    admission = recovering.admit(gate=probing)
    recovering.enter(dict(admission.reservations), gate=probing)
    open_by_hand(recovering)

    for answer in (OK, FAILED, CallOutcome.limited(timedelta(hours=1))):
        probing.report(recovering.spec, answer)

    row = recovering.breaker_row()
    assert (row["held_by"], "probe" in row) == ("kim", False)
    assert not recovering.admit().go
    recovering.clock.advance(days=40)
    assert not recovering.admit(gate=recovering.worker()).go


def test_failures_are_not_counted_against_it(site: Site) -> None:
    gate = site.worker()
    kept = dict(site.admit(gate=gate).reservations)
    site.enter(kept, gate=gate)
    open_by_hand(site)
    gate.report(site.spec, FAILED)
    assert site.breaker_row().get("failures", 0) == 0


def test_the_second_person_learns_of_the_first(site: Site) -> None:
    open_by_hand(site)
    before = open_circuit(site.table, SeededRandomness(8), by_hand(site))
    assert before is not None
    assert before["held_reason"] == "maintenance"


def test_a_person_closes_it_and_one_that_failures_opened(site: Site, opened: Site) -> None:
    assert close_circuit(opened.table, SeededRandomness(8), by_hand(opened))
    opened.clock.advance(seconds=1)
    assert opened.admit().go
    assert not close_circuit(opened.table, SeededRandomness(8), by_hand(opened))


def test_the_actions_are_in_the_audit_before_they_are_done(site: Site) -> None:
    open_by_hand(site)
    close_circuit(site.table, SeededRandomness(8), by_hand(site))
    rows = [row for row in site.table if row["pk"].startswith("audit#")]
    assert [(row["action"], row["by"], row["reason"]) for row in rows] == [
        ("open circuit", "kim", "maintenance"),
        ("close circuit", "kim", "maintenance"),
    ]
