"""Gaps of a sequence: what is missing is fetched, passed over, asked about, or given up."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.handlers.ordering.stage import HANDLER, SOURCE, Stage
from webhook_inbox import Deferred, Permanent, Transient, sequence
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.adapters.memory.system import START
from webhook_inbox.domain.internal_errors import ApprovalRequired
from webhook_inbox.domain.model import Status
from webhook_inbox.domain.ports import Change
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.ordering.gaps import BACKFILL_AFTER
from webhook_inbox.ledger.schema import run_key


def body(number: int) -> dict[str, Any]:
    return {"account": "acct_1", "seq": number}


def come(stage: Stage, *numbers: int) -> None:
    """Accepts an event of each number, and works on all that is visible after each."""
    for number in numbers:
        stage.accept(f"evt_{number}", body(number))
        stage.work()


def applied(stage: Stage) -> list[int]:
    return [given["seq"] for _, given in stage.applied]


def after(stage: Stage, **parts: float) -> None:
    """Lets time pass, minute by minute, as the reconciler comes."""
    end = stage.now() + timedelta(**parts)
    while stage.now() < end:
        stage.clock.advance(seconds=min(60.0, (end - stage.now()).total_seconds()))
        stage.reconcile()
        stage.work()


def holding(**settings: Any) -> Stage:
    return Stage(sequence("account", "seq", timeout="1h", **settings))


class Provider:
    """The items that a backfill can fetch; `calls` has the requests."""

    def __init__(self, *, upto: int = 10**9) -> None:
        self.upto = upto
        self.calls: list[tuple[str, int, int]] = []
        self.error: BaseException | None = None
        self.meanwhile: Callable[[], None] = lambda: None

    def fetch(self, ordering_key: str, first: int, last: int) -> int:
        self.calls.append((ordering_key, first, last))
        self.meanwhile()
        if self.error is not None:
            raise self.error
        return max(first - 1, min(last, self.upto))


def fetching(provider: Provider, **settings: Any) -> Stage:
    return holding(backfill=provider.fetch, **settings)


# -- the timeout decides


def test_before_the_timeout_nothing_is_decided() -> None:
    stage = holding(on_gap="skip")
    come(stage, 1, 3)
    after(stage, minutes=59)
    assert applied(stage) == [1]


def test_skip_passes_over_the_gap() -> None:
    stage = holding(on_gap="skip")
    come(stage, 1, 5)
    after(stage, minutes=60)
    assert applied(stage) == [1, 5]
    assert stage.state("acct_1")["applied"] == "5"


def test_what_was_passed_over_and_comes_late_is_skipped_and_says_by_whom() -> None:
    stage = holding(on_gap="skip")
    come(stage, 1, 3)
    after(stage, minutes=60)
    come(stage, 2)
    assert stage.run("evt_2").status is Status.SKIPPED
    assert stage.run("evt_2").last_error == "already applied: number 2, and the last is 3 by evt_3"
    assert applied(stage) == [1, 3]


def test_what_was_passed_over_does_not_come_back_while_the_passer_is_tried_again() -> None:
    stage = holding(on_gap="skip")
    come(stage, 1, 3)
    stage.act = lambda *_: failing(stage, Transient("down"))
    after(stage, minutes=60)
    assert stage.run("evt_3").status is Status.FAILED
    come(stage, 2)
    assert stage.run("evt_2").last_error.endswith("the last is 2 by evt_3's passing")
    after(stage, minutes=1)
    assert applied(stage) == [1, 3]


def failing(stage: Stage, error: BaseException) -> None:
    """Fails once."""
    stage.act = lambda *_: None
    raise error


def test_hold_asks_a_person_and_shows_what_is_missing() -> None:
    stage = holding()
    come(stage, 1, 4)
    after(stage, minutes=60)
    run = stage.run("evt_4")
    assert run.status is Status.HELD
    assert run.held["subject"] == "order"
    assert run.held["shows"] == "numbers 2 to 3 of acct_1"
    assert run.last_error == (
        "numbers 2 to 3 of acct_1 did not come within 3600 s: approve to pass over the gap"
    )
    assert run.attempt_count == 0
    assert "holder" not in stage.state("acct_1")


def test_an_approval_passes_over_the_gap() -> None:
    stage = holding()
    come(stage, 1, 4)
    after(stage, minutes=60)
    stage.approve("evt_4")
    stage.work()
    assert applied(stage) == [1, 4]


def test_an_approval_of_something_else_does_not() -> None:
    stage = holding()
    come(stage, 1, 4)
    key = run_key(SOURCE, "evt_4", HANDLER)
    stage.table.update(key, Change(set={"approvals": {"policy": {"by": "op"}}}))
    after(stage, minutes=60)
    assert stage.run("evt_4").status is Status.HELD


def test_what_is_missing_may_come_while_a_run_is_held() -> None:
    stage = holding()
    come(stage, 1, 3)
    after(stage, minutes=60)
    come(stage, 2)
    stage.approve("evt_3")
    stage.work()
    assert applied(stage) == [1, 2, 3]


def test_dead_gives_the_run_up() -> None:
    stage = holding(on_gap="dead")
    come(stage, 1, 3)
    after(stage, minutes=60)
    run = stage.run("evt_3")
    assert run.status is Status.DEAD_LETTER
    assert run.last_error == "number 2 of acct_1 did not come within 3600 s"
    assert stage.waiters() == []


def test_a_replay_of_what_was_given_up_waits_anew() -> None:
    stage = holding(on_gap="dead")
    come(stage, 1, 3)
    after(stage, minutes=60)
    stage.replay("evt_3")
    stage.work()
    assert stage.run("evt_3").status is Status.DEFERRED
    come(stage, 2)
    assert applied(stage) == [1, 2, 3]


def test_a_replay_of_what_still_waits_begins_its_wait_anew() -> None:
    stage = holding(on_gap="dead")
    come(stage, 1, 3)
    after(stage, minutes=50)
    stage.replay("evt_3")
    stage.work()
    after(stage, minutes=50)
    assert stage.run("evt_3").status is Status.DEFERRED
    after(stage, minutes=15)
    assert stage.run("evt_3").status is Status.DEAD_LETTER


def test_the_timeout_counts_from_when_the_run_first_waited() -> None:
    stage = holding(on_gap="skip")
    come(stage, 1, 3)
    after(stage, minutes=30)
    come(stage, 7)
    after(stage, minutes=31)
    assert applied(stage) == [1, 3]


# -- the first in line decides


def test_nothing_that_waits_is_passed_over() -> None:
    stage = holding(on_gap="skip")
    come(stage, 1, 7)
    after(stage, minutes=30)
    come(stage, 4)
    after(stage, minutes=45)
    assert applied(stage) == [1], "7 may not pass over 4"
    after(stage, minutes=60)
    assert applied(stage) == [1, 4, 7]


def test_nothing_that_is_tried_again_is_passed_over() -> None:
    stage = holding(on_gap="skip")
    come(stage, 1, 3)
    until = stage.now() + timedelta(hours=5)

    def later(event_id: str, given: Any) -> None:
        if stage.now() < until:
            raise Deferred(until)

    stage.act = later
    come(stage, 2)
    after(stage, hours=3)
    assert applied(stage) == [1]
    assert stage.run("evt_3").last_error == ("waits for number 2 of acct_1; number 2 is with evt_2")
    after(stage, hours=3)
    assert applied(stage) == [1, 2, 3]


def test_a_predecessor_that_a_person_has_to_decide_about_is_waited_for() -> None:
    stage = holding(on_gap="skip")
    stage.act = lambda *_: failing(stage, ApprovalRequired("may I?", subject="policy", shows=""))
    come(stage, 1, 2)
    after(stage, hours=4)
    assert applied(stage) == []
    stage.approve("evt_1")
    stage.work()
    assert applied(stage) == [1, 2]


def test_a_predecessor_that_died_is_a_gap() -> None:
    stage = holding(on_gap="skip")
    come(stage, 1, 3)
    stage.act = lambda *_: failing(stage, Permanent("422"))
    come(stage, 2)
    assert stage.run("evt_2").status is Status.DEAD_LETTER
    after(stage, minutes=60)
    assert applied(stage) == [1, 3]


def test_a_dead_run_that_waited_blocks_no_other() -> None:
    stage = holding(on_gap="skip")
    come(stage, 1, 4, 7)
    key = run_key(SOURCE, "evt_4", HANDLER)
    stage.table.update(key, Change(set={"status": "dead_letter"}, remove=("parked", "due_bucket")))
    after(stage, minutes=60)
    assert applied(stage) == [1, 7]


def test_a_stale_row_of_an_applied_number_blocks_no_other() -> None:
    stage = holding(on_gap="skip")
    come(stage, 1, 5, 9)
    pk = f"ordering_key#{HANDLER}#acct_1"
    left = {"pk": pk, "sk": "waiter#00000000000000000001#evt_9", "number": 1, "event_id": "evt_9"}
    stage.table.put(left)
    after(stage, minutes=60)
    assert applied(stage) == [1, 5, 9]


def test_a_number_that_a_person_denied_is_no_gap() -> None:
    stage = holding()
    stage.act = lambda *_: failing(stage, ApprovalRequired("may I?", subject="policy", shows=""))
    come(stage, 1)
    denied = {"status": "skipped", "done_at": to_ms(stage.now())}
    change = Change(set=denied, remove=("held", "due_bucket", "due_at"))
    stage.table.update(run_key(SOURCE, "evt_1", HANDLER), change)
    come(stage, 2)
    assert applied(stage) == [2]


def test_a_whole_sequence_with_holes_comes_through_in_order() -> None:
    stage = holding(on_gap="skip")
    come(stage, 9, 3, 6, 4, 12, 2)
    after(stage, hours=4)
    assert applied(stage) == [2, 3, 4, 6, 9, 12]


# -- backfill


def test_what_is_missing_is_fetched_when_the_gap_has_lasted() -> None:
    provider = Provider()
    stage = fetching(provider)
    come(stage, 1, 5)
    after(stage, seconds=BACKFILL_AFTER.total_seconds() - 1)
    assert provider.calls == []
    after(stage, seconds=1)
    assert provider.calls == [("acct_1", 2, 4)]
    assert applied(stage) == [1, 5]
    assert stage.state("acct_1")["applied"] == "5"


def test_a_gap_that_closes_by_itself_is_not_fetched() -> None:
    provider = Provider()
    stage = fetching(provider)
    come(stage, 1, 3, 2)
    after(stage, minutes=5)
    assert provider.calls == []


def test_what_was_fetched_and_comes_late_is_skipped() -> None:
    stage = fetching(Provider())
    come(stage, 1, 3)
    stage.act = lambda *_: failing(stage, Transient("down"))
    after(stage, seconds=31)
    come(stage, 2)
    assert stage.run("evt_2").last_error == (
        "already applied: number 2, and the last is 2 by the backfill for evt_3"
    )


def test_no_run_applies_it_while_it_is_fetched() -> None:
    provider = Provider()
    stage = fetching(provider)
    come(stage, 1, 3)

    def meanwhile() -> None:
        provider.meanwhile = lambda: None
        come(stage, 2)
        assert stage.run("evt_2").last_error == "acct_1 is held by evt_3"

    provider.meanwhile = meanwhile
    after(stage, seconds=31)
    after(stage, seconds=5)
    assert applied(stage) == [1, 3]
    assert stage.run("evt_2").status is Status.SKIPPED


def test_what_could_be_fetched_in_part_counts_and_the_rest_is_waited_for() -> None:
    provider = Provider(upto=3)
    stage = fetching(provider)
    come(stage, 1, 6)
    after(stage, seconds=31)
    assert stage.state("acct_1")["applied"] == "3"
    assert "holder" not in stage.state("acct_1")
    assert stage.run("evt_6").status is Status.DEFERRED
    come(stage, 4, 5)
    assert applied(stage) == [1, 4, 5, 6]


def test_one_that_comes_meanwhile_and_follows_what_was_fetched_is_woken() -> None:
    provider = Provider(upto=3)
    stage = fetching(provider)
    come(stage, 1, 6)

    def meanwhile() -> None:
        provider.meanwhile = lambda: None
        come(stage, 4)

    provider.meanwhile = meanwhile
    after(stage, seconds=31)
    assert applied(stage) == [1, 4]


def test_it_is_asked_ever_more_rarely_until_the_timeout_decides() -> None:
    provider = Provider(upto=0)
    stage = fetching(provider, on_gap="skip")
    come(stage, 1, 3)
    times: list[float] = []
    provider.meanwhile = lambda: times.append((stage.now() - START) / timedelta(minutes=1))
    after(stage, hours=2)
    assert times == [1, 2, 4, 8, 16, 32, 60]
    assert applied(stage) == [1, 3]


def test_a_timeout_that_is_shorter_than_the_patience_lets_it_be_asked_once() -> None:
    provider = Provider(upto=0)
    stage = Stage(sequence("account", "seq", timeout="10s", on_gap="skip", backfill=provider.fetch))
    come(stage, 1, 3)
    after(stage, seconds=10)
    assert len(provider.calls) == 1
    assert applied(stage) == [1, 3]


def test_a_backfill_that_fails_costs_no_attempt_and_is_told_of() -> None:
    provider = Provider()
    provider.error = ConnectionError("no route")
    stage = fetching(provider)
    come(stage, 1, 3)
    after(stage, minutes=5)
    run = stage.run("evt_3")
    assert (run.status, run.attempt_count) == (Status.DEFERRED, 0)
    assert run.last_error == (
        "waits for number 2 of acct_1; the backfill failed: ConnectionError: no route"
    )
    assert "holder" not in stage.state("acct_1")
    after(stage, minutes=60)
    assert stage.run("evt_3").status is Status.HELD
    assert "; the backfill failed: ConnectionError: no route" in stage.run("evt_3").last_error


@pytest.mark.parametrize("on_gap", ["hold", "dead"])
def test_an_ordering_key_whose_gap_was_not_closed_is_not_held(on_gap: str) -> None:
    stage = fetching(Provider(upto=2), on_gap=on_gap)
    come(stage, 1, 5)
    after(stage, minutes=61)
    assert stage.run("evt_5").status in {Status.HELD, Status.DEAD_LETTER}
    assert "holder" not in stage.state("acct_1")
    assert stage.state("acct_1")["applied"] == "2"


def test_a_backfill_that_recovers_closes_the_gap() -> None:
    provider = Provider()
    provider.error = Transient("down")
    stage = fetching(provider)
    come(stage, 1, 3)
    after(stage, minutes=5)
    provider.error = None
    after(stage, minutes=10)
    assert applied(stage) == [1, 3]


def test_a_backfill_may_say_itself_that_it_is_hopeless() -> None:
    provider = Provider()
    provider.error = Permanent("the provider keeps a day, and this was a week ago")
    stage = fetching(provider)
    come(stage, 1, 3)
    after(stage, minutes=1)
    assert stage.run("evt_3").status is Status.DEAD_LETTER
    assert stage.run("evt_3").last_error.startswith("the provider keeps a day")
    assert "holder" not in stage.state("acct_1")


@pytest.mark.parametrize("returned", [None, True, "3", 0, 3, -1, 2.0])
def test_a_backfill_that_returns_nonsense_is_permanent_and_says_what_is_wanted(
    returned: Any,
) -> None:
    stage = holding(backfill=lambda *_: returned)
    come(stage, 1, 3)
    after(stage, minutes=1)
    assert stage.run("evt_3").status is Status.DEAD_LETTER
    assert stage.run("evt_3").last_error == (
        f"the backfill of 'shop.sync' returned {returned!r}: return the last number applied,"
        " from 1 (none) to 2"
    )
    assert "holder" not in stage.state("acct_1")


def test_only_the_first_in_line_fetches() -> None:
    provider = Provider()
    stage = fetching(provider)
    come(stage, 1, 5, 3)
    after(stage, seconds=31)
    assert ("acct_1", 2, 4) not in provider.calls
    after(stage, minutes=40)
    assert provider.calls == [("acct_1", 2, 2), ("acct_1", 4, 4)]
    assert applied(stage) == [1, 3, 5]


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("place", range(12))
def test_whichever_call_around_a_backfill_fails_the_order_holds(place: int, fault: Fault) -> None:
    provider = Provider()
    stage = fetching(provider)
    come(stage, 1, 5, 6)
    calls = [0]

    def faults(service: str, operation: str) -> Fault | None:
        calls[0] += 1
        return fault if calls[0] == place + 1 else None

    stage.clock.advance(seconds=31)
    stage.reconcile()
    stage.table.faults = faults
    stage.work()
    stage.run_until_quiet()
    assert sorted(set(applied(stage))) == [1, 5, 6]
    assert applied(stage) == sorted(applied(stage))
    assert stage.now() - START < timedelta(hours=1)
