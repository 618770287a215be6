"""Handlers run under a limit, in a thread."""

import sys
import threading
from contextlib import suppress
from contextvars import ContextVar

import pytest

from tests.waiting import DEADLINE
from webhook_inbox.adapters.system import ThreadExecutor, ThreadParallel
from webhook_inbox.domain.errors import HandlerTimedOut, Permanent


def test_work_is_done_in_another_thread_before_run_returns() -> None:
    seen: list[threading.Thread] = []

    ThreadExecutor().run(lambda: seen.append(threading.current_thread()), seconds=DEADLINE)

    assert seen[0] is not threading.current_thread()
    assert seen[0].daemon


@pytest.mark.parametrize(
    "error",
    [
        Permanent("x"),
        ValueError("x"),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        BaseExceptionGroup("g", [KeyboardInterrupt()]),
    ],
    ids=repr,
)
def test_what_the_work_raises_is_raised_as_it_was(error: BaseException) -> None:
    executor = ThreadExecutor()

    def work() -> None:
        raise error

    with pytest.raises(BaseException) as raised:  # noqa: PT011 - compared by identity
        executor.run(work, seconds=DEADLINE)

    assert raised.value is error
    assert any(entry.name == "work" for entry in raised.traceback)
    assert not executor.alive


def test_endless_recursion_is_an_error_like_any_other() -> None:
    def work() -> None:
        work()

    with pytest.raises(RecursionError):
        ThreadExecutor().run(work, seconds=DEADLINE)


def test_work_that_outlives_its_time_is_abandoned_and_known_to_live() -> None:
    executor = ThreadExecutor()
    go_on = threading.Event()
    ended = threading.Event()

    def work() -> None:
        go_on.wait(DEADLINE)
        ended.set()

    with pytest.raises(HandlerTimedOut, match=r"0\.05 s"):
        executor.run(work, seconds=0.05)
    assert executor.alive

    executor.run(lambda: None, seconds=DEADLINE)
    assert executor.alive  # another run's end does not hide it

    go_on.set()
    assert ended.wait(DEADLINE)
    for thread in executor._abandoned:
        thread.join(DEADLINE)
    assert not executor.alive


def test_what_abandoned_work_raises_goes_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    executor = ThreadExecutor()
    go_on = threading.Event()

    def work() -> None:
        go_on.wait(DEADLINE)
        raise SystemExit

    with pytest.raises(HandlerTimedOut):
        executor.run(work, seconds=0.01)
    go_on.set()
    executor._abandoned[0].join(DEADLINE)

    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_without_time_nothing_begins(seconds: float) -> None:
    begun: list[int] = []

    with pytest.raises(HandlerTimedOut):
        ThreadExecutor().run(lambda: begun.append(1), seconds=seconds)

    assert begun == []


def test_the_work_sees_the_callers_context_and_cannot_change_it() -> None:
    request: ContextVar[str] = ContextVar("request")
    request.set("mine")
    seen: list[str] = []

    def work() -> None:
        seen.append(request.get())
        request.set("changed")

    ThreadExecutor().run(work, seconds=DEADLINE)

    assert seen == ["mine"]
    assert request.get() == "mine"


def test_an_error_does_not_keep_its_caller_alive() -> None:
    """A frame that refers to the error that refers to it is freed by the collector only."""
    error = ValueError("x")
    before = sys.getrefcount(error)

    def work() -> None:
        raise error

    with suppress(ValueError):
        ThreadExecutor().run(work, seconds=DEADLINE)
    error.__traceback__ = None

    assert sys.getrefcount(error) == before


def test_a_pool_works_on_as_many_items_at_once_as_it_has_threads() -> None:
    # Each waits until all four have begun.
    all_begun = threading.Barrier(4)

    def work(item: int) -> int:
        all_begun.wait(timeout=DEADLINE)
        return item * item

    assert ThreadParallel(4).map(work, range(8)) == [number * number for number in range(8)]


def test_a_pool_raises_the_first_error_in_order_once_all_have_ended() -> None:
    ended: list[int] = []

    def work(item: int) -> None:
        try:
            if item in {2, 5}:
                raise ValueError(item)
        finally:
            ended.append(item)

    with pytest.raises(ValueError, match="2"):
        ThreadParallel(3).map(work, range(8))
    assert sorted(ended) == list(range(8))


def test_a_pool_has_nothing_to_do_without_items() -> None:
    assert ThreadParallel(2).map(str, []) == []


def test_a_run_that_does_not_stop_keeps_its_lease_until_the_others_have_ended() -> None:
    """The process ends after its settlement, and would end the others too."""
    executor, go_on, settled = ThreadExecutor(), threading.Event(), threading.Event()

    def hanging() -> str:
        with pytest.raises(HandlerTimedOut):
            executor.run(lambda: go_on.wait(DEADLINE) and None, seconds=0.01)
        return "others settled" if settled.is_set() else "too early"

    def other() -> None:
        executor.run(lambda: None, seconds=DEADLINE)
        # Not before the first one waits for this run.
        with executor._changed:
            executor._changed.wait_for(lambda: executor._overdue, timeout=DEADLINE)
        settled.set()
        executor.ended()

    executor.begin(2, seconds=DEADLINE)
    found = ThreadParallel(2).map(lambda work: work(), [hanging, other])

    assert found == ["others settled", None]
    assert executor.alive
    go_on.set()


def test_runs_that_do_not_stop_do_not_wait_for_each_other() -> None:
    executor, go_on = ThreadExecutor(), threading.Event()

    def hanging(_: int) -> None:
        with pytest.raises(HandlerTimedOut):
            executor.run(lambda: go_on.wait(DEADLINE) and None, seconds=0.01)
        executor.ended()

    executor.begin(3, seconds=DEADLINE)
    ThreadParallel(3).map(hanging, range(3))

    assert executor.alive
    go_on.set()


def test_a_run_that_does_not_stop_waits_no_longer_than_to_the_end_of_the_invocation() -> None:
    executor, go_on = ThreadExecutor(), threading.Event()

    executor.begin(2, seconds=0.01)
    with pytest.raises(HandlerTimedOut):
        executor.run(lambda: go_on.wait(DEADLINE) and None, seconds=0.01)

    assert executor.alive
    go_on.set()
