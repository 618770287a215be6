"""`ctx.http` in runs of the real processor: what is recorded, repeated, held and given up."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.unit.destinations.client.calling import Sink
from tests.unit.support.world import MANIFEST, World
from webhook_inbox.destinations.client.factory import HttpClients
from webhook_inbox.domain.manifest import DestinationSpec
from webhook_inbox.domain.model import Status
from webhook_inbox.handlers.context import Context
from webhook_inbox.handlers.effects.journal import decode
from webhook_inbox.handlers.event import Event

HANDLER = "acme.fulfil"
KEYED = DestinationSpec("crm", "https://crm.example", breaker=None)
KEYLESS = replace(KEYED, key_header="", key_lifetime=0.0)


def world(
    sink: Callable[[httpx.Request], httpx.Response],
    doing: Callable[[Any], Any],
    spec: DestinationSpec = KEYED,
) -> World:
    """Returns an inbox with one event, whose handler calls the sink."""
    made = World(replace(MANIFEST, destinations={"crm": spec}))
    clients = HttpClients(clock=made.clock, transport=httpx.MockTransport(sink))

    def act(_: Event, context: Context) -> None:
        doing(replace(context, clients=clients).http("crm"))

    made.behaviours[HANDLER] = act
    made.deliver()
    return made


def keys(sink: Sink) -> list[str | None]:
    return [request.headers.get("idempotency-key") for request in sink.requests]


def post(crm: Any) -> None:
    assert crm.post("/notes", json={"a": 1}).json() == {"id": "n-1"}


def forced(inbox: World) -> None:
    """Lets the run be attempted again although it is done."""
    inbox.replay(event_ids=["evt-1"], handler=HANDLER, force=True)
    inbox.run_until_quiet()


def test_a_call_in_doubt_is_repeated_under_its_key_and_then_never_again() -> None:
    sink = Sink(httpx.Response(500), httpx.ReadTimeout("slow"))
    inbox = world(sink, post)

    inbox.run_until_quiet()
    forced(inbox)

    assert inbox.run().status is Status.DONE
    assert keys(sink) == [f"POST /notes:{HANDLER}:acme:evt-1"] * 3


def test_a_worker_that_dies_after_sending_repeats_under_the_same_key() -> None:
    class Killed(BaseException):
        """The process ends."""

    sink = Sink()

    def die_once(request: httpx.Request) -> httpx.Response:
        answer = sink(request)
        if len(sink.requests) == 1:
            raise Killed
        return answer

    inbox = world(die_once, post)
    inbox.run_until_quiet()

    assert inbox.run().status is Status.DONE
    assert len(keys(sink)) == 2
    assert len(set(keys(sink))) == 1


@pytest.mark.parametrize(
    "answer", [httpx.Response(500), httpx.ReadTimeout("slow"), httpx.RemoteProtocolError("cut")]
)
def test_what_is_in_doubt_where_no_key_is_known_waits_for_a_person(answer: Any) -> None:
    sink = Sink(answer)
    inbox = world(sink, post, KEYLESS)

    inbox.run_until_quiet()

    assert inbox.run().status is Status.HELD
    assert "it is unknown whether it happened" in inbox.run().last_error
    assert keys(sink) == [None]


@pytest.mark.parametrize("answer", [httpx.Response(429), httpx.ConnectError("refused")])
def test_what_was_certainly_not_done_is_tried_again_without_a_key(answer: Any) -> None:
    sink = Sink(answer)
    inbox = world(sink, post, KEYLESS)

    inbox.run_until_quiet()

    assert inbox.run().status is Status.DONE
    assert keys(sink) == [None, None]


def test_the_same_effect_with_another_body_is_held() -> None:
    sink, bodies = Sink(httpx.Response(500)), iter([{"a": 1}, {"a": 2}])
    inbox = world(sink, lambda crm: crm.post("/notes", json=next(bodies)))

    inbox.run_until_quiet()

    assert inbox.run().status is Status.HELD
    assert "with other arguments" in inbox.run().last_error
    assert len(sink.requests) == 1


def test_one_path_twice_needs_two_names() -> None:
    def unnamed(crm: Any) -> None:
        crm.post("/notes", json={"a": 1})
        crm.post("/notes", json={"a": 2})

    def named(crm: Any) -> None:
        crm.post("/notes", json={"a": 1}, effect="first")
        crm.post("/notes", json={"a": 2}, effect="second")

    careless, careful = world(Sink(), unnamed), world(Sink(), named)
    careless.run_until_quiet()
    careful.run_until_quiet()

    assert careless.run().status is Status.DEAD_LETTER
    assert "'POST /notes' is named twice in one run; name each" in careless.run().last_error
    assert careful.run().status is Status.DONE


@pytest.mark.parametrize("status", [400, 404, 422, 301, 401])
def test_what_no_repetition_changes_is_a_dead_letter_at_once(status: int) -> None:
    sink = Sink(httpx.Response(status, text="no"))
    inbox = world(sink, post)

    inbox.run_until_quiet()

    assert inbox.run().status is Status.DEAD_LETTER
    assert f"crm: POST /notes answered {status}: no" in inbox.run().last_error
    assert len(sink.requests) == 1


def test_a_repetition_gives_the_handler_the_answer_of_the_first_time() -> None:
    seen: list[Any] = []

    def twice(crm: Any) -> None:
        answer = crm.post("/orders", json={"a": 1})
        seen.append((answer.status_code, answer.json(), dict(answer.headers)))
        crm.get("/fails-once")

    created = httpx.Response(201, json={"id": 7}, headers={"x-request-id": "r-1"})
    sink = Sink(created, httpx.Response(503))
    inbox = world(sink, twice)

    inbox.run_until_quiet()

    assert inbox.run().status is Status.DONE
    assert [r.url.path for r in sink.requests] == ["/orders", "/fails-once", "/fails-once"]
    assert seen[0] == seen[1]
    assert seen[0][:2] == (201, {"id": 7})


def test_a_destination_that_limits_is_left_alone_for_as_long_as_it_asks() -> None:
    times: list[float] = []
    sink = Sink(httpx.Response(429, headers={"Retry-After": "120"}))

    def note(request: httpx.Request) -> httpx.Response:
        times.append(inbox.now.timestamp())
        return sink(request)

    inbox = world(note, post)
    inbox.run_until_quiet()

    assert inbox.run().status is Status.DONE
    assert times[1] - times[0] >= 120


@pytest.mark.parametrize(
    ("auth", "value", "secret"),
    [
        ({"bearer": "crm"}, "token-12345678", "token-12345678"),
        ({"basic": "crm"}, "user:password-1", "dXNlcjpwYXNzd29yZC0x"),
    ],
)
def test_credentials_that_a_destination_tells_back_are_not_recorded(
    auth: dict[str, str], value: str, secret: str
) -> None:
    told: list[Any] = []

    def echo(request: httpx.Request) -> httpx.Response:
        sent = request.headers["authorization"]
        return httpx.Response(200, json={"sent": sent}, headers={"x-request-id": sent})

    inbox = world(
        echo, lambda crm: told.append(crm.post("/notes").json()), replace(KEYED, auth=auth)
    )
    inbox.vault.rotate("crm", value)
    inbox.run_until_quiet()

    (effect,) = inbox.overview().effects
    assert secret not in str(decode(effect["result"]))
    assert told == [{"sent": f"{next(iter(auth)).capitalize()} [secret]"}]


def test_a_secret_in_a_path_is_in_no_name_and_no_key() -> None:
    sink = Sink()
    inbox = world(sink, lambda crm: None)
    inbox.vault.rotate("bot", "12345:secret-of-the-bot")
    clients = HttpClients(clock=inbox.clock, transport=httpx.MockTransport(sink))

    def act(_: Event, context: Context) -> None:
        crm = replace(context, clients=clients).http("crm")
        crm.post(f"/bot{context.secret('bot')}/send")

    inbox.behaviours[HANDLER] = act
    inbox.run_until_quiet()

    (effect,) = inbox.overview().effects
    assert effect["name"] == "POST /bot[secret]/send"
    assert "secret-of-the-bot" not in str(effect)
    assert keys(sink) == [f"POST /bot[secret]/send:{HANDLER}:acme:evt-1"]
    assert sink.last.url.path == "/bot12345:secret-of-the-bot/send"


@pytest.mark.parametrize("status", [401, 403])
def test_a_call_in_doubt_stays_so_where_its_repetition_is_not_let_in(status: int) -> None:
    sink = Sink(httpx.ReadTimeout("slow"), httpx.Response(status))
    inbox = world(sink, post)
    inbox.run_until_quiet()
    assert inbox.run().status is Status.DEAD_LETTER

    inbox.clock.advance(days=2)
    inbox.replay(event_ids=["evt-1"], handler=HANDLER)
    inbox.run_until_quiet()

    assert inbox.run().status is Status.HELD
    assert len(sink.requests) == 2
