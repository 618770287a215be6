"""An effect that started and did not commit: repeated, asked about, or held (G4)."""

from datetime import timedelta

import pytest

from tests.unit.handlers.effects.bench import Bench, Killed, die, killed_after
from webhook_inbox.domain.errors import Held, Permanent, Transient
from webhook_inbox.domain.timestamps import from_ms


@pytest.fixture
def bench() -> Bench:
    """A run whose first attempt died in the middle of its effect `charge`."""
    bench = Bench()
    with pytest.raises(Killed):
        bench.attempt().effect("charge", killed_after(bench.sink), args={"amount": 5})
    return bench


def test_it_is_repeated_under_the_same_key(bench: Bench) -> None:
    assert bench.attempt().effect("charge", bench.sink, args={"amount": 5}) == {"id": 2}
    assert len(set(bench.sink.keys)) == 1


def test_it_is_held_where_the_policy_says_so(bench: Bench) -> None:
    with pytest.raises(Held, match="it is unknown whether it happened") as held:
        bench.attempt().effect("charge", bench.sink, in_doubt="hold")
    assert held.value.subject == "effect:charge"
    assert held.value.doubtful
    assert len(bench.sink.keys) == 1


def test_a_function_that_takes_no_key_is_held_by_default() -> None:
    bench = Bench()
    with pytest.raises(Killed):
        bench.attempt().effect("mail", lambda: die(""))
    with pytest.raises(Held):
        bench.attempt().effect("mail", bench.sink.without_key)
    assert bench.sink.keys == []

    said = bench.attempt().effect("mail", bench.sink.without_key, in_doubt="retry")
    assert said == {"id": 1}


def test_it_is_never_repeated_beyond_the_keys_lifetime(bench: Bench) -> None:
    bench.clock.advance(hours=23, minutes=59)
    with pytest.raises(Killed):
        bench.attempt().effect("charge", killed_after(bench.sink))
    # The second start does not make the key any younger.
    bench.clock.advance(minutes=1)
    with pytest.raises(Held, match="no longer knows the key"):
        bench.attempt().effect("charge", bench.sink)
    assert len(bench.sink.keys) == 2


def test_the_repetition_must_end_within_the_keys_lifetime(bench: Bench) -> None:
    bench.clock.advance(hours=23, minutes=59, seconds=30)
    with pytest.raises(Held, match="no longer knows the key"):
        bench.attempt(seconds=30).effect("charge", bench.sink)
    assert bench.attempt(seconds=29).effect("charge", bench.sink) == {"id": 2}


def test_the_lifetime_is_the_downstreams(bench: Bench) -> None:
    bench.clock.advance(minutes=10)
    with pytest.raises(Held):
        bench.attempt().effect("charge", bench.sink, key_lifetime="10m")
    bench.attempt().effect("charge", bench.sink, key_lifetime=timedelta(minutes=11))


def test_a_key_that_the_first_call_did_not_have_proves_nothing() -> None:
    bench = Bench()
    with pytest.raises(Killed):
        bench.attempt().effect("charge", lambda: killed_after(bench.sink)(""))
    with pytest.raises(Held, match="it is unknown whether it happened"):
        bench.attempt().effect("charge", bench.sink)
    with pytest.raises(Held, match="it is unknown whether it happened"):
        bench.attempt().effect("charge", bench.sink, in_doubt="retry")
    assert bench.sink.keys == [""]


def test_a_longer_lifetime_configured_later_does_not_revive_a_key(bench: Bench) -> None:
    with pytest.raises(Killed):
        bench.attempt().effect("charge", killed_after(bench.sink), key_lifetime="1h")
    bench.clock.advance(minutes=30)
    with pytest.raises(Killed):
        bench.attempt().effect("charge", killed_after(bench.sink), key_lifetime="24h")
    bench.clock.advance(hours=5)
    with pytest.raises(Held, match="no longer knows the key"):
        bench.attempt().effect("charge", bench.sink, key_lifetime="24h")
    assert len(bench.sink.keys) == 3


def test_other_arguments_hold_the_run(bench: Bench) -> None:
    with pytest.raises(Held, match="started with other arguments") as held:
        bench.attempt().effect("charge", bench.sink, args={"amount": 6})
    assert held.value.shows == '{"amount": 6}'
    assert len(bench.sink.keys) == 1


