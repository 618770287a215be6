"""The configured behaviour of a fake destination."""

import httpx
import pytest

from tests.unit.testing.shop import QUICK
from webhook_inbox import Context, Event, Router
from webhook_inbox.testing import Fake, HandlerRun, Inbox, KitError, Request

SECONDS = 10  # that a call may take, unless its destination says otherwise


class Bench:
    """One handler that makes one call, and its destination."""

    def __init__(self, fake: Fake, *, effect: str | None = "note") -> None:
        router = Router("bench")

        @router.on("go", backoff=QUICK)
        def call(event: Event, ctx: Context) -> None:
            answer = ctx.http("crm").post("/notes", json={"a": 1}, effect=effect)
            ctx.effect("seen", lambda: [answer.status_code, answer.json()])

        self.crm = fake
        self.inbox = Inbox(router, destinations={"crm": fake})

    def run(self) -> HandlerRun:
        return self.inbox.run("bench.call", {})


def test_it_carries_out_what_it_is_sent() -> None:
    bench = Bench(Fake())
    assert bench.run().effects["seen"].result == [201, {"id": "crm-1"}]


@pytest.mark.parametrize(
    ("status", "run_status"),
    [(422, "dead_letter"), (404, "dead_letter"), (429, "failed"), (500, "failed"), (409, "failed")],
)
def test_it_answers_what_it_is_told_and_then_as_it_should(status: int, run_status: str) -> None:
    bench = Bench(Fake().answers(status, {"error": "no"}))

    run = bench.run()

    assert run.status == run_status
    assert run.error.endswith(f'crm: POST /notes answered {status}: {{"error":"no"}}')
    assert bench.crm.done == []
    assert bench.run().settle().status == "done"


def test_it_answers_so_several_times_or_until_it_recovers() -> None:
    bench = Bench(Fake(breaker=False).answers(503, times=2))
    assert bench.run().settle().attempts == 3

    bench.crm.answers(500, times=None)
    run = bench.run()
    bench.inbox.advance(minutes=2)
    assert (run.status, run.attempts > 3) == ("failed", True)
    bench.crm.recovers()
    assert run.settle().status == "done"


def test_what_it_is_told_first_it_does_first() -> None:
    bench = Bench(Fake(breaker=False).answers(500).refuses().answers(429))
    run = bench.run().settle()
    errors = [attempt.error for attempt in run.row.attempts]
    assert ["500" in errors[0], "no connection" in errors[1], "429" in errors[2]] == [True] * 3


def test_an_answer_may_hide_that_it_was_carried_out() -> None:
    bench = Bench(Fake().answers(500, done=True))
    run = bench.run().settle()
    assert (run.status, len(bench.crm.requests), len(bench.crm.done)) == ("done", 2, 1)


def test_a_stall_takes_the_time_that_a_call_may_take() -> None:
    bench = Bench(Fake().stalls())
    began = bench.inbox.now

    run = bench.run()

    assert run.error == "crm: POST /notes: it did not answer in time"
    assert (bench.inbox.now - began).total_seconds() == pytest.approx(SECONDS, abs=0.1)
    assert len(bench.crm.done) == 1
    run.settle()
    assert (run.effects["note"].starts, len(bench.crm.done)) == (2, 1)


def test_a_connection_breaks_before_the_answer() -> None:
    bench = Bench(Fake().breaks())
    assert bench.run().error == (
        "crm: POST /notes: the connection broke before the answer was complete"
    )
    assert len(bench.crm.done) == 1


def test_nothing_arrives_where_no_connection_is_taken() -> None:
    bench = Bench(Fake().refuses())
    run = bench.run()
    assert (run.effects["note"].status, bench.crm.requests) == ("failed", [])


def test_a_pause_that_it_asks_for_is_kept() -> None:
    bench = Bench(Fake().answers(429, headers={"Retry-After": "1200"}))
    run = bench.run()
    bench.inbox.advance(minutes=19)
    assert len(bench.crm.requests) == 1
    bench.inbox.advance(minutes=10)
    assert run.status == "done"


