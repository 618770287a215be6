"""What `ctx.http` sends: where to, with which credentials, key, trace and signature."""

import gzip
import json
from base64 import b64decode, b64encode
from traceback import format_exception
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from tests.unit.destinations.client.calling import (
    CRM,
    NOW,
    TRACE,
    Attempt,
    Effects,
    Sink,
    client,
    shown,
)
from webhook_inbox.destinations.propagation import CallChain
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.idempotency import IdempotencyKey

KEY = "POST /notes:stripe.fulfil:stripe:evt_1"
SIGNING = "whsec_" + b64encode(b"k" * 24).decode()


def sent(method: str = "POST", path: str = "/notes", /, **more: Any) -> httpx.Request:
    """Sends one request and returns it as it arrived; `more` is for httpx."""
    sink = Sink()
    client(sink).request(method, path, **more)
    return sink.last


# -- where to


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/notes", f"{CRM}/notes"),
        ("notes", f"{CRM}/notes"),
        ("/notes?a=1", f"{CRM}/notes?a=1"),
        ("/a%2Fb", f"{CRM}/a%2Fb"),
        ("", CRM),
        (f"{CRM}/next?page=2", f"{CRM}/next?page=2"),
        ("https://crm.example:443/v2/x", "https://crm.example/v2/x"),
        ("HTTPS://CRM.example/v1/x", f"{CRM}/x"),
    ],
)
def test_a_path_is_joined_to_the_base_url(path: str, url: str) -> None:
    assert str(sent("GET", path).url) == url


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/v1/notes",
        "https://crm.example.evil.example/v1",
        "http://crm.example/v1/notes",
        "https://crm.example:8443/v1/notes",
        "//evil.example/v1/notes",
        "https://user:password@crm.example/v1/notes",
        "https://crm.example@evil.example/",
        "ftp://crm.example/",
    ],
)
def test_no_url_takes_the_credentials_to_another_place(url: str) -> None:
    sink = Sink()
    crm = client(sink, Attempt(values={"crm": "token-1"}), auth={"bearer": "crm"})

    with pytest.raises(Permanent, match="pass a path, or configure another destination"):
        crm.post(url)
    with pytest.raises(Permanent, match="pass a path") as raised:
        crm.get(httpx.URL(url))

    # The URL may be a personal field of the event, of which its host is a part.
    assert str(raised.value) == (
        "crm: the URL is not of https://crm.example: pass a path, or configure another destination"
    )
    assert sink.requests == []


@pytest.mark.parametrize(
    "path",
    [
        "../admin",
        "/notes/../../admin",
        "/./x",
        "/a/%2e%2e/b",
        "/a/..%2Fb",
        "/a/..\\b",
        "..",
        # Servlet containers drop a segment's parameters before they resolve it.
        "/a/..;/b",
        "/a/..;v=1/b",
        "/a/.;/b",
        "/a/..%3b/b",
        "/a/%2e%2e;x",
        # A proxy decodes once, and the server behind it again.
        "/a/%252e%252e/b",
        "/a/%25252e%25252e/b",
        "/a/.%252e/b",
        "/a/%25%32%65%25%32%65/b",
        "/a/%" + "25" * 30_000 + "2e",
        "/a/..%252fb",
        "/a/%252e%252e%252fb",
        "/a/..%5cb",
        "/a/..%255cb",
        "/a/%252e%252e%253b/b",
        # Whatever ends the path once it is decoded, or is cut off its segments.
        "/a/..#b",
        "/a/..%23/b",
        "/a/..%3fb",
        "/a/..%00/b",
        "/a/..%20/b",
        "/a/..%09/b",
        "https://crm.example/v1/a/%252e%252e/b",
    ],
)
def test_no_path_climbs_out_of_where_it_is_put(path: str) -> None:
    sink = Sink()

    with pytest.raises(Permanent, match="may lead to any resource"):
        client(sink).get(path)

    assert sink.requests == []


@pytest.mark.parametrize(
    "path",
    ["/a\nb", "/" + "a" * 70_000, "https://crm.example:ada/", 'https://ada"lovelacé.example/x'],
)
def test_what_is_no_url_is_a_permanent_failure(path: str) -> None:
    with pytest.raises(Permanent, match="crm: invalid URL: ") as raised:
        client(Sink()).post(path)
    assert "ada" not in "".join(format_exception(raised.value))


@pytest.mark.parametrize(
    "path",
    [
        "/a..b",
        "/.well-known/x",
        "/a?next=../b",
        "/v1.2/x",
        "/a;v=1/b",
        "/a/...;x",
        "/group%2Fproject",
        "/100%25/x",
        "/%2541",
    ],
)
def test_dots_elsewhere_are_only_dots(path: str) -> None:
    assert str(sent("GET", path).url) == CRM + path


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    sink = Sink(httpx.Response(status, headers={"location": f"{CRM}/elsewhere"}))

    with pytest.raises(Permanent, match=f"crm: GET /v1/x answered {status}"):
        client(sink).get("/x")

    assert len(sink.requests) == 1


def test_a_redirect_that_the_handler_follows_stays_at_the_host() -> None:
    sink = Sink(httpx.Response(302, headers={"location": "https://evil.example/"}))
    crm = client(sink, Attempt(values={"crm": "token-1"}), auth={"bearer": "crm"})

    with pytest.raises(Permanent, match=r"evil\.example is not crm\.example"):
        crm.get("/x", follow_redirects=True)

    assert len(sink.requests) == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_redirect_of_an_unsafe_request_is_never_followed(method: str) -> None:
    sink = Sink(httpx.Response(303, headers={"location": "/result"}))
    attempt = Attempt()
    crm = client(sink, attempt)

    with pytest.raises(Permanent, match=f"{method} /v1/x: a redirect of an unsafe request is not"):
        crm.request(method, "/x", follow_redirects=True)
    crm.follow_redirects = True
    with pytest.raises(Permanent, match="is not followed"):
        crm.request(method, "/x")
    with pytest.raises(Permanent, match="is not followed"):
        crm.send(crm.build_request(method, "/x"))

    assert sink.requests == []


def test_a_hook_may_not_hide_that_an_unsafe_request_was_answered() -> None:
    def hook(_: httpx.Response) -> None:
        raise Permanent("not good enough")

    sink = Sink(httpx.Response(200))
    crm = client(sink)
    crm.event_hooks = {"response": [hook]}

    with pytest.raises(Permanent, match="event hooks are for safe requests only"):
        crm.post("/x")
    assert sink.requests == []


# -- credentials


@pytest.mark.parametrize(
    ("auth", "value", "header", "carried"),
    [
        ({"bearer": "crm"}, "token-1", "authorization", "Bearer token-1"),
        ({"header": "X-Api-Key", "secret": "crm"}, "token-1", "x-api-key", "token-1"),
        (
            {"header": "Authorization", "secret": "crm", "prefix": "Token token="},
            "token-1",
            "authorization",
            "Token token=token-1",
        ),
        (
            {"basic": "crm"},
            "user:pass:wörd",
            "authorization",
            "Basic " + b64encode("user:pass:wörd".encode()).decode(),
        ),
    ],
)
def test_a_call_is_authenticated(
    auth: dict[str, str], value: str, header: str, carried: str
) -> None:
    sink = Sink()

    client(sink, Attempt(values={"crm": value}), auth=auth).get("/x")

    assert sink.last.headers[header] == carried


def test_a_secret_may_stand_in_the_query_beside_what_is_there() -> None:
    sink = Sink()
    crm = client(sink, Attempt(values={"crm": "a&b=c"}), auth={"query": "api_key", "secret": "crm"})

    answer = crm.get("/x", params={"page": "2"})

    assert sink.last.url.params == httpx.QueryParams({"page": "2", "api_key": "a&b=c"})
    assert str(answer.url) == f"{CRM}/x?page=2"


def test_a_secret_is_read_at_each_call() -> None:
    sink, attempt = Sink(), Attempt(values={"crm": "old"})
    crm = client(sink, attempt, auth={"bearer": "crm"})

    crm.get("/x")
    attempt.values["crm"] = ("new", "old")
    crm.get("/x")

    assert [r.headers["authorization"] for r in sink.requests] == ["Bearer old", "Bearer new"]


def test_the_handler_never_sees_what_was_added() -> None:
    attempt = Attempt(values={"crm": "token-1"})

    answer = client(Sink(), attempt, auth={"bearer": "crm"}).get("/x")

    assert "authorization" not in answer.request.headers
    assert "token-1" not in repr(answer.request.extensions)


def test_what_the_handler_authenticates_itself_stands() -> None:
    sink = Sink()
    crm = client(sink, Attempt(values={"crm": "token-1"}), auth={"bearer": "crm"})

    crm.get("/x", auth=("user", "password"))
    crm.get("/x", headers={"Authorization": "Bearer own"})

    basic, bearer = (r.headers["authorization"] for r in sink.requests)
    assert b64decode(basic.removeprefix("Basic ")) == b"user:password"
    assert bearer == "Bearer own"


# -- the key


def test_an_effect_is_sent_under_its_key() -> None:
    assert sent().headers["idempotency-key"] == KEY
    assert sent(effect="note").headers["idempotency-key"] == "note:stripe.fulfil:stripe:evt_1"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_is_not_safe_carries_a_key(method: str) -> None:
    assert sent(method).headers["idempotency-key"] == KEY.replace("POST", method)


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_what_is_safe_carries_none(method: str) -> None:
    assert "idempotency-key" not in sent(method).headers
    assert "idempotency-key" not in sent(method, effect="look").headers


