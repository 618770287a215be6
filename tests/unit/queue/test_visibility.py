"""How long a FIFO lane's message is hidden that cannot be worked on, to the millisecond."""

from dataclasses import replace
from datetime import timedelta

import pytest

from webhook_inbox.adapters.memory import ManualClock, MemoryFifo, MemoryQueue
from webhook_inbox.domain.model import Run, Status, WaitStrategy
from webhook_inbox.domain.ports import Message, Outgoing
from webhook_inbox.ledger.deadlines import VISIBILITY_TIMEOUT
from webhook_inbox.ledger.lease import CLOCK_SKEW, Refusal
from webhook_inbox.queue.lanes import Lanes
from webhook_inbox.queue.outcomes import Worker
from webhook_inbox.queue.visibility import (
    MAX_HIDDEN,
    MIN_DELAY,
    FifoQueuePolicy,
    ceil_seconds,
    queue_policy_of,
)

CLOCK = ManualClock()
NOW = CLOCK.now()
MS = timedelta(milliseconds=1)
WORKER = Worker("w", "v1", "bill", 1000)
RUN = Run("acme", "e1", "acme.bill", "paid", Status.PROCESSING, ordering_key="cus_1")


@pytest.fixture
def queue() -> MemoryFifo:
    return MemoryFifo(ManualClock(), name="bill")


@pytest.fixture
def queue_policy(queue: MemoryFifo) -> FifoQueuePolicy:
    return policy_for(queue, taken(queue))


def policy_for(queue: MemoryFifo, message: Message) -> FifoQueuePolicy:
    made = queue_policy_of(Lanes({"default": queue, "bill": queue}), WORKER, message)
    assert isinstance(made, FifoQueuePolicy)
    return made


def taken(queue: MemoryFifo, *, receives: int = 1) -> Message:
    queue.send([Outgoing("x", group="g", dedup="d")])
    for _ in range(receives - 1):
        [message] = queue.receive(1, hidden_for=0)
    [message] = queue.receive(1, hidden_for=ceil_seconds(VISIBILITY_TIMEOUT))
    return message


@pytest.mark.parametrize("why", [Refusal.CLAIMED_HERE, Refusal.CLAIMED_ELSEWHERE])
@pytest.mark.parametrize(
    ("left", "hidden"),
    [
        (timedelta(seconds=40), timedelta(seconds=45)),
        (-CLOCK_SKEW, MIN_DELAY),
        (-CLOCK_SKEW + MS, MIN_DELAY),
        (-timedelta(minutes=1), MIN_DELAY),
    ],
    ids=["alive", "just over", "nearly over", "over"],
)
def test_behind_a_lease_it_comes_when_that_is_over_and_never_spins(
    queue_policy: FifoQueuePolicy, why: Refusal, left: timedelta, hidden: timedelta
) -> None:
    assert queue_policy.receive_again(why, replace(RUN, claimed_until=NOW + left), NOW) == hidden


@pytest.mark.parametrize("left", [timedelta(0), -MS, -timedelta(hours=1)])
def test_what_is_due_after_all_comes_at_once_and_never_spins(
    queue_policy: FifoQueuePolicy, left: timedelta
) -> None:
    run = replace(RUN, status=Status.FAILED, next_attempt_at=NOW + left)

    assert queue_policy.receive_again(Refusal.NOT_DUE, run, NOW) == MIN_DELAY


@pytest.mark.parametrize("why", [Refusal.STALE_GENERATION, Refusal.COPY_MISSING])
def test_what_has_changed_meanwhile_is_read_anew(
    queue_policy: FifoQueuePolicy, why: Refusal
) -> None:
    assert queue_policy.receive_again(why, RUN, NOW) == MIN_DELAY


@pytest.mark.parametrize("why", [Refusal.FINISHED, Refusal.DEAD, Refusal.EXHAUSTED, Refusal.HELD])
def test_what_is_over_or_waits_for_a_person_does_not_stay(
    queue_policy: FifoQueuePolicy, why: Refusal
) -> None:
    assert queue_policy.receive_again(why, RUN, NOW) is None


def test_every_refusal_is_decided(queue_policy: FifoQueuePolicy) -> None:
    run = replace(RUN, claimed_until=NOW, next_attempt_at=NOW)
    for why in Refusal:
        stays = queue_policy.receive_again(why, run, NOW)
        assert stays is None or stays >= MIN_DELAY


def test_what_waits_in_the_ledger_does_not_stay(queue_policy: FifoQueuePolicy) -> None:
    run = replace(RUN, status=Status.DEFERRED, parked=True, next_attempt_at=NOW + MAX_HIDDEN)

    assert queue_policy.receive_again(Refusal.NOT_DUE, run, NOW) is None


@pytest.mark.parametrize(
    ("receives", "delay", "wait"),
    [
        (1, MAX_HIDDEN, WaitStrategy.HIDDEN),
        (1, MAX_HIDDEN + MS, WaitStrategy.PARKED),
        (100, MAX_HIDDEN, WaitStrategy.HIDDEN),
        (101, timedelta(seconds=1), WaitStrategy.PARKED),
    ],
)
def test_only_a_short_wait_of_a_message_with_receives_left_is_hidden(
    queue: MemoryFifo, receives: int, delay: timedelta, wait: WaitStrategy
) -> None:
    policy = policy_for(queue, taken(queue, receives=receives))

    assert policy.retry(delay).wait is wait
    assert policy.deferral(delay, parked=False).wait is wait
    assert policy.deferral(delay, parked=True).wait is WaitStrategy.PARKED


def test_a_standard_lane_carries_waits_as_ever() -> None:
    queue = MemoryQueue(ManualClock())

    queue.send([Outgoing("x")])
    [message] = queue.receive(1, hidden_for=ceil_seconds(VISIBILITY_TIMEOUT))

    made = queue_policy_of(Lanes({"default": queue}), replace(WORKER, lane="default"), message)

    assert not isinstance(made, FifoQueuePolicy)
    assert all(made.receive_again(why, RUN, NOW) is None for why in Refusal)
