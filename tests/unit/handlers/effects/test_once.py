"""An effect happens once, and what is recorded of it is returned ever after."""

from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from tests.unit.handlers.effects.bench import ATTEMPT, Bench, Killed, elsewhere, killed_after
from webhook_inbox import Deferred, Held, Permanent, Transient
from webhook_inbox.adapters.memory import Fault
from webhook_inbox.domain.errors import Superseded, Unavailable
from webhook_inbox.domain.timestamps import to_ms
from webhook_inbox.handlers.effects.effect import Effects
from webhook_inbox.handlers.effects.journal import EffectJournal, decode


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_committed_effect_is_not_executed_again(bench: Bench) -> None:
    first = bench.attempt().effect("create-order", bench.sink)
    again = bench.attempt().effect("create-order", bench.sink)

    assert first == again == {"id": 1}
    assert bench.sink.keys == ["create-order:stripe.fulfil:stripe:evt_1"]


def test_an_effect_costs_two_writes_and_a_repetition_one_refused(bench: Bench) -> None:
    bench.attempt().effect("create-order", bench.sink)
    assert bench.faults.operations() == ["UpdateItem", "UpdateItem"]

    bench.attempt().effect("create-order", bench.sink)
    assert bench.faults.operations() == ["UpdateItem"]


def test_the_same_result_is_returned_the_first_time_as_ever_after(bench: Bench) -> None:
    class Order(BaseModel):
        number: int

    @dataclass
    class Receipt:
        order: Order
        lines: tuple[str, ...]

    given = Receipt(Order(number=7), ("a", "b"))
    first = bench.attempt().effect("order", lambda key: given)
    assert first == {"order": {"number": 7}, "lines": ["a", "b"]}
    assert bench.attempt().effect("order", bench.sink) == first


def test_a_function_without_parameters_is_called_without_the_key(bench: Bench) -> None:
    assert bench.attempt().effect("ping", lambda: "pong") == "pong"


def test_what_a_loop_binds_is_not_replaced_by_the_key(bench: Bench) -> None:
    effects = bench.attempt()
    for line in ("tea", "milk"):
        assert effects.effect(f"line:{line}", lambda line=line: bench.sink(line))

    assert bench.sink.keys == ["tea", "milk"]


def test_a_secret_in_a_result_is_not_recorded(bench: Bench) -> None:
    effects = Effects(
        EffectJournal(bench.table, bench.run, received_at=bench.received_at),
        bench.run,
        clock=bench.clock,
        end=bench.clock.now() + ATTEMPT,
        redact=lambda text: text.replace("12345678", "[secret]"),
    )
    bench.sink.planned = [{"as 12345678": ["sent 12345678", 912345678, None]}]
    known = {"as [secret]": ["sent [secret]", 912345678, None]}

    assert effects.effect("echo", bench.sink) == known
    assert decode(bench.row("echo")["result"]) == known


def test_what_a_downstream_refused_is_tried_again_under_the_same_key(bench: Bench) -> None:
    bench.sink.planned = [Permanent("422")]
    with pytest.raises(Permanent):
        bench.attempt().effect("create-order", bench.sink)
    row = bench.row("create-order")
    assert (row["status"], row["error"]) == ("failed", "422")

    bench.attempt().effect("create-order", bench.sink, args={"now": "mended"})
    assert len(set(bench.sink.keys)) == 1
    assert len(bench.sink.keys) == 2
    row = bench.row("create-order")
    assert row["status"] == "committed"
    assert "error" not in row


@pytest.mark.parametrize(
    "error", [Transient("429", refused=True), Deferred(Bench().clock.now(), "the circuit is open")]
)
def test_what_was_certainly_not_done_is_not_in_doubt(bench: Bench, error: Exception) -> None:
    bench.sink.planned = [error]
    with pytest.raises(type(error)):
        bench.attempt().effect("mail", bench.sink.without_key)
    assert bench.row("mail")["status"] == "failed"

    assert bench.attempt().effect("mail", bench.sink.without_key) == {"id": 2}


def test_a_name_is_used_once_in_an_attempt(bench: Bench) -> None:
    effects = bench.attempt()
    effects.effect("mail", bench.sink)
    with pytest.raises(Permanent, match="'mail' is named twice in one run; name each, like"):
        effects.effect("mail", bench.sink)
    assert len(bench.sink.keys) == 1


def test_an_effect_inside_of_another_is_refused(bench: Bench) -> None:
    effects = bench.attempt()
    with pytest.raises(Permanent, match="inside another effect"):
        effects.effect("outer", lambda key: effects.effect("inner", bench.sink))
    assert bench.sink.keys == []
    # And is none of the next ones' business.
    assert effects.effect("after", bench.sink) == {"id": 1}


@pytest.mark.parametrize("name", ["", "a" * 129, "käse", "a#b", "a\nb", 7, None])
def test_a_name_that_no_row_could_hold_is_refused_before_anything_happens(
    bench: Bench, name: str
) -> None:
    with pytest.raises(Permanent, match="a name is 1-128 printable ASCII characters"):
        bench.attempt().effect(name, bench.sink)
    assert bench.sink.keys == []
    assert bench.faults.operations() == []


@pytest.mark.parametrize("name", ["a", "a" * 128, "POST /notes", "mail:ann@a.example", "!~"])
def test_any_other_name_will_do(bench: Bench, name: str) -> None:
    bench.attempt().effect(name, bench.sink)
    assert bench.attempt().effect(name, bench.sink) == {"id": 1}


