"""What counts as an attempt when a call fails at a destination whose circuit is open."""

import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import httpx
import pytest

from webhook_inbox import Context, Deferred, Event, Held, Permanent, Router, Skipped, Transient
from webhook_inbox.testing import Fake, Inbox
from webhook_inbox.testing.runs import HandlerRun

Handle = Callable[[Event, Context], None]


def mailer(**breaker: Any) -> Fake:
    """Returns a destination that is down, whose second failed call opens the circuit."""
    return Fake(breaker={"failures": 2, "recovery": "60s", **breaker}).answers(503, times=None)


def post(event: Event, ctx: Context) -> None:
    ctx.http("mailer").post("/thanks", json={"id": event.id}, effect="thank")


def inbox_of(handle: Handle = post, *, fake: Fake | None = None, **options: Any) -> Inbox:
    router, fakes = Router("orders"), {"mailer": fake or mailer()}
    fakes |= options.pop("others", {})
    router.on("paid", name="orders.thank", destinations=list(fakes), **options)(handle)
    return Inbox(router, destinations=fakes)


def run_in_outage(inbox: Inbox, *, hours: float = 0.25) -> HandlerRun:
    """Returns a run of which several probes have failed."""
    run = inbox.run("orders.thank", {})
    inbox.advance(hours=hours)
    return run


def outcomes(run: HandlerRun) -> list[tuple[int, str]]:
    return [(attempt.number, attempt.outcome) for attempt in run.row.attempts]


def recover(inbox: Inbox) -> None:
    inbox.destinations["mailer"].recovers()
    inbox.settle()


def test_only_failures_of_a_closed_circuit_count() -> None:
    inbox = inbox_of(max_attempts=2)
    run = run_in_outage(inbox)
    assert (run.status, run.attempts) == ("deferred", 1)
    assert len(inbox.destinations["mailer"].requests) > 10
    recover(inbox)
    assert (run.status, run.attempts) == ("done", 2)


def test_its_history_has_each_failed_probe() -> None:
    inbox = inbox_of()
    run = run_in_outage(inbox, hours=0.1)
    recover(inbox)
    calls = len(inbox.destinations["mailer"].requests)
    assert outcomes(run) == [(1, "failed"), *[(2, "not counted")] * (calls - 2), (2, "done")]
    assert {each.error for each in run.row.attempts[:-1]} == {"mailer: POST /thanks answered 503"}


def test_its_row_says_what_it_waits_for() -> None:
    run = run_in_outage(inbox_of())
    assert run.row.waits_for == "destination mailer"
    assert run.error == "mailer: POST /thanks answered 503"


def test_the_effect_of_a_failed_probe_is_in_doubt_and_repeated_under_its_key() -> None:
    inbox = inbox_of()
    run = run_in_outage(inbox)
    assert run.effects["thank"].in_doubt
    assert run.effects["thank"].starts > 10
    recover(inbox)
    requests = inbox.destinations["mailer"].requests
    assert len({request.key for request in requests}) == 1
    assert run.effects["thank"].committed


def test_a_probe_that_was_carried_out_is_not_repeated() -> None:
    fake = Fake(breaker={"failures": 1}).answers(503, times=3, done=True)
    inbox = inbox_of(fake=fake)
    inbox.run("orders.thank", {})
    inbox.settle()
    assert len(fake.done) == 1


def test_the_effect_of_a_probe_that_was_not_sent_has_failed() -> None:
    inbox = inbox_of(fake=Fake(breaker={"failures": 1}).refuses(times=None))
    run = run_in_outage(inbox)
    assert (run.effects["thank"].status, run.attempts) == ("failed", 0)


def test_an_effect_in_doubt_that_may_not_be_repeated_is_held() -> None:
    fake = Fake(breaker={"failures": 1}, idempotency=False).answers(503, times=None)
    run = run_in_outage(inbox_of(fake=fake))
    assert (run.status, run.effects["thank"].in_doubt) == ("held", True)


