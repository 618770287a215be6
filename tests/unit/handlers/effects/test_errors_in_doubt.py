"""An error never ends a doubt: only a commit, a probe or a person's decision does (G4)."""

from datetime import datetime
from typing import Any

import pytest

from tests.unit.handlers.effects.bench import Bench, Killed, elsewhere, killed_after
from webhook_inbox import Context, Event, Router
from webhook_inbox.adapters.memory import Fault, MemoryTable
from webhook_inbox.domain.errors import Deferred, Held, Permanent, Skipped, Transient, Unavailable
from webhook_inbox.domain.timestamps import from_ms, to_ms
from webhook_inbox.testing import Fake, Inbox

LATER = datetime.fromisoformat("2030-01-01T00:00:00+00:00")
# Every error by which a function can say that nothing was done.
DENIALS = [
    Permanent("422: this key was used with another request"),
    Permanent("404: no such order"),
    Permanent("401", refused=True),
    Transient("429", refused=True),
    Deferred(LATER, "over its rate"),
    Skipped("nothing to do"),
    Held("ask a person"),
]


@pytest.fixture
def bench() -> Bench:
    """A run whose first attempt died in the middle of its effect `charge`."""
    bench = Bench()
    with pytest.raises(Killed):
        bench.attempt().effect("charge", killed_after(bench.sink))
    return bench


def fails(bench: Bench, error: BaseException, **options: Any) -> None:
    """Makes an attempt whose call raises this error."""
    bench.sink.planned = [error]
    with pytest.raises(type(error)):
        bench.attempt().effect("charge", bench.sink, **options)


# -- an earlier start is in doubt


@pytest.mark.parametrize("error", DENIALS, ids=str)
def test_no_error_of_a_later_attempt_ends_a_doubt(bench: Bench, error: Exception) -> None:
    since = bench.clock.now()
    bench.clock.advance(hours=1)
    fails(bench, error)

    row = bench.row("charge")
    assert row["status"] == "started"
    assert from_ms(row["doubtful_since"]) == since
    assert row["error"] == str(error)
    assert "failed_at" not in row


@pytest.mark.parametrize("error", DENIALS, ids=str)
def test_after_its_keys_lifetime_it_is_held_whatever_the_attempts_between_said(
    bench: Bench, error: Exception
) -> None:
    bench.clock.advance(hours=1)
    fails(bench, error)
    bench.clock.advance(hours=30)

    with pytest.raises(Held, match="no longer knows the key"):
        bench.attempt().effect("charge", bench.sink)
    assert len(bench.sink.keys) == 2


def test_the_age_of_a_doubt_survives_any_number_of_errors(bench: Bench) -> None:
    since = bench.row("charge")["doubtful_since"]
    for hours in range(4):
        bench.clock.advance(hours=5)
        fails(bench, (Permanent("no"), Transient("429", refused=True))[hours % 2])
        assert bench.row("charge")["doubtful_since"] == since
    bench.clock.advance(hours=5)
    with pytest.raises(Held, match="no longer knows the key"):
        bench.attempt().effect("charge", bench.sink)


def test_the_last_error_is_kept_while_the_next_attempt_tries(bench: Bench) -> None:
    fails(bench, Permanent("the first"))
    fails(bench, Transient("the second"))
    assert bench.row("charge")["error"] == "the second"
    with pytest.raises(Killed):
        bench.attempt().effect("charge", killed_after(bench.sink))
    assert bench.row("charge")["error"] == "the second"

    bench.attempt().effect("charge", bench.sink)
    assert "error" not in bench.row("charge")


def test_an_error_without_a_text_is_named_by_its_class(bench: Bench) -> None:
    fails(bench, TimeoutError())
    assert bench.row("charge")["error"] == "TimeoutError"


def test_an_error_that_cannot_be_recorded_leaves_the_doubt(bench: Bench) -> None:
    def call(_: str) -> None:
        bench.faults.fail("UpdateItem")
        raise Permanent("422")

    with pytest.raises(Permanent, match="422"):
        bench.attempt().effect("charge", call)
    bench.clock.advance(hours=30)
    with pytest.raises(Held):
        bench.attempt().effect("charge", bench.sink)


def test_an_attempt_that_cannot_start_it_again_leaves_the_doubt(bench: Bench) -> None:
    since = bench.row("charge")["doubtful_since"]
    effects = bench.attempt()
    bench.faults.fail("UpdateItem", Fault.AFTER)
    with pytest.raises(Unavailable):
        effects.effect("charge", bench.sink)
    row = bench.row("charge")
    assert (row["status"], row["doubtful_since"]) == ("started", since)
    assert len(bench.sink.keys) == 1


