"""How `ctx.http` takes an answer: what it raises, what it tells the gate, what it hides."""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import quote, quote_plus

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.destinations.client.calling import CRM, NOW, Attempt, RecordingGate, Sink, client
from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.domain.errors import InboxError, Permanent, Transient, Unavailable
from webhook_inbox.domain.personal import PersonalTexts

SECRET = "s3cr3t/+token=="
AUTHS: list[dict[str, str]] = [
    {"bearer": "crm"},
    {"basic": "crm"},
    {"header": "X-Api-Key", "secret": "crm"},
    {"query": "api_key", "secret": "crm"},
]


def failure(answer: httpx.Response | Exception, **spec: Any) -> InboxError:
    """Returns what a GET raises that is answered so."""
    with pytest.raises(InboxError) as raised:
        client(Sink(answer), **spec).get("/notes")
    return raised.value


def reported(answer: httpx.Response | Exception, **spec: Any) -> list[CallOutcome]:
    attempt = Attempt()
    with suppress(InboxError):
        client(Sink(answer), attempt, **spec).get("/notes")
    return attempt.gate.answers


# -- what is raised


def test_an_error_names_destination_method_path_status_and_a_piece_of_the_body() -> None:
    error = failure(httpx.Response(422, text="name: must\n  not be empty"))

    assert isinstance(error, Permanent)
    assert str(error) == "crm: GET /v1/notes answered 422: name: must not be empty"


def test_an_error_without_a_body_is_short() -> None:
    assert str(failure(httpx.Response(500))) == "crm: GET /v1/notes answered 500"


def test_only_200_characters_of_a_body_are_told() -> None:
    text = str(failure(httpx.Response(400, text="x" * 100_000)))

    assert text == "crm: GET /v1/notes answered 400: " + "x" * 200 + "…"


@pytest.mark.parametrize("before", range(180, 201))
def test_a_personal_field_that_the_excerpt_cuts_is_removed(before: int) -> None:
    personal = PersonalTexts(["email"], b'{"email": "ada.lovelace@example.com"}')
    body = "-" * before + "ada.lovelace@example.com is unknown"

    text = personal.hide(str(failure(httpx.Response(422, text=body))))

    assert "ada.l" not in text
    assert ("[personal]" in text) is (before <= 196)


@pytest.mark.parametrize("body", [b"\xff\xfe", b"\x00\x01", "\u00fc".encode("latin-1")])
def test_a_body_that_is_no_text_is_told_as_well_as_it_can_be(body: bytes) -> None:
    assert str(failure(httpx.Response(400, content=body))).startswith(
        "crm: GET /v1/notes answered 400"
    )


