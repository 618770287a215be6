"""The simulated sink executes a call once under a key that it remembers."""

from simulation.engine.sink import DONE, KNOWN, USED, Sink


def test_a_known_key_executes_nothing_and_another_body_is_rejected() -> None:
    sink = Sink()
    assert sink.post("k", "a", now=0, until=10) == DONE
    assert sink.post("k", "a", now=9, until=19) == KNOWN
    assert sink.post("k", "b", now=9, until=19) == USED
    assert sink.executed == {"k": 1}


def test_a_forgotten_key_is_executed_again() -> None:
    sink = Sink()
    sink.post("k", "a", now=0, until=10)
    # A repetition does not prolong the key.
    sink.post("k", "a", now=9, until=19)
    assert sink.post("k", "b", now=10, until=20) == DONE
    assert sink.executed == {"k": 2}
    assert sink.finds("k")
    assert not sink.finds("other")


def test_a_sink_without_keys_executes_every_call() -> None:
    sink = Sink()
    assert [sink.post("k", "a", now=0, until=0) for _ in range(2)] == [DONE, DONE]


def test_its_state_is_restored_and_identified() -> None:
    sink = Sink()
    before, key = sink.snapshot(), sink.key()
    sink.post("k", "a", now=0, until=10)
    assert sink.key() != key
    sink.restore(before)
    assert sink.key() == key
    assert sink.post("k", "b", now=0, until=10) == DONE