def test_an_approval_is_not_asked_for_again_after_a_failed_probe() -> None:
    def refund(event: Event, ctx: Context) -> None:
        def send(key: str) -> int:
            return ctx.http("mailer").post("/refunds", json={}).status_code

        ctx.effect("refund", send, approve=True)

    inbox = inbox_of(refund)
    run = inbox.run("orders.thank", {})
    run.approve("checked", by="ann")
    inbox.advance(hours=1)
    assert (run.status, run.effects["refund"].in_doubt) == ("deferred", True)
    recover(inbox)
    assert (run.status, len(inbox.destinations["mailer"].done)) == ("done", 1)


# -- handlers that catch the error


def replaced(event: Event, ctx: Context) -> None:
    try:
        post(event, ctx)
    except Transient as error:
        raise RuntimeError("no mail") from error


def hidden(event: Event, ctx: Context) -> None:
    try:
        post(event, ctx)
    except Transient:
        raise RuntimeError("no mail") from None


def grouped(event: Event, ctx: Context) -> None:
    errors: list[Exception] = []
    try:
        post(event, ctx)
    except Transient as error:
        errors.append(error)
    raise ExceptionGroup("several", [KeyError("id"), *errors])


def broken_while_handling(event: Event, ctx: Context) -> None:
    try:
        post(event, ctx)
    finally:
        event.json()["missing"]


@pytest.mark.parametrize("handle", [replaced, hidden, grouped, broken_while_handling])
def test_an_error_that_replaces_the_calls_counts_as_the_calls(handle: Handle) -> None:
    run = run_in_outage(inbox_of(handle, max_attempts=3))
    assert (run.status, run.attempts) == ("deferred", 1)


def call_again(event: Event, ctx: Context) -> None:
    """Makes a second call, which finds the circuit open, and replaces its error."""
    with suppress(Transient):
        post(event, ctx)
    try:
        ctx.http("mailer").get("/state")
    except Exception as error:
        raise RuntimeError("no mail") from error


def test_the_error_that_replaces_that_of_a_refused_call_counts_no_attempt() -> None:
    fake = Fake(breaker={"failures": 1}).answers(503, times=None)
    run = run_in_outage(inbox_of(call_again, fake=fake, max_attempts=3))
    assert (run.status, run.attempts) == ("deferred", 0)
    assert run.error == "RuntimeError: no mail"


def summed_up(event: Event, ctx: Context) -> None:
    """Builds its error from the texts of the errors of its calls."""
    errors = []
    try:
        post(event, ctx)
    except Transient as error:
        errors.append(str(error))
    if errors:
        raise ValueError("; ".join(errors))


@pytest.mark.parametrize("runs", [1, 20])
def test_no_run_dies_in_a_night_though_its_handler_discards_the_error(runs: int) -> None:
    fake = Fake().answers(503, times=None)
    inbox = inbox_of(summed_up, fake=fake)
    waiting = [inbox.run("orders.thank", {}, event_id=f"evt-{number}") for number in range(runs)]
    inbox.advance(hours=12)
    assert {run.status for run in waiting} == {"deferred"}
    recover(inbox)
    assert {run.status for run in waiting} == {"done"}


def test_a_discarded_error_counts_if_its_destination_is_not_declared() -> None:
    router, fake = Router("orders"), mailer()
    router.on("paid", name="orders.thank", max_attempts=3)(summed_up)
    run = run_in_outage(Inbox(router, destinations={"mailer": fake}), hours=3)
    assert (run.status, run.attempts) == ("dead_letter", 3)


def test_an_error_after_a_discarded_one_counts_as_soon_as_the_destination_is_back() -> None:
    def handle(event: Event, ctx: Context) -> None:
        with suppress(Transient):
            post(event, ctx)
        event.json()["missing"]

    inbox = inbox_of(handle, max_attempts=3)
    run = run_in_outage(inbox, hours=3)
    assert (run.status, run.attempts) == ("deferred", 1)
    recover(inbox)
    assert (run.status, run.attempts) == ("dead_letter", 3)