def test_a_body_that_cannot_be_unpacked_hides_no_status() -> None:
    class Torn(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"not gzip"

    error = failure(httpx.Response(503, headers={"content-encoding": "gzip"}, stream=Torn()))

    assert str(error) == "crm: GET /v1/notes answered 503"


@pytest.mark.parametrize(("status", "page"), [(401, True), (403, True), (404, False), (422, False)])
def test_who_is_refused_for_good_is_paged_where_every_call_will_be(status: int, page: bool) -> None:
    error = failure(httpx.Response(status))

    assert isinstance(error, Permanent)
    assert error.page is page


@pytest.mark.parametrize(("status", "refused"), [(408, False), (429, True), (500, False)])
def test_what_may_pass_is_transient(status: int, refused: bool) -> None:
    error = failure(httpx.Response(status, headers={"Retry-After": "7"}))

    assert isinstance(error, Transient)
    assert (error.retry_after, error.refused) == (timedelta(seconds=7), refused)


def test_a_conflict_is_transient_under_a_key_alone() -> None:
    with pytest.raises(Transient):
        client(Sink(httpx.Response(409))).post("/notes")
    with pytest.raises(Permanent):
        client(Sink(httpx.Response(409))).post("/notes", effect=None)
    with pytest.raises(Permanent):
        client(Sink(httpx.Response(409)), key_header="").post("/notes")
    with pytest.raises(Permanent):
        client(Sink(httpx.Response(409))).get("/notes")
    with pytest.raises(Transient):
        client(Sink(httpx.Response(409)), key_header="", key_field="k").post("/notes", json={})
    own = {"Idempotency-Key": "payment-7"}
    with pytest.raises(Transient):
        client(Sink(httpx.Response(409))).post("/notes", effect=None, headers=own)


def test_inbox_toml_has_the_last_word() -> None:
    responses = {"404": "transient", "5xx": "permanent", "418": "ok"}

    assert isinstance(failure(httpx.Response(404), responses=responses), Transient)
    assert isinstance(failure(httpx.Response(502), responses=responses), Permanent)
    assert client(Sink(httpx.Response(418)), responses=responses).get("/x").status_code == 418


# -- silence, as httpx tells it


@pytest.mark.parametrize(
    ("error", "words", "refused"),
    [
        (httpx.ConnectError("[Errno 111] refused"), "no connection could be made (", True),
        (httpx.ConnectTimeout("timed out"), "no connection could be made (timed out)", True),
        (httpx.PoolTimeout("full"), "no connection could be made (full)", True),
        (httpx.ReadTimeout("slow"), "it did not answer in time", False),
        (httpx.WriteTimeout("slow"), "it did not answer in time", False),
        (httpx.ReadError("reset"), "the connection broke before", False),
        (httpx.WriteError("reset"), "the connection broke before", False),
        (httpx.CloseError("reset"), "the connection broke before", False),
        (httpx.RemoteProtocolError("no HTTP"), "the connection broke before", False),
        (httpx.DecodingError("no gzip"), "the connection broke before", False),
    ],
)
def test_silence_is_transient_and_in_doubt_where_something_was_sent(
    error: Exception, words: str, refused: bool
) -> None:
    raised = failure(error)

    assert isinstance(raised, Transient)
    assert str(raised).startswith("crm: GET /v1/notes: ")
    assert words in str(raised)
    assert raised.refused is refused


@pytest.mark.parametrize("error", [httpx.LocalProtocolError("bad"), httpx.UnsupportedProtocol("x")])
def test_a_request_that_cannot_be_sent_is_permanent_and_says_no_value(error: Exception) -> None:
    raised = failure(error)

    assert isinstance(raised, Permanent)
    assert str(raised) == f"crm: GET /v1/notes cannot be sent: {type(error).__name__}"


# -- what the gate is told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (httpx.Response(200), CallOutcome.ok()),
        (httpx.Response(302), CallOutcome.ok()),
        (httpx.Response(404), CallOutcome.ok()),
        (httpx.Response(401), CallOutcome.ok()),
        (httpx.Response(500), CallOutcome.failed()),
        (httpx.Response(503), CallOutcome.failed()),
        (
            httpx.Response(503, headers={"Retry-After": "5"}),
            CallOutcome.failed(timedelta(seconds=5)),
        ),
        (httpx.Response(429), CallOutcome.limited()),
        (
            httpx.Response(429, headers={"Retry-After": "5"}),
            CallOutcome.limited(timedelta(seconds=5)),
        ),
        (httpx.ConnectError("refused"), CallOutcome.failed()),
        (httpx.ReadTimeout("slow"), CallOutcome.failed()),
        (httpx.RemoteProtocolError("cut"), CallOutcome.failed()),
    ],
)
def test_the_gate_is_told_once_how_a_call_ended(answer: Any, told: CallOutcome) -> None:
    assert reported(answer) == [told]


