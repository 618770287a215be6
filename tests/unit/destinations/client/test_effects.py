"""What `ctx.http` records: a call that is not safe happens once, and is answered the same again."""

import gzip
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.unit.destinations.client.calling import CRM, Attempt, Effects, Sink, client
from webhook_inbox.domain.errors import Deferred, Permanent, Transient

PLAN = {"in_doubt": "retry", "key_lifetime": timedelta(hours=24)}


def begun(attempt: Attempt) -> list[str]:
    return [name for name, _ in attempt.effects.begun]


def arguments(*, spec: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
    """Returns the arguments of the effect that a POST of /notes is."""
    attempt = Attempt()
    client(Sink(), attempt, **(spec or {})).post(request.pop("url", "/notes"), **request)
    ((_, plan),) = attempt.effects.begun
    args: dict[str, Any] = plan["args"]
    return args


# -- which calls are effects, and of what name


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_is_not_safe_is_an_effect_by_method_and_path(method: str) -> None:
    attempt = Attempt()

    client(Sink(), attempt).request(method, "/notes/7?draft=1")

    assert begun(attempt) == [f"{method} /notes/7"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_what_is_safe_is_none_unless_it_is_named(method: str) -> None:
    attempt = Attempt()
    crm = client(Sink(), attempt)

    crm.request(method, "/notes")
    crm.request(method, "/notes", effect="look")

    assert begun(attempt) == ["look"]


def test_a_name_of_ones_own_replaces_it() -> None:
    attempt = Attempt()

    client(Sink(), attempt).post("/notes", effect="note")

    assert begun(attempt) == ["note"]


def test_a_call_may_go_past_the_journal() -> None:
    sink, attempt = Sink(), Attempt()
    crm = client(sink, attempt)

    crm.post("/notes", effect=None)
    crm.post("/notes", effect=None)

    assert begun(attempt) == []
    assert len(sink.requests) == 2


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (f"{CRM}/notes", "POST /notes"),
        ("https://crm.example/other", "POST /other"),
        ("", "POST /v1"),
        ("/caf\u00e9 #1", "POST /caf%C3%A9%20"),
    ],
)
def test_a_name_is_the_path_below_the_base_url(url: str, name: str) -> None:
    attempt = Attempt()

    client(Sink(), attempt).post(url)

    assert begun(attempt) == [name]


def test_a_name_that_is_too_long_is_hashed_and_tells_paths_apart() -> None:
    attempt = Attempt()
    crm = client(Sink(), attempt)

    crm.post("/" + "a" * 200)
    crm.post("/" + "a" * 201)

    first, second = begun(attempt)
    assert len(first) == len(second) == len("POST ") + 64
    assert first != second


def test_within_an_effect_no_second_one_is_made() -> None:
    attempt = Attempt(effects=Effects(key="order:h:s:e"))
    crm = client(Sink(), attempt)

    crm.post("/notes")
    crm.post("/notes", effect="named")
    crm.get("/notes", effect="look")

    assert begun(attempt) == []


def test_within_an_effect_a_call_may_do_without_its_key() -> None:
    sink = Sink()

    client(sink, Attempt(effects=Effects(key="k"))).post("/notes", effect=None)

    assert "idempotency-key" not in sink.last.headers


# -- what becomes of one in doubt


def test_what_is_in_doubt_is_repeated_while_the_destination_knows_the_key() -> None:
    attempt = Attempt()

    client(Sink(), attempt, key_lifetime=3600.0).post("/notes")

    ((_, plan),) = attempt.effects.begun
    assert (plan["in_doubt"], plan["key_lifetime"]) == ("retry", timedelta(hours=1))


def test_what_is_in_doubt_is_held_where_no_key_is_known() -> None:
    attempt = Attempt()

    client(Sink(), attempt, key_header="", key_lifetime=0.0).post("/notes")

    ((_, plan),) = attempt.effects.begun
    assert (plan["in_doubt"], plan["key_lifetime"]) == ("hold", timedelta(0))


def test_what_is_only_read_is_read_again() -> None:
    attempt = Attempt()

    client(Sink(), attempt, key_header="", key_lifetime=0.0).get("/notes", effect="look")

    ((_, plan),) = attempt.effects.begun
    assert (plan["in_doubt"], plan["key_lifetime"]) == ("retry", timedelta(days=365))


# -- the arguments


def test_method_path_parameters_and_body_are_the_arguments() -> None:
    assert arguments(json={"b": 1, "a": [2]}, params={"q": "x y"}) == {
        "method": "POST",
        "path": "/notes",
        "params": "q=x+y",
        "body": '{"a": [2], "b": 1}',
    }


