"""Ingest's clients: what they send, what they make of answers, and how long they wait."""

import json
import os
import socket
import tokenize
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import botocore.session
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.connections import closed_at_the_end
from tests.stopwatch import Stopwatch
from tests.unit.adapters.aws.servers import Script, read_request, serving
from webhook_inbox.adapters.aws import connection, lean_clients
from webhook_inbox.adapters.aws.connection import Connection
from webhook_inbox.adapters.aws.credentials import CredentialSource
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.errors import AwsError
from webhook_inbox.adapters.aws.lean_clients import JsonClient, S3Client, quick_caller
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.adapters.aws.time_budget import TimeBudget
from webhook_inbox.domain.errors import ConfigurationError, Unavailable
from webhook_inbox.domain.ports import Key, Outgoing


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with closed_at_the_end():
        yield


class Aws:
    """A server in the place of AWS, one connection for each answer; `requests` as they came."""

    def __init__(self, *answers: tuple[int, bytes], header: bytes = b"x: 1") -> None:
        self.requests: list[tuple[bytes, dict[str, str], bytes]] = []
        self.scripts = [self._script(*answer, header) for answer in answers]

    def _script(self, status: int, body: bytes, header: bytes) -> Script:
        def script(peer: socket.socket) -> None:
            head, _, sent = read_request(peer).partition(b"\r\n\r\n")
            first, *lines = head.split(b"\r\n")
            headers = dict(line.decode().split(": ", 1) for line in lines)
            self.requests.append((first, headers, sent))
            start = b"HTTP/1.1 %d X\r\n%s\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            peer.sendall(start % (status, header, len(body)) + body)

        return script