def test_other_arguments_hold_the_run_after_the_commit_too(bench: Bench) -> None:
    bench.attempt().effect("charge", bench.sink, args={"amount": 5})
    with pytest.raises(Held, match="committed with other arguments") as held:
        bench.attempt().effect("charge", bench.sink, args={"amount": 6})
    bench.approve("effect:charge", held.value.fingerprint)
    assert bench.attempt().effect("charge", bench.sink, args={"amount": 6}) == {"id": 2}
    assert len(bench.sink.keys) == 2


def test_the_order_of_keys_in_arguments_does_not_matter() -> None:
    bench = Bench()
    bench.attempt().effect("charge", bench.sink, args={"a": 1, "b": 2})
    assert bench.attempt().effect("charge", bench.sink, args={"b": 2, "a": 1}) == {"id": 1}


# -- probes


def test_a_probe_that_finds_it_ends_the_doubt(bench: Bench) -> None:
    asked: list[str] = []

    def probe(key: str) -> dict[str, int]:
        asked.append(str(key))
        return {"id": 77}

    assert bench.attempt().effect("charge", bench.sink, probe=probe) == {"id": 77}
    assert bench.attempt().effect("charge", bench.sink, probe=probe) == {"id": 77}
    assert asked == bench.sink.keys[:1]
    assert len(bench.sink.keys) == 1
    assert bench.row("charge")["found_by"] == "probe"


def test_a_probe_that_finds_nothing_lets_it_happen_whatever_the_policy(bench: Bench) -> None:
    bench.clock.advance(days=2)
    said = bench.attempt().effect("charge", bench.sink, probe=lambda key: None, in_doubt="hold")
    assert said == {"id": 2}
    assert from_ms(bench.row("charge")["doubtful_since"]) == bench.clock.now()


def test_a_probe_that_fails_leaves_it_in_doubt(bench: Bench) -> None:
    def probe(key: str) -> None:
        raise Permanent("the search is gone")

    with pytest.raises(Permanent, match="the search is gone"):
        bench.attempt().effect("charge", bench.sink, probe=probe)
    assert bench.row("charge")["status"] == "started"
    assert len(bench.sink.keys) == 1


def test_one_approval_is_enough_where_what_a_probe_finds_is_no_json(bench: Bench) -> None:
    with pytest.raises(Held, match="its result is not JSON") as held:
        bench.attempt().effect("charge", bench.sink, probe=lambda key: object())
    bench.approve(held.value.subject, held.value.fingerprint)
    assert bench.attempt().effect("charge", bench.sink, probe=lambda key: object()) is None


def test_a_probe_is_not_asked_where_there_is_no_doubt() -> None:
    bench = Bench()
    bench.attempt().effect("charge", bench.sink, probe=die)
    bench.attempt().effect("charge", bench.sink, probe=die)
    assert len(bench.sink.keys) == 1


# -- a person's word


def test_approved_it_is_repeated_once(bench: Bench) -> None:
    with pytest.raises(Held) as held:
        bench.attempt().effect("charge", bench.sink, in_doubt="hold")
    bench.approve(held.value.subject, held.value.fingerprint)
    with pytest.raises(Killed):
        bench.attempt().effect("charge", killed_after(bench.sink), in_doubt="hold")
    assert len(bench.sink.keys) == 2

    # The next doubt is another one: the approval was not for that.
    with pytest.raises(Held) as again:
        bench.attempt().effect("charge", bench.sink, in_doubt="hold")
    assert again.value.fingerprint != held.value.fingerprint
    assert len(bench.sink.keys) == 2


def test_an_approval_of_other_arguments_lets_a_doubtful_effect_be_repeated(bench: Bench) -> None:
    with pytest.raises(Held) as held:
        bench.attempt().effect("charge", bench.sink, args={"amount": 6}, in_doubt="hold")
    bench.approve(held.value.subject, held.value.fingerprint)
    said = bench.attempt().effect("charge", bench.sink, args={"amount": 6}, in_doubt="hold")
    assert said == {"id": 2}


def test_an_effect_that_needs_approval_waits_for_it() -> None:
    bench = Bench()
    with pytest.raises(Held, match="waits for approval") as held:
        bench.attempt().effect("refund", bench.sink, args={"amount": 5}, approve=True)
    assert held.value.shows == '{"amount": 5}'
    assert bench.sink.keys == []

    bench.approve("effect:refund", held.value.fingerprint)
    with pytest.raises(Held):  # what was approved was another refund
        bench.attempt().effect("refund", bench.sink, args={"amount": 6}, approve=True)
    assert bench.attempt().effect("refund", bench.sink, args={"amount": 5}, approve=True)
    assert len(bench.sink.keys) == 1