def test_json_is_the_same_in_any_order_of_its_keys() -> None:
    assert arguments(json={"a": 1, "b": 2}) == arguments(json={"b": 2, "a": 1})
    assert arguments(json={"a": 1}) != arguments(json={"a": 2})


def test_files_are_the_same_whatever_separates_them() -> None:
    """httpx draws another boundary each time."""
    first, second = (arguments(files={"f": ("n", b"data")}) for _ in range(2))

    assert first == second != arguments(files={"f": ("n", b"other")})


@pytest.mark.parametrize(
    "body",
    [
        {"content": b"\xff\x00"},
        {"content": "text"},
        {"content": iter([b"a", b"b"])},
        {"data": {"a": "b"}},
        {"content": b"{", "headers": {"content-type": "application/json"}},
        {"content": b"[" * 100_000, "headers": {"content-type": "application/json"}},
    ],
)
def test_any_other_body_is_told_by_its_hash(body: dict[str, Any]) -> None:
    assert len(arguments(**body)["body"]) == 64


@pytest.mark.parametrize("body", [b'{"a": NaN}', b'"\\ud800"', b'{"a": 1e999}'])
def test_json_that_is_hardly_one_is_an_argument_all_the_same(body: bytes) -> None:
    told = arguments(content=body, headers={"content-type": "application/json"})["body"]

    assert told.isascii()


def test_credentials_key_and_trace_are_no_arguments() -> None:
    attempt = Attempt(values={"crm": "token-1"})

    client(Sink(), attempt, auth={"query": "k", "secret": "crm"}).post("/notes", json={})

    ((_, plan),) = attempt.effects.begun
    assert plan["args"] == {"method": "POST", "path": "/notes", "params": "", "body": "{}"}


# -- the recorded answer


def same_again(answer: httpx.Response) -> tuple[httpx.Response, httpx.Response]:
    """Returns what the first attempt and what a later one gets, for which nothing is sent."""
    sink, effects = Sink(answer), Effects()
    first = client(sink, Attempt(effects=effects)).post("/notes", json={})
    again = client(sink, Attempt(effects=effects)).post("/notes", json={})
    assert len(sink.requests) == 1
    return first, again


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(201, json={"id": "n-1", "name": "\u00fc\U0001f600"}),
        httpx.Response(200, text="plain", headers={"content-type": "text/plain"}),
        httpx.Response(204),
        httpx.Response(200, content=b"\xff\x00\x01"),
        httpx.Response(200, content=b"\xfc", headers={"content-type": "text/x; charset=latin1"}),
        httpx.Response(202, headers={"location": "/jobs/7", "etag": '"1"', "x-request-id": "r"}),
    ],
)  # fmt: skip
def test_a_repetition_is_answered_the_same(answer: httpx.Response) -> None:
    first, again = same_again(answer)

    for got in (first, again):
        assert (got.status_code, got.content, got.text) == (
            answer.status_code,
            answer.content,
            answer.text,
        )
        assert got.is_success
        assert got.url == f"{CRM}/notes"
        assert got.raise_for_status() is got
    assert first.headers == again.headers
    for name in ("location", "etag", "x-request-id", "content-type"):
        assert again.headers.get(name) == answer.headers.get(name)


def test_json_is_read_from_either() -> None:
    first, again = same_again(httpx.Response(201, json={"id": 7}))

    assert first.json() == again.json() == {"id": 7}


def test_cookies_and_other_secrets_are_not_recorded() -> None:
    answer = httpx.Response(200, headers={"set-cookie": "session=s3cr3t", "x-token": "s3cr3t"})
    effects = Effects()

    client(Sink(answer), Attempt(effects=effects)).post("/notes")

    assert "s3cr3t" not in effects.committed["POST /notes"]


def test_a_compressed_answer_is_recorded_as_it_reads() -> None:
    packed = gzip.compress(b'{"id": 7}')
    answer = httpx.Response(
        200, content=packed, headers={"content-encoding": "gzip", "content-type": "text/json"}
    )
    first, again = same_again(answer)

    assert first.json() == again.json() == {"id": 7}
    assert "content-encoding" not in again.headers


@pytest.mark.parametrize("body", [b"x" * 262_145, b"\x01" * 65_536, b"\xff" * 250_000])
def test_a_body_that_is_too_large_to_be_recorded_is_missed_only_where_it_is_read(
    body: bytes,
) -> None:
    first, again = same_again(httpx.Response(201, content=body))

    for got in (first, again):
        assert got.status_code == 201
        for read in (lambda g: g.content, lambda g: g.text, lambda g: g.json(), lambda g: g.read()):
            with pytest.raises(Permanent, match="recorded without its body, which exceeds 256 KB"):
                read(got)