Endpoint = Callable[[Aws], None]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine fails no test that is not about time."""
    long = connection.Limits(connect=5, read=5)
    monkeypatch.setattr(lean_clients, "QUICK", long)
    monkeypatch.setattr(lean_clients, "QUICK_BLOBS", long)


@pytest.fixture
def endpoint(patient: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """Puts a server in the place of AWS."""
    with ExitStack() as stack:

        def put(aws: Aws) -> None:
            server = stack.enter_context(serving(*aws.scripts))
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")

        yield put


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, str]]]:
    """The host, the path and the headers of each request to AWS's own hosts."""
    requests: list[tuple[str, str, dict[str, str]]] = []

    def exchange(
        self: Connection, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> connection.Reply:
        requests.append((self.host, path, headers))
        assert self._tls
        return connection.Reply(200, {}, b"{}")

    monkeypatch.setattr(Connection, "exchange", exchange)
    return requests


def test_the_operation_and_its_parameters_are_sent(endpoint: Endpoint) -> None:
    aws = Aws((200, b'{"Item": {"pk": {"S": "a"}}}'))
    endpoint(aws)

    answer = JsonClient("dynamodb").get_item(TableName="t", Key={"pk": {"B": b"\x00\xff"}})

    assert answer == {"Item": {"pk": {"S": "a"}}}
    [(first, headers, body)] = aws.requests
    assert first == b"POST / HTTP/1.1"
    assert headers["x-amz-target"] == "DynamoDB_20120810.GetItem"
    assert headers["content-type"] == "application/x-amz-json-1.0"
    assert json.loads(body) == {"TableName": "t", "Key": {"pk": {"B": "AP8="}}}
    signed = "SignedHeaders=content-type;host;x-amz-date;x-amz-target,"
    assert signed in headers["authorization"]


def test_the_hosts_are_those_of_the_region_in_every_partition(
    sent: list[tuple[str, str, dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions = botocore.session.get_session().get_data("partitions")["partitions"]
    domains = {
        region: partition["outputs"]["dnsSuffix"]
        for partition in partitions
        for region in partition["regions"]
        if not region.endswith("-global")
    }
    assert {"us-east-1", "us-gov-west-1", "cn-north-1", "eusc-de-east-1"} < domains.keys()

    for region, domain in domains.items():
        monkeypatch.setenv("AWS_REGION", region)
        sent.clear()
        for service in ("dynamodb", "sqs", "secretsmanager"):
            JsonClient(service).anything()
        S3Client().put_object(Bucket="bodies", Key="a/b", Body=b"")

        prefixes = ("dynamodb", "sqs", "secretsmanager", "bodies.s3")
        assert [name for name, _, _ in sent] == [f"{each}.{region}.{domain}" for each in prefixes]
        assert {path for _, path, _ in sent} == {"/", "/a/b"}
        assert all(f"/{region}/" in headers["authorization"] for _, _, headers in sent)


def test_a_missing_region_says_which_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(ConfigurationError, match="AWS_REGION is not set"):
        JsonClient("sqs")


def test_a_services_own_endpoint_wins(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws((200, b"{}"))
    endpoint(aws)
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", os.environ["AWS_ENDPOINT_URL"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")

    assert JsonClient("secretsmanager").get_secret_value(SecretId="s") == {}


@pytest.mark.parametrize("path", ["", "/", "/aws", "/aws/"])
def test_the_path_of_an_endpoint_is_kept(
    path: str, patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws = Aws((200, b"{}"), (200, b"{}"))
    with serving(*aws.scripts) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}{path}")
        JsonClient("sqs").anything()
        S3Client().put_object(Bucket="bodies", Key="key", Body=b"x")

    base = path.rstrip("/").encode()
    assert [first for first, _, _ in aws.requests] == [
        b"POST " + base + b"/ HTTP/1.1",
        b"PUT " + base + b"/bodies/key HTTP/1.1",
    ]


@given(key=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
@settings(max_examples=60)
def test_the_key_of_an_object_is_one_path_whatever_it_holds(key: str) -> None:
    aws = Aws((200, b""))
    with serving(*aws.scripts) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        S3Client().put_object(Bucket="bodies", Key=key, Body=b"x")

    [(first, headers, body)] = aws.requests
    method, path, version = first.decode().split(" ")
    assert (method, version, body) == ("PUT", "HTTP/1.1", b"x")
    assert unquote(path.removeprefix("/bodies/")) == key
    assert set(headers) == {
        *("host", "x-amz-date", "x-amz-content-sha256", "authorization", "user-agent"),
        "content-length",
    }


def test_no_body_waits_for_leave_to_be_sent(
    sent: list[tuple[str, str, dict[str, str]]],
) -> None:
    """With "Expect: 100-continue" a client waits longer than its time-outs say."""
    S3Client().put_object(Bucket="bodies", Key="key", Body=b"x" * 5_000_000)

    assert [headers for _, _, headers in sent if "expect" in headers] == []


@pytest.mark.parametrize(
    ("status", "body", "header", "expected"),
    [
        (400, b'{"__type":"a.b#C","message":"m"}', b"x: 1", ("C", "C: m")),
        (400, b'{"__type":"C","Message":"m"}', b"x: 1", ("C", "C: m")),
        (400, b"{}", b"x-amzn-ErrorType: C:http://internal/", ("C", "C: ")),
        (503, b"<html>no</html>", b"x: 1", ("503", "503: ")),
        (503, b"", b"x: 1", ("503", "503: ")),
        (503, b"[]", b"x: 1", ("503", "503: ")),
        (503, b'"text"', b"x: 1", ("503", "503: ")),
        (301, b"{}", b"location: http://other", ("301", "301: ")),
    ],
)
def test_an_error_answer_has_awss_code(
    endpoint: Endpoint, status: int, body: bytes, header: bytes, expected: tuple[str, str]
) -> None:
    endpoint(Aws((status, body), header=header))

    with pytest.raises(AwsError) as raised:
        JsonClient("dynamodb").put_item()

    assert (raised.value.code, str(raised.value)) == expected
    assert raised.value.status == status


@pytest.mark.parametrize("body", [b"<html>a proxy's page</html>", b"[]", b"null", b'"ok"'])
def test_a_success_that_is_not_awss_is_an_error(endpoint: Endpoint, body: bytes) -> None:
    """Else an event would count as stored that is not."""
    endpoint(Aws((200, body)))

    with pytest.raises(connection.BadReply, match="not JSON"):
        JsonClient("dynamodb").put_item()


def test_an_empty_answer_is_a_success(endpoint: Endpoint) -> None:
    """SQS has nothing to say about a deleted message."""
    endpoint(Aws((200, b"")))

    assert JsonClient("sqs").delete_message() == {}


def test_the_row_of_a_failed_condition_is_kept(endpoint: Endpoint) -> None:
    item = {"pk": {"S": "a"}}
    data = {"__type": "x#ConditionalCheckFailedException", "message": "m", "Item": item}
    endpoint(Aws((400, json.dumps(data).encode())))

    with pytest.raises(AwsError) as raised:
        JsonClient("dynamodb").put_item()

    assert raised.value.item == item


def test_an_error_of_s3_is_read_from_its_text(endpoint: Endpoint) -> None:
    text = b"<?xml?><Error><Code>NoSuchKey</Code><Message>not there</Message></Error>"
    endpoint(Aws((404, text), (503, b"")))
    client = S3Client()

    with pytest.raises(AwsError, match="NoSuchKey: not there"):
        client.get_object(Bucket="bodies", Key="key")
    with pytest.raises(AwsError, match="503"):
        client.get_object(Bucket="bodies", Key="key")


def test_a_parameter_of_another_type_is_an_error_of_our_own() -> None:
    with pytest.raises(TypeError, match="a parameter cannot be set"):
        JsonClient("sqs").send_message(MessageBody={"a"})
    with pytest.raises(AttributeError):
        assert JsonClient("sqs")._private


@pytest.mark.parametrize("code", ["ExpiredTokenException", "ExpiredToken"])
def test_expired_credentials_are_replaced_for_the_retry(
    endpoint: Endpoint, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"AccessKeyId": "ASIA", "SecretAccessKey": "s", "Expiration": "2099-01-01T00:00:00Z"}
    tokens = [json.dumps({**document, "Token": token}).encode() for token in ("old", "new")]
    lambdas, error = Aws(*[(200, token) for token in tokens]), json.dumps({"__type": code}).encode()
    aws = Aws((400, error), (200, b"{}"))
    endpoint(aws)
    with serving(*lambdas.scripts) as server:
        environ = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{server.port}/"}
        monkeypatch.setattr(lean_clients, "_credentials", CredentialSource(environ))
        client = JsonClient("dynamodb")

        call = TimeBudget(total=60).attempts_of(1)
        assert call("dynamodb", "PutItem", client.put_item) == {}

    used = [headers["x-amz-security-token"] for _, headers, _ in aws.requests]
    assert used == ["old", "new"]


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An endpoint that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        yield


@pytest.mark.usefixtures("hanging")
def test_ingest_hears_within_its_time_that_everything_hangs() -> None:
    budget = TimeBudget()
    table = DynamoTable(JsonClient("dynamodb"), "t", call=quick_caller("dynamodb", budget))
    queue = SqsQueue(JsonClient("sqs"), "http://x/1/q", call=quick_caller("sqs", budget))
    blobs = S3Blobs(S3Client(), "bucket", call=quick_caller("s3", budget))
    watch = Stopwatch()
    budget.begin()

    with pytest.raises(Unavailable):
        table.get(Key("a", "b"))
    with pytest.raises(Unavailable):
        blobs.put("k", b"x" * 5_000_000)
    with pytest.raises(Unavailable):
        queue.send([Outgoing("x")])

    assert watch.seconds < 2.5


@pytest.mark.usefixtures("hanging")
def test_a_large_body_to_a_service_that_hangs_is_given_up_in_time() -> None:
    budget = TimeBudget()
    blobs = S3Blobs(S3Client(), "bucket", call=quick_caller("s3", budget))
    watch = Stopwatch()

    with pytest.raises(Unavailable, match="TimeoutError"):
        blobs.put("k", b"x" * 5_000_000)

    assert watch.seconds < 2.5


def test_a_closed_port_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")

    with pytest.raises(Unavailable, match="ConnectionRefusedError"):
        DynamoTable(JsonClient("dynamodb"), "t").get(Key("a", "b"))


def test_a_client_tries_once(endpoint: Endpoint) -> None:
    aws = Aws((503, b"{}"), (200, b"{}"))
    endpoint(aws)

    with pytest.raises(AwsError):
        JsonClient("sqs").send_message()

    assert len(aws.requests) == 1


@pytest.mark.parametrize("service", ["dynamodb", "sqs", "s3", "secretsmanager"])
def test_an_attempt_with_its_full_time_outs_fits(service: str) -> None:
    limits = lean_clients._limits(service)
    longest = 2 * limits.connect + limits.read

    fitting = quick_caller(service, TimeBudget(total=longest + 0.05))
    assert fitting(service, "o", lambda: "fits") == "fits"
    with pytest.raises(Unavailable):
        quick_caller(service, TimeBudget(total=longest - 0.05))(service, "o", lambda: "not")


MODULES = ("sigv4", "connection", "credentials", "lean_clients")


def test_the_client_has_at_most_400_lines_of_code() -> None:
    directory = Path(connection.__file__).parent
    lines = {name: len(_code_lines((directory / f"{name}.py").read_bytes())) for name in MODULES}

    assert sum(lines.values()) <= 400, lines


def _code_lines(source: bytes) -> set[int]:
    """Returns the lines that hold code: none that is blank, a comment or a docstring."""
    beside = {
        *(tokenize.ENCODING, tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
        *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
    }
    tokens = list(tokenize.tokenize(BytesIO(source).readline))
    lines: set[int] = set()
    for before, token in pairwise(tokens):
        statement = before.type in beside
        if token.type not in beside and not (statement and token.type == tokenize.STRING):
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines
