"""Keys are fetched from a provider in one exchange: no redirect, no large body, no long wait."""

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.stopwatch import Stopwatch
from tests.unit.adapters.aws.servers import Script, read_request, serving
from tests.waiting import DEADLINE
from webhook_inbox.adapters import https
from webhook_inbox.adapters.aws.connection import Limits, _context
from webhook_inbox.adapters.https import LIMIT, LIMITS, LONGEST, HttpsFetcher
from webhook_inbox.domain.errors import InboxError, NotPublished, Unavailable
from webhook_inbox.domain.ports import Fetch


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine fails no test that is not about time."""
    monkeypatch.setattr(https, "LIMITS", Limits(connect=DEADLINE, read=DEADLINE))
    monkeypatch.setattr(https, "LONGEST", DEADLINE)


def answering(status: int, body: bytes, *, seen: list[bytes], header: bytes = b"x: 1") -> Script:
    def script(peer: socket.socket) -> None:
        seen.append(read_request(peer))
        peer.sendall(b"HTTP/1.1 %d X\r\n%s\r\n\r\n" % (status, header) + body)

    return script


def fetched(script: Script, *, path: str = "/keys?kid=1", body: bytes | None = None) -> bytes:
    with serving(script) as server:
        return HttpsFetcher().fetch(Fetch(f"http://127.0.0.1:{server.port}{path}", body))


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize(
    ("path", "sent"), [("/keys?kid=1", "/keys?kid=1"), ("", "/"), ("?a=b", "/?a=b"), ("/k#f", "/k")]
)
def test_a_document_is_fetched(path: str, sent: str) -> None:
    seen: list[bytes] = []

    assert fetched(answering(200, b"the keys", seen=seen), path=path) == b"the keys"

    first, *lines = seen[0].split(b"\r\n")
    assert first == f"GET {sent} HTTP/1.1".encode()
    assert b"user-agent: webhook-inbox" in lines


@pytest.mark.usefixtures("_patient")
def test_a_body_is_posted() -> None:
    seen: list[bytes] = []

    assert (
        fetched(answering(200, b"key", seen=seen), body=json.dumps({"kid": 1}).encode()) == b"key"
    )

    assert seen[0].startswith(b"POST /keys?kid=1 HTTP/1.1\r\n")
    assert b"\r\ncontent-type: application/json\r\n" in seen[0]
    assert seen[0].endswith(b'\r\n\r\n{"kid": 1}')


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize(
    ("status", "error"),
    [
        *[(status, NotPublished) for status in (301, 302, 307, 308, 204, 400, 401, 403, 404, 410)],
        *[(status, Unavailable) for status in (408, 425, 429, 500, 502, 503, 504)],
    ],
)
def test_only_status_200_is_a_document_and_no_redirect_is_followed(
    status: int, error: type[InboxError]
) -> None:
    """A server that is down or limits requests may have the document."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0)
        place = b"location: http://127.0.0.1:%d/" % other.getsockname()[1]

        with pytest.raises(error, match=f"answered {status}"):
            fetched(answering(status, b"", seen=seen, header=place))
        with pytest.raises(BlockingIOError):
            other.accept()

    assert len(seen) == 1


@pytest.mark.usefixtures("_patient")
def test_no_query_is_in_an_error() -> None:
    """The URL that confirms a subscription of SNS has its token there, and errors are logged."""
    with pytest.raises(NotPublished) as failure:
        fetched(answering(403, b"", seen=[]), path="/confirm?Token=0123456789")

    assert "/confirm answered 403" in str(failure.value)
    assert "0123456789" not in str(failure.value)


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize("header", [b"x: 1", b"content-length: %d" % (LIMIT + 1)])
def test_a_large_document_is_refused(header: bytes) -> None:
    with pytest.raises(Unavailable, match="BadReply"):
        fetched(answering(200, b"x" * (LIMIT + 1), seen=[], header=header))
    assert len(fetched(answering(200, b"x" * LIMIT, seen=[]))) == LIMIT


@pytest.fixture
def hanging() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_hangs_is_given_up_in_time(hanging: str, scheme: str) -> None:
    _context()  # which reads 140 certificates: on a busy machine, for longer than a server may take
    watch = Stopwatch()

    with pytest.raises(Unavailable, match="TimeoutError"):
        HttpsFetcher().fetch(Fetch(f"{scheme}://{hanging}/"))

    assert watch.seconds < LONGEST
    assert 2 * LIMITS.connect + LIMITS.read == LONGEST


def test_a_host_name_that_is_not_resolved_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time-outs of a connection begin after it, and the sender chooses the host of SNS."""
    given_up = threading.Event()

    def never_resolve(*_: object, **__: object) -> list[object]:
        given_up.wait(30)
        raise socket.gaierror("the test did not go on")

    monkeypatch.setattr(socket, "getaddrinfo", never_resolve)

    with pytest.raises(Unavailable, match="TimeoutError"):
        HttpsFetcher().fetch(Fetch("https://sns.us-isob-east-1.sc2s.sgov.gov/1.pem"))

    given_up.set()


@pytest.mark.usefixtures("_patient")
def test_a_certificate_that_is_not_trusted_is_a_failed_request() -> None:
    """An attacker on the way can answer so; the provider's own server cannot."""

    def script(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 404 Not Found\r\n\r\n")

    with serving(script) as server, pytest.raises(Unavailable, match="SSL"):
        HttpsFetcher().fetch(Fetch(f"https://127.0.0.1:{server.port}/1.pem"))
