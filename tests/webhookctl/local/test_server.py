import hashlib
import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.waiting import DEADLINE
from webhookctl.local.http.gateway import Gateway, as_json
from webhookctl.local.http.messages import Connections, Request, Response
from webhookctl.local.http.server import BODY_LIMIT, Front
from webhookctl.local.ports import free_port

PATH = "/webhooks/acme"


def _post(
    front: Front,
    body: bytes = b"{}",
    headers: dict[str, str] | None = None,
    *,
    path: str = PATH,
    method: str = "POST",
) -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection("127.0.0.1", front.port, timeout=DEADLINE)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def _raw(front: Front, sent: bytes) -> bytes:
    """Sends bytes as they are and returns all that comes back."""
    with socket.create_connection(("127.0.0.1", front.port), timeout=DEADLINE) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := client.recv(65536):
            received += chunk
    return received


def _json(received: bytes) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(received.partition(b"\r\n\r\n")[2])
    return parsed


BODIES = {
    "json with odd spacing": (b'{ "a" :1 ,\n "b":"\\u00e9" }', "application/json"),
    "utf-8": ('{"name":"Zoë ☃"}'.encode(), "application/json; charset=utf-8"),
    "form": (b"payload=%7B%22a%22%3A1%7D&x=+y", "application/x-www-form-urlencoded"),
    "every byte": (bytes(range(256)), "application/octet-stream"),
    "not utf-8, called JSON": (b'{"name":"\xff\xfe"}', "application/json"),
    "not utf-8, called text": (b"\x80\x81", "text/plain; charset=latin-1"),
    "no content type": (b"\x00\x01plain", ""),
    "line ends": (b"a\r\nb\rc\n", "text/plain"),
    "empty": (b"", "application/json"),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_function_sees_the_very_bytes(front: Front, name: str) -> None:
    body, kind = BODIES[name]
    status, seen = _post(front, body, {"Content-Type": kind} if kind else {})
    assert status == 202
    assert seen["sha256"] == hashlib.sha256(body).hexdigest()
    assert seen["size"] == len(body)


def test_method_path_and_query_pass_through(front: Front) -> None:
    _, seen = _post(front, method="PUT", path=f"{PATH}?token=a%20b&x=1&x=2")
    assert seen["method"] == "PUT"
    assert seen["path"] == PATH
    assert seen["source"] == "acme"
    assert seen["query"] == "token=a%20b&x=1&x=2"


def test_header_names_come_lower_case_in_whatever_case_they_were_sent(front: Front) -> None:
    for spelling in ("X-Signature", "x-signature", "X-SIGNATURE"):
        _, seen = _post(front, headers={spelling: "Kept As-Is"})
        assert seen["headers"]["x-signature"] == "Kept As-Is"


@pytest.mark.parametrize("body", [b"{}", b"\xff"], ids=["through the API", "by the stand-in"])
def test_repeated_headers_are_joined_by_commas(front: Front, body: bytes) -> None:
    head = (
        b"POST /webhooks/acme HTTP/1.1\r\nHost: here\r\nContent-Type: text/plain\r\n"
        b"X-Sig: v1=a\r\nX-Other: z\r\nx-sig: v1=b\r\n"
    )
    seen = _json(_raw(front, head + b"Content-Length: %d\r\n\r\n" % len(body) + body))
    assert seen["headers"]["x-sig"].replace(", ", ",") == "v1=a,v1=b"


def test_hop_by_hop_headers_stop_here_and_the_rest_goes_on(front: Front) -> None:
    sent = (
        b"POST /webhooks/acme HTTP/1.1\r\nHost: tunnel.test\r\nConnection: keep-alive, X-Hop\r\n"
        b"X-Hop: 1\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\nAuthorization: Bearer t\r\n"
        b"User-Agent: GitHub-Hookshot/1\r\nContent-Length: 2\r\n\r\n{}"
    )
    headers = _json(_raw(front, sent))["headers"]
    assert headers["host"] == "tunnel.test"
    assert headers["authorization"] == "Bearer t"
    assert headers["user-agent"] == "GitHub-Hookshot/1"
    assert not {"x-hop", "keep-alive", "te", "expect", "transfer-encoding"} & set(headers)


def test_a_chunked_body_arrives_whole(front: Front) -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"a":'
        yield b"1" * 70_000
        yield b"}"

    connection = HTTPConnection("127.0.0.1", front.port, timeout=DEADLINE)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", PATH, body=chunks(), headers=headers, encode_chunked=True)
    seen = json.loads(connection.getresponse().read())
    connection.close()
    assert seen["size"] == 70_006
    assert seen["sha256"] == hashlib.sha256(b'{"a":' + b"1" * 70_000 + b"}").hexdigest()


def test_a_client_that_asks_first_is_told_to_go_on(front: Front) -> None:
    head = b"POST /webhooks/acme HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n"
    with socket.create_connection(("127.0.0.1", front.port), timeout=DEADLINE) as client:
        client.sendall(head + b"Expect: 100-continue\r\n\r\n")
        assert client.recv(1024).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"{}")
        assert client.recv(1024).startswith(b"HTTP/1.1 202 ")