def test_what_was_approved_and_begun_is_not_asked_for_again() -> None:
    bench = Bench()
    with pytest.raises(Held) as held:
        bench.attempt().effect("refund", bench.sink, approve=True)
    bench.approve("effect:refund", held.value.fingerprint)
    with pytest.raises(Killed):
        bench.attempt().effect("refund", killed_after(bench.sink), approve=True)
    bench.approve("effect:refund", "another hold's")
    bench.attempt().effect("refund", bench.sink, approve=True)
    assert bench.attempt().effect("refund", bench.sink, approve=True) == {"id": 2}


@pytest.mark.parametrize("ended", [Permanent("422"), Killed()])
def test_what_was_begun_before_it_needed_approval_waits_for_it_now(ended: BaseException) -> None:
    bench = Bench()
    bench.sink.planned = [ended]
    with pytest.raises(type(ended)):
        bench.attempt().effect("refund", bench.sink, args={"amount": 5})

    with pytest.raises(Held, match="waits for approval") as held:  # by the next deployment
        bench.attempt().effect("refund", bench.sink, args={"amount": 5}, approve=True)
    assert len(bench.sink.keys) == 1
    bench.approve("effect:refund", held.value.fingerprint)
    assert bench.attempt().effect("refund", bench.sink, args={"amount": 5}, approve=True)


def test_one_approval_is_enough_where_arguments_changed_after_a_start() -> None:
    bench = Bench()
    with pytest.raises(Held) as held:
        bench.attempt().effect("refund", bench.sink, args={"amount": 5}, approve=True)
    bench.approve("effect:refund", held.value.fingerprint)
    with pytest.raises(Killed):
        bench.attempt().effect("refund", die, args={"amount": 5}, approve=True)

    with pytest.raises(Held, match="started with other arguments") as held:
        bench.attempt().effect("refund", bench.sink, args={"amount": 6}, approve=True)
    assert held.value.shows == '{"amount": 6}'
    bench.approve("effect:refund", held.value.fingerprint)
    with pytest.raises(Held):  # what was approved was another refund
        bench.attempt().effect("refund", bench.sink, args={"amount": 7}, approve=True)
    again = bench.attempt().effect("refund", bench.sink, args={"amount": 6}, approve=True)
    assert again == {"id": 1}


# -- what an answer to a repetition says of the first call


def test_a_refusal_of_the_repetition_says_nothing_of_the_first_call(bench: Bench) -> None:
    bench.sink.planned = [Transient("429", refused=True)]
    with pytest.raises(Transient):
        bench.attempt().effect("charge", bench.sink)
    assert bench.row("charge")["status"] == "started"
    with pytest.raises(Held):
        bench.attempt().effect("charge", bench.sink, in_doubt="hold")


def test_nor_does_an_answer_to_the_repetition(bench: Bench) -> None:
    bench.sink.planned = [Permanent("422")]
    with pytest.raises(Permanent):
        bench.attempt().effect("charge", bench.sink)
    assert bench.row("charge")["status"] == "started"


def test_a_rejection_before_any_look_proves_nothing_either(bench: Bench) -> None:
    bench.sink.planned = [Permanent("401", refused=True)]
    with pytest.raises(Permanent):
        bench.attempt().effect("charge", bench.sink)
    assert bench.row("charge")["status"] == "started"

    bench.clock.advance(days=3)  # until an operator sets the secret and replays it
    with pytest.raises(Held, match="no longer knows the key"):
        bench.attempt().effect("charge", bench.sink)
    assert len(bench.sink.keys) == 2


def test_turned_away_the_first_time_it_was_certainly_not_done() -> None:
    bench = Bench()
    bench.sink.planned = [Permanent("401", refused=True)]
    with pytest.raises(Permanent):
        bench.attempt().effect("charge", bench.sink)
    assert bench.row("charge")["status"] == "failed"


@pytest.mark.parametrize("policy", ["", "maybe", "RETRY"])
def test_an_unknown_policy_is_refused(policy: str) -> None:
    bench = Bench()
    if policy:
        with pytest.raises(Permanent, match=f"'charge': in_doubt='{policy}'; use one of retry, "):
            bench.attempt().effect("charge", bench.sink, in_doubt=policy)
    with pytest.raises(Permanent, match="not a duration"):
        bench.attempt().effect("note", bench.sink, key_lifetime="a day")
    assert bench.sink.keys == []