def test_its_circuit_opens_as_in_production() -> None:
    bench = Bench(Fake(breaker={"failures": 2, "recovery": "300s"}).answers(500, times=None))
    for _ in range(2):
        bench.run()

    third = bench.run()

    assert (third.status, third.attempts, len(bench.crm.requests)) == ("deferred", 0, 2)


def test_answers_are_made_by_a_function() -> None:
    def answer(request: Request) -> object:
        return 200, {"twice": request.json["a"] * 2}

    assert Bench(Fake().handles(answer)).run().effects["seen"].result == [200, {"twice": 2}]
    assert Bench(Fake().handles(lambda _: {"b": 1})).run().effects["seen"].result == [
        200,
        {"b": 1},
    ]
    moved = Bench(Fake().handles(lambda _: httpx.Response(301)))
    assert moved.run().error == "permanent: crm: POST /notes answered 301"


def test_another_request_under_a_known_key_is_refused_as_stripe_does() -> None:
    router, crm = Router("bench"), Fake()

    @router.on("go")
    def call(event: Event, ctx: Context) -> None:
        for number in range(2):
            ctx.http("crm").post(
                "/n", json=number, effect=f"n{number}", headers={"Idempotency-Key": "same"}
            )

    run = Inbox(router, destinations={"crm": crm}).run("bench.call", {})

    assert "answered 422" in run.error
    assert len(crm.done) == 1


def test_a_key_may_stand_in_the_body() -> None:
    bench = Bench(Fake(idempotency={"field": "dedup_key"}))
    run = bench.run()
    assert bench.crm.requests[0].key == run.effects["note"].key
    assert bench.crm.requests[0].json["dedup_key"] == run.effects["note"].key


def test_it_forgets_keys_when_told() -> None:
    bench = Bench(Fake().stalls())
    run = bench.run()
    bench.crm.forgets_keys()
    run.settle()
    assert len(bench.crm.done) == 2


def test_what_is_sent_without_a_key_is_carried_out_each_time() -> None:
    bench = Bench(Fake().answers(500, done=True), effect=None)
    bench.run().settle()
    assert [request.key for request in bench.crm.done] == ["", ""]


def test_reading_is_no_effect() -> None:
    router, crm = Router("bench"), Fake()

    @router.on("go")
    def read(event: Event, ctx: Context) -> None:
        ctx.http("crm").get("/notes", params={"page": 2})

    Inbox(router, destinations={"crm": crm}).run("bench.read", {})

    assert ([request.path for request in crm.requests], crm.done) == (["/notes?page=2"], [])


def test_credentials_are_sent_and_signed_as_its_table_says() -> None:
    bench = Bench(Fake(auth={"bearer": "crm-api"}, sign="crm-signing"))
    assert bench.run().status == "done"
    [request] = bench.crm.requests
    assert request.headers["authorization"] == "Bearer testing-crm-api"
    assert request.headers["webhook-signature"].startswith("v1,")


@pytest.mark.parametrize(
    ("auth", "sent"),
    [
        ({"basic": "login"}, "Basic dGVzdGVyOnRlc3RpbmctbG9naW4="),
        ({"header": "Authorization", "secret": "api", "prefix": "Token "}, "Token testing-api"),
    ],
)
def test_every_kind_of_credential_has_a_value(auth: dict[str, str], sent: str) -> None:
    bench = Bench(Fake(auth=auth))
    assert bench.run().status == "done"
    assert bench.crm.requests[0].headers["authorization"] == sent


def test_a_setting_that_no_table_has_is_refused() -> None:
    with pytest.raises(KitError, match="the settings of the Fake 'crm' are invalid"):
        Bench(Fake(rate="fast"))


def test_nothing_is_done_zero_times() -> None:
    with pytest.raises(KitError, match="times=0: give 1 or more"):
        Fake().answers(500, times=0)