def test_an_overtaken_attempt_records_no_error(bench: Bench) -> None:
    old = bench.attempt()

    def overtaken(_: str) -> None:
        with pytest.raises(Killed):
            elsewhere(bench.attempt().effect, "charge", killed_after(bench.sink))
        raise Permanent("too late")

    with pytest.raises(Permanent):
        old.effect("charge", overtaken)
    assert "error" not in bench.row("charge")


def test_arguments_that_an_attempt_between_did_not_name_are_remembered() -> None:
    bench = Bench()
    with pytest.raises(Killed):
        bench.attempt().effect("charge", killed_after(bench.sink), args={"amount": 5})
    fails(bench, Permanent("422"))
    with pytest.raises(Held, match="started with other arguments"):
        bench.attempt().effect("charge", bench.sink, args={"amount": 6})


def test_an_error_of_another_events_run_does_not_end_the_doubt_of_a_shared_effect() -> None:
    table = MemoryTable()
    first, second = Bench("evt_1", table=table), Bench("evt_2", table=table)
    with pytest.raises(Killed):
        first.attempt().effect("charge", killed_after(first.sink), key="payment:7")
    second.clock.advance(hours=1)
    second.sink.planned = [Permanent("422")]
    with pytest.raises(Permanent):
        second.attempt().effect("charge", second.sink, key="payment:7")

    second.clock.advance(hours=30)
    with pytest.raises(Held, match="no longer knows the key"):
        second.attempt().effect("charge", second.sink, key="payment:7")
    first.clock.advance(hours=31)
    with pytest.raises(Held, match="no longer knows the key"):
        first.attempt().effect("charge", first.sink, key="payment:7")


def test_the_row_of_a_shared_effect_lasts_as_long_as_the_youngest_event_needs_it() -> None:
    table = MemoryTable()
    old, young = Bench("evt_1", table=table), Bench("evt_2", table=table)
    young.clock.advance(days=20)
    young.received_at = young.clock.now()
    with pytest.raises(Killed):
        young.attempt().effect("charge", killed_after(young.sink), key="payment:7")
    expires_at = young.row("charge", key="payment:7")["expires_at"]

    old.clock.advance(days=20, hours=1)
    old.attempt().effect("charge", old.sink, key="payment:7")
    assert old.row("charge", key="payment:7")["status"] == "committed"
    assert old.row("charge", key="payment:7")["expires_at"] == expires_at


def test_a_shared_doubt_lasts_as_long_as_the_youngest_event_that_met_it() -> None:
    table = MemoryTable()
    old, young = Bench("evt_1", table=table), Bench("evt_2", table=table)
    with pytest.raises(Killed):
        old.attempt().effect("charge", killed_after(old.sink), key="payment:7")
    young.clock.advance(days=30)
    young.received_at = young.clock.now()
    with pytest.raises(Held):
        young.attempt().effect("charge", young.sink, key="payment:7")

    young.clock.advance(days=25)  # the first event's rows have expired
    with pytest.raises(Held):
        young.attempt().effect("charge", young.sink, key="payment:7")
    assert young.sink.keys == []


# -- what does end it


def test_after_a_probe_the_next_attempt_is_judged_like_a_first_one(bench: Bench) -> None:
    bench.clock.advance(hours=30)
    fails(bench, Permanent("422"), probe=lambda key: None)
    row = bench.row("charge")
    assert (row["status"], row["error"]) == ("failed", "422")
    assert bench.attempt().effect("charge", bench.sink) == {"id": 3}


@pytest.mark.parametrize("error", [Permanent("422"), Transient("429", refused=True)], ids=str)
def test_after_an_approval_the_next_attempt_is_judged_like_a_first_one(
    bench: Bench, error: Exception
) -> None:
    bench.clock.advance(hours=30)
    with pytest.raises(Held) as held:
        bench.attempt().effect("charge", bench.sink)
    bench.approve(held.value.subject, held.value.fingerprint)
    fails(bench, error)
    row = bench.row("charge")
    assert (row["status"], row["error"]) == ("failed", str(error))
    # One approval permits one call: this one was certainly not executed.
    assert bench.attempt().effect("charge", bench.sink) == {"id": 3}


def test_the_doubt_about_an_approved_repetition_is_a_new_one(bench: Bench) -> None:
    bench.clock.advance(hours=30)
    with pytest.raises(Held) as held:
        bench.attempt().effect("charge", bench.sink)
    bench.approve(held.value.subject, held.value.fingerprint)
    with pytest.raises(Killed):
        bench.attempt().effect("charge", killed_after(bench.sink))
    row = bench.row("charge")
    assert row["doubtful_since"] == to_ms(bench.clock.now())
    fails(bench, Permanent("422"))
    assert bench.row("charge")["status"] == "started"


