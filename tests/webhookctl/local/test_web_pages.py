"""The local session refuses web pages in the developer's browser and other users."""

import io
import json
import socket
import zipfile
from base64 import b64encode
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread

import pytest
from botocore.exceptions import ClientError

from tests.waiting import DEADLINE
from webhook_inbox.adapters.aws.account import loopback_client
from webhookctl.local.http.gateway import Gateway
from webhookctl.local.http.server import Front
from webhookctl.local.http.web_pages import refusal
from webhookctl.local.processes.ministack import Ministack
from webhookctl.local.processes.sink import Sink

PAGE = {"Origin": "https://evil.example"}
# Each is sent by a browser on behalf of a page, and by nothing else.
OF_A_PAGE = {
    "another origin": PAGE,
    "a sandboxed frame": {"Origin": "null"},
    "another port of this machine": {"Origin": "http://127.0.0.1:3000"},
    "an image": {"Sec-Fetch-Site": "cross-site"},
    "a page at another port": {"Sec-Fetch-Site": "same-site"},
    "a rebound name": {"Host": "evil.example"},
    "a rebound name with the port": {"Host": "evil.example:{port}"},
    "a name that begins like ours": {"Host": "127.0.0.1.evil.example:{port}"},
    "another port": {"Host": "127.0.0.1:1"},
}
ANSWERED = {200, 201, 202, 404}


def answer(
    port: int,
    method: str,
    path: str,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
) -> tuple[int, dict[str, str], bytes]:
    shown = {name: value.format(port=port) for name, value in (headers or {}).items()}
    connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    connection.putrequest(method, path, skip_host="Host" in shown)
    for name, value in (shown | {"Content-Length": str(len(body or b""))}).items():
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content


def _function() -> bytes:
    """Returns what a page would send to run code on this machine; text/plain needs no preflight."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as target:
        target.writestr("index.py", "def handler(event, context): return 'owned'\n")
    wanted = {
        "FunctionName": "evil",
        "Runtime": "python3.13",
        "Role": "arn:aws:iam::000000000000:role/any",
        "Handler": "index.handler",
        "Code": {"ZipFile": b64encode(archive.getvalue()).decode()},
    }
    return json.dumps(wanted).encode()


CREATE = ("POST", "/2015-03-31/functions")
SECRET = {"X-Amz-Target": "secretsmanager.GetSecretValue", "Content-Type": "text/plain"}


def _functions(ministack: Ministack) -> list[str]:
    listed = ministack.client("lambda").list_functions()["Functions"]
    return [function["FunctionName"] for function in listed]


@pytest.mark.parametrize("name", OF_A_PAGE)
def test_a_page_creates_no_function(ministack: Ministack, name: str) -> None:
    headers = {"Content-Type": "text/plain", **OF_A_PAGE[name]}
    status, answered, _ = answer(ministack.port, *CREATE, headers, _function())
    assert status == 403
    assert not [header for header in answered if header.startswith("access-control-")]
    assert "evil" not in _functions(ministack)


def test_a_page_gets_no_permission_by_a_preflight(ministack: Ministack) -> None:
    headers = PAGE | {"Access-Control-Request-Method": "PUT"}
    status, answered, _ = answer(ministack.port, "OPTIONS", "/any", headers)
    assert status == 403
    assert not [header for header in answered if header.startswith("access-control-")]


def test_a_page_opens_no_web_socket(ministack: Ministack) -> None:
    headers = PAGE | {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    path = "/_aws/execute-api/any/any"
    assert answer(ministack.port, "GET", path, headers)[0] == 403
    assert answer(ministack.port, "GET", path, {**headers, "Origin": ""})[0] == 403


@pytest.mark.parametrize(
    "credentials",
    [
        {},
        {"Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/s3/aws4_request"},
        {"X-Amz-Security-Token": "another session's"},
        {"X-Webhook-Inbox-Session": "another session's"},
        {"X-Webhook-Inbox-Session": ""},
    ],
    ids=["none", "a key id", "another token", "another front's", "an empty one"],
)
@pytest.mark.parametrize("path", ["/2015-03-31/functions", "/_ministack/health", "/", "/bucket/k"])
def test_another_user_of_the_machine_needs_the_sessions_credentials(
    ministack: Ministack, credentials: dict[str, str], path: str
) -> None:
    assert answer(ministack.port, "GET", path, credentials)[0] == 403


def test_credentials_do_not_open_it_to_a_page(ministack: Ministack) -> None:
    token = ministack.credentials["AWS_SESSION_TOKEN"]
    known = {"X-Amz-Security-Token": token, "Content-Type": "text/plain"}
    assert answer(ministack.port, *CREATE, known | PAGE, _function())[0] == 403
    rebound = {"Host": "evil.example"}
    assert answer(ministack.port, *CREATE, known | rebound, _function())[0] == 403
    assert answer(ministack.port, "GET", "/_ministack/health", known)[0] == 200


def test_secrets_are_read_with_the_sessions_credentials_only(ministack: Ministack) -> None:
    ministack.client("secretsmanager").create_secret(Name="any", SecretString="only a test")
    body = json.dumps({"SecretId": "any"}).encode()
    for headers in ({}, PAGE):
        assert b"only a test" not in answer(ministack.port, "POST", "/", SECRET | headers, body)[2]
    other = loopback_client(
        "secretsmanager",
        endpoint=ministack.endpoint,
        credentials={**ministack.credentials, "AWS_SESSION_TOKEN": "another session's"},
    )
    with pytest.raises(ClientError, match="AccessDenied"):
        other.get_secret_value(SecretId="any")


def test_each_session_has_its_own_credentials(tmp_path: Path) -> None:
    one, other = (Ministack(tmp_path).credentials for _ in range(2))
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        assert one[name] != other[name]
        assert len(one[name]) > 30


@pytest.mark.parametrize("name", OF_A_PAGE)
@pytest.mark.parametrize("path", ["/webhooks/acme", "/", "/completions/t"])
def test_a_page_reaches_no_function_through_the_front(
    front: Front, lines: list[str], name: str, path: str
) -> None:
    status, _, content = answer(front.port, "POST", path, OF_A_PAGE[name], b"{}")
    assert status == 403
    assert json.loads(content)["message"]
    assert " 403 " in lines[-1]


@pytest.mark.parametrize("name", OF_A_PAGE)
def test_a_browser_reaches_the_page_of_an_approval_link_under_this_machines_name_only(
    front: Front, name: str
) -> None:
    """The link is in a message, so another site's page is where it is opened."""
    headers, path = OF_A_PAGE[name], "/approvals/v1.YWJj.c2Vj"
    for method in ("GET", "POST"):
        status, _, content = answer(front.port, method, path, headers, b"")
        assert status == (403 if "Host" in headers else 404)
        assert (b"is not this machine's" in content) is ("Host" in headers)
        assert b"of web pages" not in content
    for other in ("/approvals/", "/approvals/a/b", "/approvals/..%2Fwebhooks%2Facme", "/approvals"):
        assert answer(front.port, "POST", other, PAGE, b"")[0] == 403


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LocalHost:{port}"])
def test_this_machines_own_names_are_served(front: Front, host: str) -> None:
    assert answer(front.port, "POST", "/webhooks/acme", {"Host": host}, b"{}")[0] == 202
    typed = {"Host": host, "Sec-Fetch-Site": "none"}
    assert answer(front.port, "GET", "/", typed)[0] == 200


