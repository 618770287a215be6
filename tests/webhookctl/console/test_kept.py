"""Values that pages keep for a while."""

from webhook_inbox.client.cached import Cached


def test_a_value_is_kept_for_its_period() -> None:
    numbers = iter(range(9))
    recent = Cached(lambda: next(numbers), seconds=60)
    assert [recent(), recent()] == [0, 0]
    recent.forget()
    assert recent() == 1


def test_a_value_that_changed_while_it_was_read_is_not_kept() -> None:
    numbers = iter(range(9))
    actions = iter([True, False])

    def read() -> int:
        found = next(numbers)
        if next(actions):
            recent.forget()
        return found

    recent = Cached(read, seconds=60)
    assert [recent(), recent(), recent()] == [0, 1, 1]
