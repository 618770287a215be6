"""Credentials come from the environment, or are fetched before those that are held end."""

import json
import socket
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.unit.adapters.aws.servers import Script, Server, read_request, serving
from webhook_inbox.adapters.aws import credentials
from webhook_inbox.adapters.aws.connection import Limits
from webhook_inbox.adapters.aws.credentials import EARLY, PAUSE, CredentialSource
from webhook_inbox.adapters.aws.errors import AwsError
from webhook_inbox.adapters.aws.sigv4 import Credentials

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC).timestamp()
HOUR = 3600.0


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "LIMITS", Limits(connect=5, read=5))


def document(number: int = 1, *, expires: float = NOW + HOUR, **changed: object) -> bytes:
    data = {
        "AccessKeyId": f"ASIA{number}",
        "SecretAccessKey": f"secret-{number}",
        "Token": f"token-{number}",
        "Expiration": datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return json.dumps(data | changed).encode()


def keys(number: int) -> Credentials:
    return Credentials(f"ASIA{number}", f"secret-{number}", f"token-{number}")


class Endpoint:
    """Lambda's endpoint; each answer is for one request."""

    def __init__(self, *answers: bytes | tuple[int, bytes]) -> None:
        self.requests: list[bytes] = []
        self.scripts = [self._script(answer) for answer in answers]
        self.now = NOW

    def source(self, server: Server, *, path: str = "/v1?role=r") -> CredentialSource:
        environ = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{server.port}{path}",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": "the-token",
        }
        return CredentialSource(environ, now=lambda: self.now)

    def _script(self, answer: bytes | tuple[int, bytes]) -> Script:
        status, body = answer if isinstance(answer, tuple) else (200, answer)

        def script(peer: socket.socket) -> None:
            self.requests.append(read_request(peer))
            peer.sendall(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n" % (status, len(body)))
            peer.sendall(body)

        return script


def test_the_environments_keys_are_used() -> None:
    environ = {
        "AWS_ACCESS_KEY_ID": "AKIA",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
    }
    assert CredentialSource(environ).current() == Credentials("AKIA", "secret", "token")


def test_a_users_own_keys_have_no_token() -> None:
    environ = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "secret"}
    assert CredentialSource(environ).current() == Credentials("AKIA", "secret", "")


@pytest.mark.parametrize("environ", [{}, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "/no/host"}])
def test_neither_keys_nor_an_endpoint_is_an_error(environ: dict[str, str]) -> None:
    with pytest.raises(AwsError, match="NoCredentials: the environment has neither"):
        CredentialSource(environ).current()


def test_the_endpoint_is_asked_once_with_the_token_of_the_environment() -> None:
    endpoint = Endpoint(document())
    with serving(*endpoint.scripts) as server:
        source = endpoint.source(server)
        assert [source.current() for _ in range(3)] == [keys(1)] * 3

    (request,) = endpoint.requests
    lines = request.split(b"\r\n")
    assert lines[0] == b"GET /v1?role=r HTTP/1.1"
    assert b"authorization: the-token" in lines


def test_others_are_fetched_five_minutes_before_the_end() -> None:
    endpoint = Endpoint(document(1), document(2, expires=NOW + 2 * HOUR))
    with serving(*endpoint.scripts) as server:
        source = endpoint.source(server)
        source.current()
        endpoint.now = NOW + HOUR - EARLY - 1
        assert source.current() == keys(1)
        endpoint.now += 1
        assert source.current() == keys(2)

    assert EARLY == 300


FAILURES = [
    (500, b"{}"),
    (403, b'{"code": "AccessDenied", "message": "no"}'),
    (200, b""),
    (200, b"not JSON"),
    (200, b"[]"),
    (200, b'"text"'),
    (200, b"\xff\xfe"),
    (200, document(2, Expiration="soon")),
    (200, document(2, Expiration=7)),
    (200, document(2, Expiration=None)),
    (200, b'{"AccessKeyId": "ASIA2", "SecretAccessKey": "secret-2"'),
    (200, b'{"AccessKeyId": "ASIA2", "SecretAccessKey": "secret-2"}'),
]


@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_valid_ones_are_kept_while_the_endpoint_fails(failure: tuple[int, bytes]) -> None:
    endpoint = Endpoint(document(1), failure, document(3, expires=NOW + 2 * HOUR))
    with serving(*endpoint.scripts) as server:
        source = endpoint.source(server)
        source.current()
        endpoint.now = NOW + HOUR - EARLY
        assert source.current() == keys(1)
        endpoint.now += PAUSE - 1
        assert source.current() == keys(1)
        assert len(endpoint.requests) == 2
        endpoint.now += 1
        assert source.current() == keys(3)


@pytest.mark.parametrize("failure", FAILURES, ids=str)
def test_no_key_is_in_the_error_of_a_bad_answer(failure: tuple[int, bytes]) -> None:
    endpoint = Endpoint(failure)
    with serving(*endpoint.scripts) as server, pytest.raises(AwsError) as raised:
        endpoint.source(server).current()

    assert raised.value.code == "NoCredentials"
    text = "".join(traceback.format_exception(raised.value))
    assert "ASIA2" not in text
    assert "secret-2" not in text


def test_ended_ones_are_not_used_within_the_pause_either() -> None:
    endpoint = Endpoint(document(1), (500, b""), (500, b""), document(2, expires=NOW + 2 * HOUR))
    with serving(*endpoint.scripts) as server:
        source = endpoint.source(server)
        source.current()
        endpoint.now = NOW + HOUR - 1
        assert source.current() == keys(1)
        endpoint.now += 1
        with pytest.raises(AwsError, match="NoCredentials"):
            source.current()
        assert source.current() == keys(2)


def test_ones_that_aws_calls_expired_are_replaced_even_within_the_pause() -> None:
    endpoint = Endpoint(document(1), (500, b""), document(2))
    with serving(*endpoint.scripts) as server:
        source = endpoint.source(server)
        source.current()
        endpoint.now = NOW + HOUR - EARLY
        source.current()
        source.expired()
        assert source.current() == keys(2)


def test_an_endpoint_that_cannot_be_reached_is_an_error() -> None:
    endpoint = Endpoint()
    with serving() as server:
        source = endpoint.source(server)
    with pytest.raises(ConnectionRefusedError):
        source.current()


@pytest.fixture
def hanging() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def test_an_endpoint_that_hangs_is_given_up(hanging: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "LIMITS", Limits(connect=0.1, read=0.1))
    with pytest.raises(TimeoutError):
        CredentialSource({"AWS_CONTAINER_CREDENTIALS_FULL_URI": hanging}).current()