def test_a_broken_handler_dies_though_its_probe_succeeds() -> None:
    def handle(event: Event, ctx: Context) -> None:
        post(event, ctx)
        event.json()["missing"]

    fake = Fake(breaker={"failures": 1}).answers(503, times=3)
    inbox = inbox_of(handle, fake=fake, max_attempts=3)
    run = inbox.run("orders.thank", {})
    inbox.settle()
    assert (run.status, run.attempts, len(fake.done)) == ("dead_letter", 3, 1)


@pytest.mark.parametrize(
    ("error", "status", "attempts"),
    [
        (Permanent("no"), "dead_letter", 1),
        (Skipped("no"), "skipped", 1),
        (Held("who decides?"), "held", 0),
    ],
)
def test_an_error_that_ends_the_run_ends_it(error: Exception, status: str, attempts: int) -> None:
    def handle(event: Event, ctx: Context) -> None:
        try:
            post(event, ctx)
        except Transient as failure:
            raise error from failure

    fake = Fake(breaker={"failures": 1}).answers(503, times=None)
    run = run_in_outage(inbox_of(handle, fake=fake))
    assert (run.status, run.attempts) == (status, attempts)


def test_the_handlers_own_deferral_is_kept() -> None:
    def handle(event: Event, ctx: Context) -> None:
        try:
            post(event, ctx)
        except Transient as failure:
            raise Deferred(inbox.now + timedelta(hours=5), "tonight") from failure

    fake = Fake(breaker={"failures": 1}).answers(503, times=None)
    inbox = inbox_of(handle, fake=fake)
    run = run_in_outage(inbox, hours=4)
    assert (run.error, run.attempts, len(fake.requests)) == ("tonight", 0, 1)


def test_a_delay_that_the_handler_asks_for_is_kept() -> None:
    def handle(event: Event, ctx: Context) -> None:
        try:
            post(event, ctx)
        except Transient as failure:
            raise Transient("later", retry_after=7200) from failure

    fake = Fake(breaker={"failures": 1}).answers(503, times=None)
    run = run_in_outage(inbox_of(handle, fake=fake), hours=1.9)
    assert (run.status, len(fake.requests)) == ("deferred", 1)


# -- bounds


def test_max_age_bounds_the_wait() -> None:
    run = run_in_outage(inbox_of(max_age=7200), hours=3)
    assert run.status == "dead_letter"
    assert run.error.startswith("expired: mailer: ")


def test_a_run_with_one_attempt_waits_if_its_failure_opens_the_circuit() -> None:
    fake = Fake(breaker={"failures": 1}).answers(503, times=None)
    inbox = inbox_of(fake=fake, max_attempts=1)
    run = run_in_outage(inbox)
    assert (run.status, run.attempts) == ("deferred", 0)
    recover(inbox)
    assert (run.status, run.attempts) == ("done", 1)


def test_a_run_with_one_attempt_dies_before_the_circuit_opens() -> None:
    run = run_in_outage(inbox_of(max_attempts=1))
    assert (run.status, run.attempts) == ("dead_letter", 1)


def test_a_run_with_as_many_attempts_as_failures_open_the_circuit_lives() -> None:
    fake = Fake().answers(503, times=None)
    run = run_in_outage(inbox_of(fake=fake, max_attempts=5), hours=2)
    assert (run.status, run.attempts) == ("deferred", 4)


def test_without_a_breaker_every_failure_counts() -> None:
    fake = Fake(breaker=False).answers(503, times=None)
    run = run_in_outage(inbox_of(fake=fake, max_attempts=3), hours=5)
    assert (run.status, run.attempts) == ("dead_letter", 3)


def test_a_probe_that_stalls_until_the_end_of_its_attempt_counts_no_attempt() -> None:
    fake = Fake(timeout="30s", breaker={"failures": 1}).stalls(times=None, done=False)
    inbox = inbox_of(fake=fake, timeout=5, max_attempts=2)
    run = run_in_outage(inbox)
    assert (run.status, run.attempts, run.effects["thank"].in_doubt) == ("deferred", 0, True)
    assert len(fake.requests) > 10


