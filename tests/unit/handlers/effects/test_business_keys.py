"""An effect that several events share: two events that mean one payment."""

import pytest

from tests.unit.handlers.effects.bench import Bench, Killed, elsewhere, killed_after
from webhook_inbox.adapters.memory import MemoryTable
from webhook_inbox.domain.errors import Deferred, Permanent
from webhook_inbox.ledger.schema import effect_key


@pytest.fixture
def both() -> tuple[Bench, Bench]:
    table = MemoryTable()
    paid, succeeded = Bench("evt_paid", table=table), Bench("evt_succeeded", table=table)
    succeeded.clock, succeeded.sink = paid.clock, paid.sink
    return paid, succeeded


def test_it_happens_once_for_both(both: tuple[Bench, Bench]) -> None:
    paid, succeeded = both
    first = paid.attempt().effect("ship", paid.sink, key="in_7")
    second = succeeded.attempt().effect("ship", succeeded.sink, key="in_7")
    assert first == second == {"id": 1}
    assert paid.sink.keys == ["ship:in_7"]


def test_another_key_is_another_effect(both: tuple[Bench, Bench]) -> None:
    paid, succeeded = both
    paid.attempt().effect("ship", paid.sink, key="in_7")
    succeeded.attempt().effect("ship", succeeded.sink, key="in_8")
    assert paid.sink.keys == ["ship:in_7", "ship:in_8"]


def test_each_event_leads_to_the_shared_row(both: tuple[Bench, Bench]) -> None:
    for bench in both:
        bench.attempt().effect("ship", bench.sink, key="in_7")
        place = effect_key("stripe", bench.run.event_id, "stripe.fulfil", "ship")
        reference = bench.table.get(place)
        assert reference is not None
        assert reference["shared"] == "effect#ship#in_7"
    assert both[0].row("ship", key="in_7")["event_id"] == "evt_paid"


def test_while_one_is_at_it_the_other_waits(both: tuple[Bench, Bench]) -> None:
    paid, succeeded = both

    def meanwhile(key: str) -> str:
        with pytest.raises(Deferred, match="is being done for stripe evt_paid") as waits:
            elsewhere(succeeded.attempt().effect, "ship", succeeded.sink, key="in_7")
        assert waits.value.until > paid.clock.now()
        return "shipped"

    assert paid.attempt().effect("ship", meanwhile, key="in_7") == "shipped"
    assert succeeded.attempt().effect("ship", succeeded.sink, key="in_7") == "shipped"


def test_once_its_worker_is_certainly_gone_the_other_repeats_it_under_the_same_key(
    both: tuple[Bench, Bench],
) -> None:
    paid, succeeded = both
    with pytest.raises(Killed):
        paid.attempt().effect("ship", killed_after(paid.sink), key="in_7")
    with pytest.raises(Deferred) as waits:
        succeeded.attempt().effect("ship", succeeded.sink, key="in_7")
    paid.clock.advance(seconds=(waits.value.until - paid.clock.now()).total_seconds())
    assert succeeded.attempt().effect("ship", succeeded.sink, key="in_7") == {"id": 2}
    assert paid.attempt().effect("ship", paid.sink, key="in_7") == {"id": 2}
    assert set(paid.sink.keys) == {"ship:in_7"}


def test_it_lives_as_long_as_the_last_event_that_needed_it(both: tuple[Bench, Bench]) -> None:
    paid, late = both
    paid.attempt().effect("ship", paid.sink, key="in_7")
    before = paid.row("ship", key="in_7")["expires_at"]
    paid.clock.advance(days=40)
    late.received_at = paid.clock.now()
    late.attempt().effect("ship", late.sink, key="in_7")
    assert paid.row("ship", key="in_7")["expires_at"] == before + 40 * 86_400
    paid.clock.advance(days=20)
    late.attempt().effect("ship", late.sink, key="in_7")
    assert len(paid.sink.keys) == 1


@pytest.mark.parametrize("key", ["", 7, "k" * 1025, "\ud800"])
def test_a_key_that_no_row_could_hold_is_refused(both: tuple[Bench, Bench], key: str) -> None:
    with pytest.raises(Permanent, match="business key"):
        both[0].attempt().effect("ship", both[0].sink, key=key)
    assert both[0].sink.keys == []


@pytest.mark.parametrize("key", ["k" * 1024, "ä", "a#b", "#"])
def test_any_other_key_fits_a_header(both: tuple[Bench, Bench], key: str) -> None:
    both[0].attempt().effect("ship", both[0].sink, key=key)
    sent = both[0].sink.keys[0]
    assert len(sent) <= 255
    assert sent.isascii()
    assert sent.isprintable()