@pytest.mark.parametrize("host", ["tunnel.example", "Tunnel.Example:443"])
def test_a_tunnel_is_served_under_its_own_name_once_it_is_given(
    gateway: Gateway, host: str
) -> None:
    front = Front(0, lambda _: None, hosts={"tunnel.example"}).start()
    front.gateway = gateway
    try:
        status, _, content = answer(front.port, "POST", "/webhooks/acme", {"Host": host}, b"{}")
        assert status == 202
        assert json.loads(content)["headers"]["host"] == host
        other = {"Host": "sub.tunnel.example"}
        assert answer(front.port, "POST", "/webhooks/acme", other, b"{}")[0] == 403
        assert answer(front.port, "POST", "/webhooks/acme", PAGE | {"Host": host})[0] == 403
    finally:
        front.stop()


def test_a_tunnel_without_its_name_is_told_the_option(front: Front) -> None:
    headers = {"Host": "tunnel.example"}
    content = answer(front.port, "POST", "/webhooks/acme", headers, b"{}")[2]
    assert "--public-host tunnel.example" in json.loads(content)["message"]


def test_the_function_does_not_see_the_sessions_credentials(
    front: Front, ministack: Ministack
) -> None:
    own = {"X-Amz-Security-Token": "the provider's own", "X-Webhook-Inbox-Session": "forged"}
    content = answer(front.port, "POST", "/webhooks/acme", own, b"{}")[2]
    assert json.loads(content)["headers"]["x-amz-security-token"] == "the provider's own"
    assert b"x-webhook-inbox-session" not in content.lower()
    for secret in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        assert ministack.credentials[secret].encode() not in content


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Sink]:
    with Sink(0, tmp_path / "sink.jsonl", lambda _: None) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", OF_A_PAGE)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_page_neither_reads_nor_writes_the_effects(sink: Sink, name: str, method: str) -> None:
    sink.effects.perform("k", "/notes", {"customer": "c-9"})
    headers = {"Idempotency-Key": "of a page", **OF_A_PAGE[name]}
    status, _, content = answer(sink.server_port, method, "/effects", headers, b"{}")
    assert status == 403
    assert b"c-9" not in content
    assert list(sink.effects.all()) == ["k"]


def test_the_sinks_connection_stays_usable_after_a_refusal(sink: Sink) -> None:
    head = f"Host: 127.0.0.1:{sink.server_port}\r\n"
    refused = f"POST /a HTTP/1.1\r\n{head}Origin: null\r\nContent-Length: 2\r\n\r\n{{}}"
    served = f"GET /effects HTTP/1.1\r\n{head}Connection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", sink.server_port), timeout=DEADLINE) as client:
        client.sendall((refused + served).encode())
        received = b""
        while chunk := client.recv(65536):
            received += chunk
    assert received.startswith(b"HTTP/1.1 403 ")
    assert b"HTTP/1.1 200 " in received or received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Host", "127.0.0.1:8787"), ("Host", "evil.example")],
        [("Host", "")],
        [("Host", "tunnel.example.")],
        [("Host", "user@127.0.0.1:8787")],
    ],
)
def test_a_host_that_is_missing_doubled_or_odd_is_refused(headers: list[tuple[str, str]]) -> None:
    assert "Host" in refusal(headers, port=8787, hosts={"tunnel.example"})
