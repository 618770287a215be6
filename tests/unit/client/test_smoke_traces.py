"""The search for a smoke test's dead letters among those of other runs."""

from collections.abc import Sequence

import pytest

from webhook_inbox.adapters.memory import ManualClock, MemoryQueue
from webhook_inbox.client.health.smoke.traces import find_dead_letters
from webhook_inbox.domain.errors import Unavailable
from webhook_inbox.domain.manifest import SMOKE
from webhook_inbox.domain.ports import Message, Outgoing
from webhook_inbox.queue.message import RunMessage

OURS = RunMessage(SMOKE, "smoke-1-fails", SMOKE).encode()


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still."""
    return ManualClock()


class SlowQueue(MemoryQueue):
    """A DLQ of which one receive takes a second."""

    def __init__(self, clock: ManualClock, bodies: Sequence[str]) -> None:
        super().__init__(clock)
        self.clock = clock
        self.send([Outgoing(body) for body in bodies])

    def receive(self, limit: int, *, hidden_for: int) -> Sequence[Message]:
        self.clock.advance(seconds=1)
        return super().receive(limit, hidden_for=hidden_for)


def test_a_pass_ends_although_messages_become_visible_again(clock: ManualClock) -> None:
    """With 200, those of the first receives are visible before the last ones are received."""
    began, queue = clock.now(), SlowQueue(clock, ["other"] * 200)
    assert find_dead_letters(queue, "smoke-1-fails", clock) == []
    assert (clock.now() - began).total_seconds() == 5


def test_a_message_that_cannot_be_shown_again_fails_nothing(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hide(receipt: str, seconds: int) -> None:
        raise Unavailable("sqs", "ChangeMessageVisibility", "MessageNotInflight")

    queue = SlowQueue(clock, ["other", OURS])
    monkeypatch.setattr(queue, "hide", hide)
    assert [each.body for each in find_dead_letters(queue, "smoke-1-fails", clock)] == [OURS]