def test_a_call_past_the_journal_carries_none() -> None:
    assert "idempotency-key" not in sent(effect=None).headers


def test_the_header_and_the_form_of_the_key_are_the_destinations() -> None:
    sink = Sink()

    client(sink, key_header="X-Request-Key", key_format="uuid").post("/notes")

    assert shown(sink.last, "x-request-key", "idempotency-key") == {
        "x-request-key": IdempotencyKey(KEY).uuid,
        "idempotency-key": None,
    }


def test_a_key_that_the_handler_sends_itself_stands_and_is_an_argument() -> None:
    sink, attempt = Sink(), Attempt()

    client(sink, attempt).post("/notes", headers={"Idempotency-Key": "payment-7"})

    assert sink.last.headers.get_list("idempotency-key") == ["payment-7"]
    ((_, plan),) = attempt.effects.begun
    assert plan["args"]["key"] == "payment-7"


def test_a_key_may_be_a_field_of_the_body() -> None:
    sink = Sink()

    client(sink, key_header="", key_field="dedup_key").post("/notes", json={"event": "trigger"})

    assert json.loads(sink.last.content) == {"dedup_key": KEY, "event": "trigger"}
    assert sink.last.headers["content-length"] == str(len(sink.last.content))
    assert "idempotency-key" not in sink.last.headers


def test_a_field_that_the_handler_filled_stands() -> None:
    sink = Sink()
    pager = client(sink, key_header="", key_field="dedup_key")

    pager.post("/notes", json={"event": "resolve", "dedup_key": "disk-7"})

    assert json.loads(sink.last.content) == {"event": "resolve", "dedup_key": "disk-7"}


@pytest.mark.parametrize(
    "body", [{"json": [1]}, {"content": b"\xff"}, {"data": {"a": "b"}}, {}, {"json": "text"}]
)
def test_a_body_without_room_for_the_key_is_refused_before_anything_happens(
    body: dict[str, Any],
) -> None:
    sink, attempt = Sink(), Attempt()
    pager = client(sink, attempt, key_header="", key_field="dedup_key")

    with pytest.raises(Permanent, match=r"its key is sent in 'dedup_key'.*effect=None"):
        pager.post("/notes", **body)

    assert (sink.requests, attempt.effects.begun, attempt.gate.entered) == ([], [], [])
    pager.post("/notes", effect=None, **body)
    assert len(sink.requests) == 1


def test_a_body_given_in_pieces_can_carry_the_key() -> None:
    sink = Sink()
    pager = client(sink, key_header="", key_field="dedup_key")

    pager.post("/notes", content=iter([b'{"a"', b": 1}"]))

    assert json.loads(sink.last.content) == {"dedup_key": KEY, "a": 1}
    assert "transfer-encoding" not in sink.last.headers


# -- trace, call chain, who calls


def test_each_call_sends_the_trace_context_of_its_attempt() -> None:
    sink = Sink()
    crm = client(sink)

    crm.get("/x", headers={"traceparent": "of the handler"})
    crm.post("/x")

    sent = f"00-{TRACE}-00f067aa0ba902b7-01"
    assert [r.headers["traceparent"] for r in sink.requests] == [sent, sent]


def test_the_chain_of_agents_is_extended() -> None:
    sink = Sink()
    chain = CallChain(("planner", "büro"), 2, "t-1")

    client(sink, Attempt(call_chain=chain)).post("/tasks", headers={"X-Agent-Call-Depth": "0"})

    assert shown(sink.last, "x-agent-call-chain", "x-agent-call-depth", "x-agent-trace-id") == {
        "x-agent-call-chain": "planner,b%C3%BCro,stripe.fulfil",
        "x-agent-call-depth": "3",
        "x-agent-trace-id": "t-1",
    }


@pytest.mark.parametrize(
    ("event_id", "named"),
    [("evt_1", "stripe/evt_1"), ("a b\n(ü)", "stripe/a%20b%0A%28%C3%BC%29"), ("x" * 999, "stri")],
)
def test_a_call_says_which_event_it_is_made_for(event_id: str, named: str) -> None:
    sink = Sink()

    client(sink, Attempt(event_id=event_id)).get("/x")

    agent = sink.last.headers["user-agent"]
    assert agent.startswith(f"webhook-inbox ({named}")
    assert len(agent) < 300


# -- the signature


def test_a_call_is_signed_as_standard_webhooks() -> None:
    sink = Sink()
    crm = client(sink, Attempt(values={"out": SIGNING}), sign="out")

    crm.post("/notes", json={"id": 7})

    headers = dict(sink.last.headers)
    assert headers["webhook-id"] == "POST%20/notes:stripe%2Efulfil:stripe:evt_1"
    assert headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    assert verified(SIGNING, sink.last) == {"id": 7}


