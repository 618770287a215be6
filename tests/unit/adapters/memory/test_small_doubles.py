"""The smaller doubles."""

from datetime import UTC, datetime, timedelta

import pytest

from webhook_inbox.adapters.memory import (
    Fault,
    InlineExecutor,
    ManualClock,
    MemoryBlobs,
    MemorySecrets,
    SeededRandomness,
)
from webhook_inbox.domain.errors import HandlerTimedOut, Unavailable
from webhook_inbox.domain.ports import CallingThread
from webhook_inbox.domain.secrets import TOKEN_KEY


def test_a_clock_stands_until_it_is_advanced() -> None:
    start = datetime(2026, 11, 21, tzinfo=UTC)
    clock = ManualClock(start)
    assert clock.now() == clock.now() == start

    clock.advance(days=1, hours=1, minutes=1, seconds=1.5)
    clock.sleep(0.5)

    assert clock.now() == start + timedelta(days=1, hours=1, minutes=1, seconds=2)


def test_randomness_repeats_itself_by_its_seed() -> None:
    def drawn(seed: int) -> list[object]:
        randomness = SeededRandomness(seed)
        return [randomness.token(), randomness.uniform(0, 1), randomness.token()]

    assert drawn(1) == drawn(1) != drawn(2)


def test_the_calling_thread_knows_no_limit() -> None:
    done: list[int] = []

    CallingThread().run(lambda: done.append(1), seconds=0)

    assert done == [1]


@pytest.mark.parametrize(("took", "late"), [(4.9, False), (5.0, False), (5.1, True)])
def test_work_that_moves_the_clock_past_its_limit_has_timed_out(took: float, late: bool) -> None:
    clock = ManualClock()
    executor = InlineExecutor(clock)

    if late:
        with pytest.raises(HandlerTimedOut):
            executor.run(lambda: clock.sleep(took), seconds=5)
    else:
        executor.run(lambda: clock.sleep(took), seconds=5)


def test_what_late_work_raises_is_not_heard_of() -> None:
    clock = ManualClock()

    def work() -> None:
        clock.sleep(6)
        raise ValueError

    with pytest.raises(HandlerTimedOut):
        InlineExecutor(clock).run(work, seconds=5)


def test_blobs_fail_before_or_after_their_effect() -> None:
    blobs = MemoryBlobs(faults=lambda service, operation: Fault.BEFORE)
    with pytest.raises(Unavailable, match="s3 PutObject"):
        blobs.put("k", b"x")
    assert blobs.objects == {}

    blobs.faults = lambda service, operation: Fault.AFTER
    with pytest.raises(Unavailable, match="s3 PutObject"):
        blobs.put("k", b"x")
    with pytest.raises(Unavailable, match="s3 GetObject"):
        blobs.get("k")
    assert blobs.objects == {"k": b"x"}


def test_secrets_begin_with_what_they_are_given_and_fail_when_told() -> None:
    secrets = MemorySecrets({"stripe": ("a", "b"), TOKEN_KEY: ("key",)})
    assert secrets.fetch() == {"stripe": ("a", "b")}
    assert secrets.generated(TOKEN_KEY) == "key"

    secrets.faults = lambda service, operation: Fault.BEFORE

    for read in (secrets.fetch, lambda: secrets.generated(TOKEN_KEY)):
        with pytest.raises(Unavailable, match="secretsmanager GetSecretValue"):
            read()


def test_a_rotation_keeps_one_previous_value() -> None:
    secrets = MemorySecrets()
    for value in ("a", "b", "c"):
        secrets.rotate("stripe", value)

    assert secrets.live("stripe") == ("c", "b")

    secrets.remove("stripe")
    assert secrets.live("stripe") == ()
