"""Time, randomness and execution: what the system's and the doubles have in common."""

import string
from datetime import timedelta

import pytest

from webhook_inbox.adapters.memory import InlineExecutor, ManualClock, SeededRandomness
from webhook_inbox.adapters.system import (
    SystemClock,
    SystemRandomness,
    ThreadExecutor,
    ThreadParallel,
)
from webhook_inbox.domain.ports import IN_TURN, Clock, Executor, Parallel, Randomness


@pytest.fixture(params=[SystemClock, ManualClock])
def clock(request: pytest.FixtureRequest) -> Clock:
    made: Clock = request.param()
    return made


@pytest.fixture(params=[SystemRandomness, SeededRandomness])
def randomness(request: pytest.FixtureRequest) -> Randomness:
    made: Randomness = request.param()
    return made


@pytest.fixture(params=[ThreadExecutor(), InlineExecutor(ManualClock())], ids=type)
def executor(request: pytest.FixtureRequest) -> Executor:
    made: Executor = request.param
    return made


def test_the_time_is_aware_utc(clock: Clock) -> None:
    assert clock.now().utcoffset() == timedelta(0)


def test_sleeping_takes_its_time(clock: Clock) -> None:
    before = clock.now()

    clock.sleep(0.01)

    assert clock.now() - before >= timedelta(seconds=0.01)


def test_a_token_is_128_bits_in_hex(randomness: Randomness) -> None:
    tokens = [randomness.token() for _ in range(200)]

    assert all(len(token) == 32 and set(token) <= set(string.hexdigits) for token in tokens)
    assert all(token == token.lower() for token in tokens)
    assert len(set(tokens)) == len(tokens)


def test_numbers_spread_within_their_bounds(randomness: Randomness) -> None:
    numbers = [randomness.uniform(2.0, 4.0) for _ in range(500)]

    assert all(2.0 <= number <= 4.0 for number in numbers)
    assert min(numbers) < 2.5
    assert max(numbers) > 3.5
    assert randomness.uniform(1.0, 1.0) == 1.0


def test_work_is_done_before_run_returns(executor: Executor) -> None:
    done: list[int] = []

    executor.run(lambda: done.append(1), seconds=30)

    assert done == [1]


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), KeyboardInterrupt()], ids=repr)
def test_an_error_of_the_work_is_raised(executor: Executor, error: BaseException) -> None:
    def work() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        executor.run(work, seconds=30)

    assert raised.value is error


@pytest.fixture(params=[IN_TURN, ThreadParallel(4)], ids=["in turn", "threads"])
def parallel(request: pytest.FixtureRequest) -> Parallel:
    made: Parallel = request.param
    return made


def test_results_have_the_order_of_their_subjects(parallel: Parallel) -> None:
    assert parallel.map(lambda number: number * 2, range(100)) == list(range(0, 200, 2))
    assert parallel.map(str, []) == []


def test_an_error_of_one_call_is_raised(parallel: Parallel) -> None:
    with pytest.raises(ZeroDivisionError):
        parallel.map(lambda number: 1 // number, [1, 0, 2])