def test_an_answer_that_breaks_off_is_a_failure() -> None:
    class Cut(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"half"
            raise httpx.ReadError("cut")

    assert reported(httpx.Response(200, stream=Cut())) == [CallOutcome.failed()]
    assert isinstance(failure(httpx.Response(200, stream=Cut())), Transient)


def test_what_was_never_sent_says_nothing_of_the_destination() -> None:
    assert reported(httpx.LocalProtocolError("bad")) == []


def test_the_gate_is_entered_before_every_call_and_leaves_it_time() -> None:
    attempt = Attempt()
    crm = client(Sink(), attempt)

    crm.get("/a")
    crm.post("/b")

    assert attempt.gate.entered == [("crm", attempt.deadline - timedelta(seconds=2))] * 2


def test_what_is_answered_from_the_journal_does_not_trouble_the_gate() -> None:
    attempt = Attempt()
    client(Sink(), attempt).post("/notes")
    attempt.gate = RecordingGate()

    client(Sink(), attempt).post("/notes")

    assert attempt.gate.entered == []


# -- its time


def timeouts(*, left: float = 50.0, **request: Any) -> dict[str, float]:
    """Returns the time-outs of a call when so many seconds of the attempt are left."""
    sink = Sink()
    attempt = Attempt(deadline=NOW + timedelta(seconds=left))
    client(sink, attempt, timeout=10.0).get("/x", **request)
    limits: dict[str, float] = sink.last.extensions["timeout"]
    return limits


def test_a_call_takes_as_long_as_its_destination_may() -> None:
    assert timeouts() == {"connect": 5.0, "read": 10.0, "write": 10.0, "pool": 10.0}


def test_a_call_ends_a_second_before_its_attempt() -> None:
    assert timeouts(left=4.0) == {"connect": 1.5, "read": 3.0, "write": 3.0, "pool": 3.0}


def test_a_handler_may_give_a_call_more_time_or_less() -> None:
    assert timeouts(timeout=30)["read"] == 30.0
    assert timeouts(timeout=2) == {"connect": 1.0, "read": 2.0, "write": 2.0, "pool": 2.0}
    assert timeouts(timeout=httpx.Timeout(20, read=3)) == {
        "connect": 10.0,
        "read": 3.0,
        "write": 20.0,
        "pool": 20.0,
    }
    assert timeouts(left=31.0, timeout=60)["read"] == 30.0
    assert timeouts(timeout=None)["read"] == 10.0


@pytest.mark.parametrize("left", [1.9, 1.0, 0.0, -5.0])
def test_a_call_is_not_begun_without_time_to_be_answered(left: float) -> None:
    sink, attempt = Sink(), Attempt(deadline=NOW + timedelta(seconds=left))

    with pytest.raises(Transient, match=rf"was not begun: {max(left, 0):.1f} s are left") as raised:
        client(sink, attempt).post("/notes")

    assert raised.value.refused
    assert sink.requests == []


def test_what_the_gate_took_of_the_time_is_gone() -> None:
    clock, sink, attempt = ManualClock(NOW), Sink(), Attempt(deadline=NOW + timedelta(seconds=11))

    class Waiting(RecordingGate):
        def enter(self, *_: Any, **__: Any) -> None:
            clock.sleep(6.0)

    attempt.gate = Waiting()
    client(sink, attempt, clock=clock).get("/x")

    assert sink.last.extensions["timeout"]["read"] == 4.0


def test_each_step_has_what_the_steps_before_it_left() -> None:
    clock, sink = ManualClock(NOW), Sink()
    client(sink, clock=clock, timeout=10.0).get("/x")
    extensions = sink.last.extensions

    clock.sleep(7.0)
    extensions["trace"]("http11.receive_response_headers.started", {})
    assert extensions["timeout"]["read"] == 3.0
    clock.sleep(9.0)
    extensions["trace"]("http11.receive_response_body.started", {})
    assert 0 < extensions["timeout"]["read"] < 0.01


def test_a_body_that_drips_is_left_in_time() -> None:
    clock = ManualClock(NOW)

    class Dripping(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                clock.sleep(1.0)
                yield b"."

    attempt = Attempt()
    with pytest.raises(Transient, match="it did not answer in time"):
        client(Sink(httpx.Response(200, stream=Dripping())), attempt, clock=clock).get("/x")
    with pytest.raises(Transient, match=r"answered 500: [.]+$"):
        client(Sink(httpx.Response(500, stream=Dripping())), attempt, clock=clock).get("/x")

    assert clock.now() <= NOW + timedelta(seconds=21)
    assert attempt.gate.answers == [CallOutcome.failed(), CallOutcome.failed()]


# -- secrets


@pytest.mark.parametrize("auth", AUTHS)
@pytest.mark.parametrize("value", [(), Unavailable("secretsmanager", "GetSecretValue", "down")])
def test_a_secret_that_is_missing_leaves_nothing_in_doubt(auth: dict[str, str], value: Any) -> None:
    sink, attempt = Sink(), Attempt(values={"crm": value})

    with pytest.raises(Transient, match="secret 'crm'") as raised:
        client(sink, attempt, auth=auth).post("/notes")

    assert raised.value.refused
    assert (sink.requests, attempt.gate.entered) == ([], [])
    if value == ():
        assert str(raised.value) == (
            "secret 'crm' of destination 'crm' is not set: webhookctl secrets set crm"
        )


@pytest.mark.parametrize(
    ("spec", "value", "why"),
    [
        ({"auth": {"bearer": "crm"}}, "tok\nen", "cannot be sent in a header"),
        ({"auth": {"bearer": "crm"}}, "tok\u00e4n-1", "cannot be sent in a header"),
        ({"auth": {"bearer": "crm"}}, "token-1 ", "cannot be sent in a header"),
        ({"auth": {"basic": "crm"}}, "token-1", 'is not of the form "user:password"'),
        ({"sign": "crm"}, "not base64!", "is not a Standard Webhooks key"),
        ({"sign": "crm"}, "whsec_==", "is not a Standard Webhooks key"),
    ],
)
def test_a_secret_of_another_form_is_refused_without_being_shown(
    spec: dict[str, Any], value: str, why: str
) -> None:
    sink = Sink()

    with pytest.raises(Transient) as raised:
        client(sink, Attempt(values={"crm": value}), **spec).post("/notes")

    assert why in str(raised.value)
    assert value not in str(raised.value)
    assert "webhookctl secrets set crm" in str(raised.value)
    assert raised.value.refused
    assert sink.requests == []


def echoing(request: httpx.Request) -> httpx.Response:
    """Answers with all that it was sent, as some do."""
    request.read()
    told = "\n".join(f"{k}: {v}" for k, v in request.headers.multi_items())
    return httpx.Response(400, text=f"{request.url}\n{told}")


def forms(secret: str) -> set[str]:
    return {
        secret,
        quote(secret),
        quote_plus(secret),
        quote(secret, safe=""),
        b64encode(secret.encode()).decode(),
        json.dumps(secret)[1:-1],
    }


@pytest.mark.parametrize("auth", AUTHS)
def test_no_secret_is_in_an_error_even_where_the_destination_tells_it(auth: dict[str, str]) -> None:
    secret = f"user:{SECRET}" if "basic" in auth else SECRET

    def telling(request: httpx.Request) -> httpx.Response:
        return httpx.Response(400, text=" ".join(sorted(forms(secret) | forms(SECRET))))

    for sink in (echoing, telling):
        with pytest.raises(Permanent) as raised:
            client(sink, Attempt(values={"crm": secret}), auth=auth).post("/notes", json={})

        shown = repr(raised.value) + repr(raised.value.__cause__)
        assert not [form for form in forms(secret) | forms(SECRET) if form in shown]


def test_no_signature_is_in_an_error() -> None:
    signing = "whsec_" + b64encode(b"k" * 24).decode()
    attempt = Attempt(values={"out": signing})
    made: list[str] = []

    def telling(request: httpx.Request) -> httpx.Response:
        made.append(request.headers["webhook-signature"])
        return httpx.Response(400, text=f"bad signature {made[0]}")

    with pytest.raises(Permanent, match=r"bad signature \[secret\]$"):
        client(telling, attempt, sign="out").post("/notes")


@settings(max_examples=100)
@given(st.integers(min_value=0, max_value=6000), st.integers(min_value=4, max_value=5000))
def test_no_beginning_of_a_secret_is_left_where_a_body_is_cut(before: int, length: int) -> None:
    secret = "sk_" + "a1" * (length // 2)
    text = "." * before + secret * 3

    attempt = Attempt(values={"crm": secret})

    with pytest.raises(Permanent) as raised:
        client(Sink(httpx.Response(400, text=text)), attempt, auth={"bearer": "crm"}).get("/x")

    assert "sk_" not in str(raised.value)


def test_no_beginning_of_a_secret_is_left_where_an_answer_breaks_off() -> None:
    class Cut(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"no: sk_live_1234"
            raise httpx.ReadError("cut")

    attempt = Attempt(values={"crm": "sk_live_12345678"})
    with pytest.raises(Permanent) as raised:
        client(Sink(httpx.Response(400, stream=Cut())), attempt, auth={"bearer": "crm"}).get("/x")

    assert str(raised.value) == "crm: GET /v1/x answered 400: no:"


def test_nothing_that_a_destination_says_passes_for_a_line_of_ours() -> None:
    text = "no\x1b[2J\r\nERROR\u2028all is lost\x00"

    with pytest.raises(Permanent) as raised:
        client(Sink(httpx.Response(400, text=text))).get("/a%0Ab")

    assert str(raised.value) == "crm: GET /v1/a%0Ab answered 400: no [2J ERROR all is lost"


@pytest.mark.parametrize("auth", AUTHS)
def test_no_secret_is_logged(auth: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    secret = f"user:{SECRET}" if "basic" in auth else SECRET
    caplog.set_level("DEBUG")

    client(Sink(), Attempt(values={"crm": secret}), auth=auth).get("/notes")

    assert "HTTP Request: GET" in caplog.text
    assert not [form for form in forms(secret) | forms(SECRET) if form in caplog.text]


def test_a_path_is_told_without_what_authenticates() -> None:
    attempt = Attempt(values={"crm": "token-123"})

    with pytest.raises(Permanent) as raised:
        client(Sink(httpx.Response(404)), attempt, auth={"bearer": "crm"}).get("/hook/token-123")

    assert str(raised.value) == "crm: GET /v1/hook/[secret] answered 404"


def test_a_request_is_the_handlers_again_once_it_is_answered() -> None:
    attempt = Attempt(values={"crm": SECRET})
    crm = client(Sink(), attempt, auth={"bearer": "crm"})
    request = crm.build_request("GET", "/x", extensions={"own": 1})

    answer = crm.send(request)

    for seen in (request, answer.request):
        assert set(seen.extensions) == {"own", "timeout"}
        assert str(seen.url) == f"{CRM}/x"
    assert "traceparent" not in request.headers