def test_both_values_of_a_secret_that_is_rotated_sign() -> None:
    old = "whsec_" + b64encode(b"o" * 24).decode()
    sink = Sink()

    client(sink, Attempt(values={"out": (SIGNING, old)}), sign="out").post("/notes", json={"a": 1})

    assert verified(SIGNING, sink.last) == verified(old, sink.last) == {"a": 1}


def test_what_has_no_key_is_signed_by_the_events_id() -> None:
    sink = Sink()
    crm = client(sink, Attempt(values={"out": SIGNING}), sign="out")

    crm.post("/notes", effect=None, json={})
    crm.get("/notes")

    assert [r.headers["webhook-id"] for r in sink.requests] == ["evt_1", "evt_1"]


@pytest.mark.parametrize(
    ("event_id", "written"),
    [
        ("evt \u00fc\n1", "evt%20%C3%BC%0A1"),
        ("evt.1795262400.{}", "evt%2E1795262400%2E%7B%7D"),
        ("100%2E", "100%252E"),
    ],
)
def test_an_id_moves_no_border_of_what_is_signed(event_id: str, written: str) -> None:
    sink = Sink()
    attempt = Attempt(event_id=event_id, values={"out": SIGNING})

    client(sink, attempt, sign="out").post("/notes", effect=None, json={})

    assert sink.last.headers["webhook-id"] == written
    assert verified(SIGNING, sink.last) == {}


def test_a_long_id_is_hashed() -> None:
    sink = Sink()
    attempt = Attempt(event_id="." * 200, values={"out": SIGNING})

    client(sink, attempt, sign="out").post("/notes", effect=None, json={})

    assert len(sink.last.headers["webhook-id"]) == 64
    assert verified(SIGNING, sink.last) == {}


def test_the_key_in_the_body_is_signed_with_it() -> None:
    sink = Sink()
    attempt = Attempt(values={"out": SIGNING})

    client(sink, attempt, sign="out", key_header="", key_field="dedup").post("/notes", json={})

    assert verified(SIGNING, sink.last) == {"dedup": KEY}


def verified(secret: str, request: httpx.Request) -> Any:
    """Judges by the reference library, which reads the time from its own clock."""
    headers = dict(request.headers)
    webhook = Webhook(secret)
    made = webhook.sign(headers["webhook-id"], NOW, request.content.decode())
    assert made in headers["webhook-signature"].split(" ")
    return json.loads(request.content)


# -- httpx's own


def test_all_of_httpx_keywords_are_taken() -> None:
    sink = Sink()

    client(sink).post(
        "/notes",
        data={"a": "b"},
        files={"f": ("n.txt", b"content")},
        params={"q": "1"},
        headers={"X-Own": "2"},
        timeout=3,
        follow_redirects=False,
        extensions={"own": 1},
    )

    assert sink.last.url.query == b"q=1"
    assert sink.last.headers["x-own"] == "2"
    assert b"content" in sink.last.content


def test_each_method_is_there() -> None:
    sink = Sink()
    crm = client(sink)

    for send in (crm.get, crm.head, crm.options, crm.post, crm.put, crm.patch, crm.delete):
        assert send("/x").status_code == 200

    assert [r.method for r in sink.requests] == [
        *("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
    ]


def test_an_answer_is_httpx_own() -> None:
    packed = gzip.compress(b'{"id": 7}')
    sink = Sink(
        httpx.Response(200, content=packed, headers={"content-encoding": "gzip", "x-own": "1"}),
        httpx.Response(200, headers={"content-length": "1234"}),
    )
    crm = client(sink)

    answer, head = crm.get("/x"), crm.head("/x")

    assert (answer.json(), answer.headers["x-own"]) == ({"id": 7}, "1")
    assert "content-encoding" not in answer.headers
    assert answer.headers["content-length"] == "9"
    assert (answer.is_closed, answer.history) == (True, [])
    assert head.headers["content-length"] == "1234"


def test_a_method_is_one_in_any_case() -> None:
    attempt = Attempt()

    client(Sink(), attempt).request("post", "/notes")

    assert [name for name, _ in attempt.effects.begun] == ["POST /notes"]


def test_a_client_may_be_used_as_a_context() -> None:
    sink = Sink()
    with client(sink) as crm:
        crm.get("/x")

    assert len(sink.requests) == 1


def test_an_enclosing_effect_gives_its_key() -> None:
    sink = Sink()
    attempt = Attempt(effects=Effects(key="order:h:s:e"))

    client(sink, attempt).post("/notes", json={})

    assert sink.last.headers["idempotency-key"] == "order:h:s:e"
    assert attempt.effects.begun == []