def test_arguments_that_are_no_json_are_refused_before_anything_happens(bench: Bench) -> None:
    for args in (object(), {"at": float("nan")}, "\ud800", Bench):
        with pytest.raises(Permanent, match="its args are not JSON"):
            bench.attempt().effect("mail", bench.sink, args=args)
    assert bench.sink.keys == []


def test_a_result_of_300_kb_is_recorded(bench: Bench) -> None:
    large = "x" * (300 * 1024 - 2)  # and its two quotation marks
    bench.attempt().effect("export", lambda key: large)
    assert bench.attempt().effect("export", bench.sink) == large


@pytest.mark.parametrize(
    ("result", "why"),
    [("x" * (300 * 1024 - 1), "301 KB"), (object(), "not JSON"), (b"x", "not JSON")],
)
def test_what_cannot_be_recorded_is_held_and_not_executed_again(
    bench: Bench, result: object, why: str
) -> None:
    bench.sink.planned = [result]
    with pytest.raises(Held, match=why) as held:
        bench.attempt().effect("export", bench.sink)
    with pytest.raises(Held, match=why) as again:
        bench.attempt().effect("export", bench.sink)
    assert len(bench.sink.keys) == 1
    assert held.value.fingerprint == again.value.fingerprint

    bench.approve("effect:export", held.value.fingerprint)
    assert bench.attempt().effect("export", bench.sink) is None
    assert len(bench.sink.keys) == 1


def test_too_little_time_starts_nothing(bench: Bench) -> None:
    with pytest.raises(Transient, match=r"needs 2 s, and 1\.9 s are left"):
        bench.attempt(seconds=1.9).effect("mail", bench.sink)
    with pytest.raises(Transient, match="needs 30 s"):
        bench.attempt(seconds=29).effect("mail", bench.sink, needs=30)
    assert bench.sink.keys == []
    # Looked up, should it have happened; nothing is written.
    assert bench.faults.operations() == ["GetItem", "GetItem"]
    bench.attempt(seconds=2).effect("mail", bench.sink)


# -- two attempts at once


def test_an_attempt_that_was_overtaken_starts_nothing(bench: Bench) -> None:
    old = bench.attempt()
    new = bench.attempt()
    with pytest.raises(Killed):
        new.effect("mail", killed_after(bench.sink))
    with pytest.raises(Superseded, match="by a later attempt"):
        old.effect("mail", bench.sink)
    assert len(bench.sink.keys) == 1


def test_the_first_commit_wins_also_from_an_attempt_that_was_overtaken(bench: Bench) -> None:
    old = bench.attempt()
    seen: list[object] = []

    def overtaken(key: str) -> str:
        # While the old attempt is at it, the new one repeats it under the same key.
        seen.append(elsewhere(bench.attempt().effect, "mail", lambda key: "by the new"))
        return "by the old"

    assert old.effect("mail", overtaken) == "by the new"
    assert seen == ["by the new"]

    def thawing(key: str) -> str:
        token = bench.attempt()
        seen.append(token)
        return "late"

    frozen = bench.attempt()
    assert frozen.effect("note", thawing) == "late"
    assert seen[-1].effect("note", bench.sink) == "late"  # type: ignore[attr-defined]


# -- the ledger fails


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
def test_a_start_that_fails_runs_nothing_and_leaves_no_doubt(bench: Bench, fault: Fault) -> None:
    bench.faults.fail("UpdateItem", fault)
    with pytest.raises(Unavailable):
        bench.attempt().effect("mail", bench.sink.without_key)
    assert bench.sink.keys == []
    assert bench.attempt().effect("mail", bench.sink.without_key) == {"id": 1}


def test_a_start_of_which_nothing_is_heard_is_in_doubt(bench: Bench) -> None:
    bench.faults.fail("UpdateItem", Fault.AFTER)
    bench.faults.fail("UpdateItem")
    with pytest.raises(Unavailable):
        bench.attempt().effect("mail", bench.sink.without_key)
    with pytest.raises(Held):
        bench.attempt().effect("mail", bench.sink.without_key)
    assert bench.sink.keys == []


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
def test_a_commit_that_fails_is_made_once_more(bench: Bench, fault: Fault) -> None:
    bench.faults.fail("UpdateItem", fault, skip=1)
    assert bench.attempt().effect("mail", bench.sink) == {"id": 1}
    assert bench.attempt().effect("mail", bench.sink) == {"id": 1}
    assert len(bench.sink.keys) == 1


def test_a_commit_that_stays_away_leaves_the_effect_in_doubt(bench: Bench) -> None:
    bench.faults.fail("UpdateItem", skip=1, times=2)
    with pytest.raises(Unavailable):
        bench.attempt().effect("mail", bench.sink)
    assert bench.row("mail")["status"] == "started"
    bench.attempt().effect("mail", bench.sink)
    assert bench.sink.keys[0] == bench.sink.keys[1]


def test_a_failure_that_cannot_be_recorded_is_told_as_it_was(bench: Bench) -> None:
    bench.sink.planned = [Permanent("422")]
    bench.faults.fail("UpdateItem", skip=1)
    with pytest.raises(Permanent, match="422"):
        bench.attempt().effect("mail", bench.sink)
    assert bench.row("mail")["status"] == "started"


def test_an_effect_outlives_its_run_and_is_absent_once_it_has_expired(bench: Bench) -> None:
    bench.attempt().effect("mail", bench.sink)
    days = (bench.row("mail")["expires_at"] * 1000 - to_ms(bench.received_at)) / 86_400_000
    assert days == 49

    bench.clock.advance(days=50)
    assert bench.attempt().effect("mail", bench.sink) == {"id": 2}
    assert "error" not in bench.row("mail")