def test_an_approved_repetition_that_could_not_start_needs_no_second_approval(
    bench: Bench,
) -> None:
    with pytest.raises(Held) as held:
        bench.attempt().effect("charge", bench.sink, in_doubt="hold")
    bench.approve(held.value.subject, held.value.fingerprint)
    with pytest.raises(Transient, match="are left"):
        bench.attempt(seconds=0.5).effect("charge", bench.sink, in_doubt="hold")
    assert bench.attempt().effect("charge", bench.sink, in_doubt="hold") == {"id": 2}


# -- the first attempt


def test_an_error_that_says_nothing_of_the_effect_is_recorded_with_the_doubt() -> None:
    bench = Bench()
    fails(bench, Transient("503"))
    row = bench.row("charge")
    assert (row["status"], row["error"]) == ("started", "503")


def test_a_permanent_error_may_leave_a_doubt() -> None:
    bench = Bench()
    fails(bench, Permanent("303", doubtful=True))
    row = bench.row("charge")
    assert (row["status"], row["error"]) == ("started", "303")


def test_a_doubtful_error_is_no_refusal() -> None:
    bench = Bench()
    fails(bench, Permanent("303", doubtful=True, refused=True))
    assert bench.row("charge")["status"] == "started"


def test_a_start_that_was_written_and_not_answered_leaves_nothing_in_doubt() -> None:
    bench = Bench()
    effects = bench.attempt()
    bench.faults.fail("UpdateItem", Fault.AFTER)
    with pytest.raises(Unavailable):
        effects.effect("charge", bench.sink)
    assert bench.row("charge")["status"] == "failed"


# -- calls to a destination

shop = Router("shop")


@shop.on("charge")
def charge(event: Event, ctx: Context) -> None:
    """Sends another body in each attempt."""
    ctx.effect(
        "charge",
        lambda key: ctx.http("crm").post("/charges", json={"attempt": ctx.attempt}).json(),
    )


@shop.on("read-first")
def read_first(event: Event, ctx: Context) -> None:
    """Reads the order before it charges."""

    def made(key: str) -> Any:
        ctx.http("crm").get("/orders/7")
        return ctx.http("crm").post("/charges", json={}).json()

    ctx.effect("charge", made)


@shop.on("gives-up")
def gives_up(event: Event, ctx: Context) -> None:
    """Turns any error of the call into a permanent one."""

    def made(key: str) -> Any:
        try:
            return ctx.http("crm").post("/charges", json={}).json()
        except Transient as error:
            raise Permanent("crm is broken") from error

    ctx.effect("charge", made)


@shop.on("tries-twice")
def tries_twice(event: Event, ctx: Context) -> None:
    """Makes the call twice in one attempt."""

    def made(key: str) -> Any:
        for _ in range(2):
            try:
                ctx.http("crm").post("/charges", json={})
            except Transient as error:
                if error.refused:
                    raise
        return ctx.http("crm").post("/charges", json={}).json()

    ctx.effect("charge", made)


@pytest.fixture
def crm() -> Fake:
    return Fake()


@pytest.fixture
def inbox(crm: Fake) -> Inbox:
    return Inbox(shop, destinations={"crm": crm})


def test_a_replay_after_the_keys_lifetime_does_not_charge_again(inbox: Inbox, crm: Fake) -> None:
    """The answer of the first call is lost; the repetition has another body."""
    crm.breaks()
    run = inbox.run("shop.charge", {"n": 1}, event_type="charge").settle()
    assert run.status == "dead_letter"
    assert "this key was used with another request" in run.error
    assert run.effects["charge"].in_doubt
    assert "this key was used with another request" in run.effects["charge"].error

    inbox.advance(hours=30)
    crm.forgets_keys()
    run.replay().settle()
    assert run.status == "held"
    assert len(crm.done) == 1