def test_a_body_that_just_fits_is_recorded() -> None:
    _, again = same_again(httpx.Response(201, content=b"x" * 255 * 1024))

    assert len(again.content) == 255 * 1024


def test_what_inbox_toml_takes_for_success_is_recorded_too() -> None:
    sink, effects = Sink(httpx.Response(404, json={"gone": True})), Effects()
    spec = {"responses": {"404": "ok"}}

    client(sink, Attempt(effects=effects), **spec).delete("/notes/7")
    again = client(sink, Attempt(effects=effects), **spec).delete("/notes/7")

    assert (again.status_code, again.json()) == (404, {"gone": True})
    assert len(sink.requests) == 1


def test_the_destinations_own_word_of_a_repetition_is_kept() -> None:
    _, again = same_again(httpx.Response(200, headers={"Idempotent-Replayed": "true"}))

    assert again.headers["idempotent-replayed"] == "true"


def test_what_failed_is_not_recorded() -> None:
    sink, effects = Sink(httpx.Response(500), httpx.Response(201)), Effects()

    with pytest.raises(Transient):
        client(sink, Attempt(effects=effects)).post("/notes")

    assert effects.committed == {}
    assert client(sink, Attempt(effects=effects)).post("/notes").status_code == 201


# -- past the methods


def test_a_built_request_is_sent_where_it_is_safe() -> None:
    sink = Sink()
    crm = client(sink)

    assert crm.send(crm.build_request("GET", "/notes")).json() == {"id": "n-1"}
    assert "traceparent" in sink.last.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_built_request_that_is_not_safe_needs_an_effect(method: str) -> None:
    sink, attempt = Sink(), Attempt()
    crm = client(sink, attempt)
    request = crm.build_request(method, "/notes")

    with pytest.raises(Permanent, match=r"without the journal: call request\(…, effect=…\)"):
        crm.send(request)
    with (
        pytest.raises(Permanent, match="without the journal"),
        crm.stream(method, "/notes"),
    ):
        raise AssertionError

    assert sink.requests == []
    attempt.effects.key = "k"
    assert crm.send(request).status_code == 200
    assert sink.last.headers["idempotency-key"] == "k"


def test_one_request_sent_in_two_effects_has_the_key_of_each() -> None:
    sink, attempt = Sink(), Attempt()
    crm = client(sink, attempt)
    request = crm.build_request("POST", "/notes", content=iter([b"a", b"b"]))

    for key in ("first", "second"):
        attempt.effects.key = key
        crm.send(request)

    assert [r.headers["idempotency-key"] for r in sink.requests] == ["first", "second"]
    assert [r.content for r in sink.requests] == [b"ab", b"ab"]


def test_an_answer_is_streamed() -> None:
    sink = Sink(httpx.Response(200, content=b"x" * 5 * 1024 * 1024))

    with client(sink).stream("GET", "/export") as answer:
        assert sum(len(chunk) for chunk in answer.iter_bytes()) == 5 * 1024 * 1024


def test_a_streamed_answer_is_judged_before_it_is_read() -> None:
    sink = Sink(httpx.Response(404, text="no such export"))

    with (
        pytest.raises(Permanent, match="crm: GET /v1/export answered 404: no such export"),
        client(sink).stream("GET", "/export"),
    ):
        raise AssertionError


# -- what is too large without a journal


def test_an_answer_without_end_is_a_permanent_failure() -> None:
    sink = Sink(httpx.Response(200, content=b"x" * (4 * 1024 * 1024 + 1)))

    with pytest.raises(Permanent, match="GET /v1/x answered 200, but its body exceeds 4 MB"):
        client(sink).get("/x")


def test_what_was_done_within_an_effect_stays_in_doubt_where_its_answer_is_too_large() -> None:
    """A permanent failure would record that nothing was done."""
    sink = Sink(httpx.Response(200, content=b"x" * (4 * 1024 * 1024 + 1)))

    with pytest.raises(Transient, match="body exceeds 4 MB") as raised:
        client(sink, Attempt(effects=Effects(key="k"))).post("/x")

    assert not raised.value.refused


def test_a_refusal_of_the_gate_comes_before_anything_is_sent() -> None:
    sink, attempt = Sink(), Attempt()
    attempt.gate.refusal = Deferred(attempt.deadline, "destination crm is down")

    with pytest.raises(Deferred, match="is down"):
        client(sink, attempt).post("/notes")

    assert sink.requests == []
    assert attempt.gate.answers == []