@pytest.mark.parametrize("kind", ["application/octet-stream", "application/json"])
def test_four_and_a_half_megabytes_arrive_whole(front: Front, kind: str) -> None:
    body = os.urandom(4_500_000) if "octet" in kind else b'{"a":"%s"}' % (b"x" * 4_500_000)
    status, seen = _post(front, body, {"Content-Type": kind})
    assert status == 202
    assert seen["sha256"] == hashlib.sha256(body).hexdigest()


TOO_LARGE = {
    "over the event's limit as text": (b"x" * 6_400_000, "text/plain"),
    "under it, but not in base64": (b"x" * 4_800_000, "application/octet-stream"),
    "under it, but not escaped": (b'"' * 3_300_000, "application/json"),
    "more than is ever read": (b"x" * (BODY_LIMIT + 1), "text/plain"),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_does_not_fit_a_lambda_event_is_413(front: Front, name: str) -> None:
    body, kind = TOO_LARGE[name]
    assert _post(front, body, {"Content-Type": kind})[0] == 413
    assert _post(front)[0] == 202


def test_status_and_headers_come_back_as_the_function_gave_them(front: Front) -> None:
    head = b"POST /webhooks/acme HTTP/1.1\r\nHost: h\r\nX-Wanted-Status: 409\r\n"
    received = _raw(front, head + b"Content-Length: 2\r\n\r\n{}")
    assert received.startswith(b"HTTP/1.1 409 ")
    assert b"\r\nx-mixed-case: kept\r\n" in received.lower()
    assert b"transfer-encoding" not in received.lower()


@pytest.mark.parametrize("body", [b"{}", b"\xff"], ids=["through the API", "by the stand-in"])
def test_an_answer_without_a_body_is_framed_right(front: Front, body: bytes) -> None:
    connection = HTTPConnection("127.0.0.1", front.port, timeout=DEADLINE)
    for status in (204, 202, 304):
        headers = {"Content-Type": "text/plain", "X-Wanted-Status": str(status)}
        connection.request("POST", PATH, body=body, headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()


def test_head_has_no_body_and_the_connection_stays_usable(front: Front) -> None:
    connection = HTTPConnection("127.0.0.1", front.port, timeout=DEADLINE)
    for method in ("HEAD", "POST", "HEAD", "GET"):
        connection.request(method, PATH)
        answer = connection.getresponse()
        assert answer.status == 202
        assert bool(answer.read()) == (method != "HEAD")
    connection.close()


def test_options_reaches_the_function(front: Front) -> None:
    headers = {"WebHook-Request-Origin": "events.example"}
    status, seen = _post(front, b"", headers, method="OPTIONS")
    assert status == 202
    assert seen["method"] == "OPTIONS"
    assert seen["headers"]["webhook-request-origin"] == "events.example"


def test_the_stand_in_shows_the_function_what_the_api_shows(front: Front) -> None:
    headers = {"Content-Type": "text/plain", "X-A": "1", "User-Agent": "ua"}
    _, direct = _post(front, b"\xff", headers, path=f"{PATH}?a=1&a=2")
    _, through = _post(front, b"f", headers, path=f"{PATH}?a=1&a=2")
    differing = {"size", "sha256"}
    assert {k: v for k, v in direct.items() if k not in differing} == {
        k: v for k, v in through.items() if k not in differing
    }


def test_a_function_that_raises_in_the_stand_in_is_500_as_on_aws(front: Front) -> None:
    status, answer = _post(front, b"raise", {"Content-Type": "text/plain"}, method="OPTIONS")
    assert (status, answer) == (500, {"message": "Internal Server Error"})


def test_an_unknown_path_is_the_apis_404(front: Front) -> None:
    assert _post(front, path="/elsewhere")[0] == 404


def test_many_at_once_on_kept_connections_are_all_answered(front: Front) -> None:
    def three(number: int) -> list[str]:
        connection = HTTPConnection("127.0.0.1", front.port, timeout=DEADLINE)
        found = []
        for turn in range(3):
            headers = {"X-Event-Id": f"{number}-{turn}", "Content-Type": "application/json"}
            connection.request("POST", PATH, body=b"{}", headers=headers)
            found.append(json.loads(connection.getresponse().read())["event_id"])
        connection.close()
        return found

    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(three, range(100)))
    assert answers == [[f"{number}-{turn}" for turn in range(3)] for number in range(100)]


def test_one_line_a_request_with_the_event_and_without_the_query(
    front: Front, lines: list[str]
) -> None:
    _post(front, b"{}", {"X-Event-Id": "evt_1"}, path=f"{PATH}?token=secret")
    (line,) = lines
    assert " POST /webhooks/acme 202 " in line
    assert " ms 2 B event_id=evt_1" in line
    assert "secret" not in line


@pytest.mark.parametrize("path", ["/completions/", "/status/", "/approvals/"])
def test_the_line_of_a_path_with_a_token_holds_no_token(
    front: Front, lines: list[str], path: str
) -> None:
    _post(front, b"{}", path=f"{path}YWNtZQ.c2VjcmV0")
    (line,) = lines
    assert f" POST {path}{{token}} " in line
    assert "c2VjcmV0" not in line


class Refusing(Gateway):
    """What stands behind the front when ingest refuses a delivery."""

    async def call(self, request: Request, connections: Connections) -> Response:
        return as_json(401, {"status": "rejected", "reason": "invalid-signature"})


def test_a_refusal_is_logged_with_its_reason(
    serve: Callable[[Gateway | None], Front], lines: list[str]
) -> None:
    assert _post(serve(Refusing(free_port(), "", "absent", "absent")))[0] == 401
    (line,) = lines
    assert re.search(r"^\S+ rejected  acme: invalid-signature \(401, \d+ ms\)$", line)


def test_a_path_cannot_forge_a_line(front: Front, lines: list[str]) -> None:
    _raw(front, b"GET /x\xff\x1b[2J HTTP/1.1\r\nHost: h\r\n\r\n")
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("sent", [b"no HTTP at all\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"])
def test_what_is_no_http_gets_400(front: Front, sent: bytes) -> None:
    assert _raw(front, sent).startswith(b"HTTP/1.1 400 ")
    assert _post(front)[0] == 202


def test_a_client_that_disconnects_does_not_disturb_other_clients(front: Front) -> None:
    with socket.create_connection(("127.0.0.1", front.port)) as client:
        client.sendall(b"POST /webhooks/acme HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{")
    assert _post(front)[0] == 202


def test_the_top_explains_itself(front: Front) -> None:
    received = _raw(front, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert received.startswith(b"HTTP/1.1 200 ")
    assert b"POST /webhooks/{source}" in received


def test_a_closed_upstream_port_is_502_and_one_line(
    serve: Callable[[Gateway | None], Front], lines: list[str]
) -> None:
    front = serve(Gateway(free_port(), "", "absent", "absent"))
    assert _post(front)[0] == 502
    assert _post(front, b"\xff", {"Content-Type": "text/plain"})[0] == 502
    assert [" 502 " in line for line in lines] == [True, True]


def test_before_the_first_deployment_it_is_502(
    serve: Callable[[Gateway | None], Front], lines: list[str]
) -> None:
    assert _post(serve(None)) == (502, {"message": "the local runtime is not ready"})
    assert len(lines) == 1


def test_a_taken_port_is_an_error_at_start(front: Front) -> None:
    second = Front(front.port, print)
    with pytest.raises(OSError, match="in use"):
        second.start()
    second.stop()


def test_stopping_frees_the_port_even_with_open_connections(
    serve: Callable[[Gateway | None], Front],
) -> None:
    front = serve(None)
    with socket.create_connection(("127.0.0.1", front.port)):
        front.stop()
        front.stop()
        again = Front(front.port, print).start()
        again.stop()
    assert again.port == front.port