def test_a_worker_that_dies_in_a_probe_counts_and_is_in_the_history() -> None:
    inbox = inbox_of()
    run = run_in_outage(inbox, hours=0.1)
    with inbox.crash(before="thank"):
        inbox.advance(minutes=5)
    recover(inbox)
    assert [each for each in outcomes(run) if each[1] != "not counted"] == [
        (1, "failed"),
        (2, "lost"),
        (3, "done"),
    ]


def test_attempts_that_were_dropped_from_the_history_are_not_lost() -> None:
    fake = Fake(breaker={"failures": 13}).answers(503, times=None)
    inbox = inbox_of(fake=fake, max_attempts=20, backoff="fast")
    run = run_in_outage(inbox, hours=0.4)
    recover(inbox)
    assert (run.status, run.attempts) == ("done", 13)
    assert {outcome for _, outcome in outcomes(run)} == {"failed", "not counted", "done"}


# -- several destinations


def test_a_run_waits_for_the_destination_that_is_down_and_repeats_no_other_call() -> None:
    def handle(event: Event, ctx: Context) -> None:
        ctx.http("crm").post("/notes", json={}, effect="note")
        post(event, ctx)

    crm = Fake()
    inbox = inbox_of(handle, others={"crm": crm})
    run = run_in_outage(inbox)
    assert (run.row.waits_for, run.attempts) == ("destination mailer", 1)
    recover(inbox)
    assert (run.status, len(crm.requests)) == ("done", 1)


def test_a_failure_at_another_destination_counts_when_the_one_that_was_down_is_back() -> None:
    def handle(event: Event, ctx: Context) -> None:
        with suppress(Transient):
            post(event, ctx)
        ctx.http("crm").post("/notes", json={}, effect="note")

    crm = Fake(breaker=False).answers(500, times=None)
    inbox = inbox_of(handle, others={"crm": crm}, max_attempts=3)
    run = run_in_outage(inbox, hours=3)
    assert (run.status, run.attempts) == ("deferred", 1)
    inbox.destinations["mailer"].recovers()
    inbox.advance(hours=3)
    assert (run.status, run.attempts) == ("dead_letter", 3)


@pytest.mark.parametrize("failing", [1, 2, 3, 20])
@pytest.mark.parametrize("runs", [1, 10])
def test_requests_that_always_fail_keep_no_other_run_from_the_destination(
    failing: int, runs: int
) -> None:
    """Each failed probe returns behind the runs that wait."""
    fake = Fake(breaker={"failures": 1})
    fake.handles(lambda request: (500 if request.json["id"].startswith("bad") else 200, {}))
    inbox = inbox_of(fake=fake)
    bad = [inbox.run("orders.thank", {}, event_id=f"bad-{number}") for number in range(failing)]
    inbox.advance(minutes=10)
    others = [inbox.run("orders.thank", {}) for _ in range(runs)]
    inbox.advance(hours=1)
    assert {run.status for run in others} == {"done"}
    assert {run.status for run in bad} == {"deferred"}


def test_a_503_with_retry_after_opens_the_circuit_and_is_kept() -> None:
    """Otherwise a maintenance that announces its end would use up the attempts."""
    fake = Fake(breaker={"failures": 2}).answers(503, headers={"Retry-After": "600"}, times=None)
    inbox = inbox_of(fake=fake, max_attempts=3)
    run = run_in_outage(inbox, hours=5)
    assert (run.status, run.attempts) == ("deferred", 1)
    assert 5 <= len(fake.requests) <= 30
    recover(inbox)
    assert (run.status, run.attempts) == ("done", 2)


@pytest.mark.parametrize(
    ("code", "status"), [(socket.EAI_NONAME, "dead_letter"), (socket.EAI_AGAIN, "deferred")]
)
def test_a_name_that_does_not_exist_ends_runs_and_an_outage_of_its_servers_does_not(
    code: int, status: str
) -> None:
    class Unresolved(Fake):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            cause = socket.gaierror(code, "not resolved")
            raise httpx.ConnectError("not resolved", request=request) from cause

    inbox = inbox_of(fake=Unresolved(breaker={"failures": 2}))
    runs = [inbox.run("orders.thank", {}, event_id=f"evt-{number}") for number in range(3)]
    inbox.advance(hours=12)
    assert {run.status for run in runs} == {status}