def test_a_read_that_finds_nothing_does_not_end_a_doubt(inbox: Inbox, crm: Fake) -> None:
    crm.answers(200).breaks().answers(404)
    run = inbox.run("shop.read_first", {"n": 1}, event_type="read-first").settle()
    assert run.status == "dead_letter"
    assert run.effects["charge"].in_doubt

    inbox.advance(hours=30)
    crm.forgets_keys()
    run.replay().settle()
    assert run.status == "held"
    assert len(crm.done) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_leaves_a_doubt(inbox: Inbox, crm: Fake, status: int) -> None:
    crm.answers(status, done=True)
    run = inbox.run("shop.charge", {"n": 1}, event_type="charge")
    assert run.status == "dead_letter"
    assert run.effects["charge"].in_doubt
    assert f"answered {status}" in run.effects["charge"].error


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_any_other_rejection_of_the_first_call_means_that_it_did_not_happen(
    inbox: Inbox, crm: Fake, status: int
) -> None:
    crm.answers(status)
    run = inbox.run("shop.charge", {"n": 1}, event_type="charge")
    assert run.status == "dead_letter"
    assert run.effects["charge"].status == "failed"


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (400, {"error": {"type": "idempotency_error", "message": "Keys for …"}}),
        (422, {"title": "Idempotency-Key is already used"}),
        (422, {"error": "this key was used with another request"}),
        (409, {"title": "A request is outstanding for this Idempotency-Key"}),
    ],
)
def test_an_answer_that_the_key_was_used_leaves_a_doubt_even_the_first_time(
    inbox: Inbox, crm: Fake, status: int, answer: Any
) -> None:
    """A request with this key exists, although the journal knows of none."""
    crm.answers(404).answers(status, answer, times=8)
    run = inbox.run("shop.charge", {"n": 1}, event_type="charge")
    assert run.effects["charge"].status == "failed"

    run.replay().settle()
    assert run.effects["charge"].in_doubt
    assert crm.done == []


def test_a_redirected_read_leaves_no_doubt(inbox: Inbox, crm: Fake) -> None:
    crm.answers(302)
    run = inbox.run("shop.read_first", {"n": 1}, event_type="read-first")
    assert run.effects["charge"].status == "failed"


def test_a_status_that_inbox_toml_calls_permanent_is_judged_as_any_other() -> None:
    """`responses` says what the status means for the run, not that nothing was done."""
    crm = Fake(responses={"5xx": "permanent", "404": "transient"}).answers(500).answers(404)
    inbox = Inbox(shop, destinations={"crm": crm})
    run = inbox.run("shop.charge", {"n": 1}, event_type="charge")
    assert run.status == "dead_letter"
    assert run.effects["charge"].in_doubt


def test_a_handler_that_renames_the_error_does_not_end_the_doubt(inbox: Inbox, crm: Fake) -> None:
    crm.answers(500, done=True)
    run = inbox.run("shop.gives_up", {"n": 1}, event_type="gives-up")
    assert run.status == "dead_letter"
    assert run.effects["charge"].in_doubt


def test_a_handler_that_renames_a_refusal_leaves_none(inbox: Inbox, crm: Fake) -> None:
    crm.answers(429)
    run = inbox.run("shop.gives_up", {"n": 1}, event_type="gives-up")
    assert run.effects["charge"].status == "failed"


def test_a_refusal_says_nothing_of_an_earlier_call_in_the_same_attempt(
    inbox: Inbox, crm: Fake
) -> None:
    crm.stalls().answers(429)
    run = inbox.run("shop.tries_twice", {"n": 1}, event_type="tries-twice")
    assert run.effects["charge"].in_doubt

    other = Fake().answers(201).answers(429)
    run = Inbox(shop, destinations={"crm": other}).run(
        "shop.tries_twice", {"n": 1}, event_type="tries-twice"
    )
    assert run.effects["charge"].in_doubt


@shop.on("looks-after")
def looks_after(event: Event, ctx: Context) -> None:
    """Reads, waits or gives up after the call that changes something."""

    def made(key: str) -> Any:
        ctx.http("crm").post("/charges", json={})
        if event.json()["then"] == "defers":
            raise Deferred(ctx.deadline, "not yet settled")
        if event.json()["then"] == "holds":
            ctx.hold("settled?")
        return ctx.http("crm").get("/charges/7").json()

    ctx.effect("charge", made)


@pytest.mark.parametrize("then", ["reads", "defers", "holds"])
def test_no_refusal_after_a_call_that_succeeded_means_that_nothing_was_done(
    inbox: Inbox, crm: Fake, then: str
) -> None:
    crm.answers(201).answers(429)
    run = inbox.run("shop.looks_after", {"n": 1, "then": then}, event_type="looks-after")
    assert run.status in {"failed", "deferred", "held"}
    assert run.effects["charge"].in_doubt


def test_a_person_decides_a_doubt_that_an_error_left(inbox: Inbox, crm: Fake) -> None:
    crm.breaks()
    run = inbox.run("shop.charge", {"n": 1}, event_type="charge").settle()
    inbox.advance(hours=30)
    run.replay().settle()
    run.happened({"id": "seen"}).settle()
    assert (run.status, run.effects["charge"].result) == ("done", {"id": "seen"})
    assert len(crm.done) == 1
