"""A response cannot exhaust the worker's memory or time, whatever its body decodes to."""

import gzip
import tracemalloc
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import httpx
import pytest
from httpx import _decoders

from tests.unit.destinations.client.calling import NOW, Attempt, Sink, client
from webhook_inbox.adapters.memory import ManualClock
from webhook_inbox.destinations.circuit import CallOutcome
from webhook_inbox.domain.errors import Permanent, Transient

MB = 2**20
SIZE = 32 * MB
GZIPPED = gzip.compress(bytes(SIZE), mtime=0)
STACKED = gzip.compress(GZIPPED, mtime=0)
DEFLATED = zlib.compress(bytes(SIZE))
BARE = DEFLATED[2:-4]
BOMBS = [("gzip", GZIPPED), ("x-gzip", GZIPPED), ("deflate", DEFLATED), ("deflate", BARE)]
BOMB_IDS = ["gzip", "x-gzip", "deflate", "deflate without a zlib header"]
JSON = b'{"id": 7}'
# A body of 4 MB as pieces and as a whole, and the decoder's state.
PEAK = 12 * MB


class Pieces(httpx.SyncByteStream):
    """A body as the network delivers it; counts what was taken."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.taken = 0
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.taken += len(piece)
            yield piece

    def close(self) -> None:
        self.closed = True


def cut(body: bytes, size: int = 65536) -> Pieces:
    return Pieces(body[start : start + size] for start in range(0, len(body), size))


def response(
    status: int, body: bytes | Pieces, encoding: str = "", **headers: str
) -> httpx.Response:
    stream = body if isinstance(body, Pieces) else cut(body)
    encoded = {"content-encoding": encoding} if encoding else {}
    return httpx.Response(status, headers={**encoded, **headers}, stream=stream)


@contextmanager
def memory_below(limit: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < limit, f"{peak / MB:.1f} MB"


def test_a_small_body_is_not_encoded_twice_to_exhaust_a_worker() -> None:
    assert len(STACKED) < 640
    run = Attempt()
    crm = client(Sink(response(200, STACKED, "gzip, gzip")), run)

    with memory_below(MB), pytest.raises(Permanent) as raised:
        crm.get("/x")

    assert str(raised.value) == (
        "crm: GET /v1/x answered 200, but its body has the encoding 'gzip, gzip': only one of"
        " gzip and deflate is decoded"
    )
    assert run.gate.answers == [CallOutcome.ok()]


def test_encodings_in_two_headers_are_two() -> None:
    headers = [("content-encoding", "gzip"), ("content-encoding", "gzip")]
    crm = client(Sink(httpx.Response(200, headers=headers, stream=cut(STACKED))))

    with memory_below(MB), pytest.raises(Permanent, match="'gzip, gzip'"):
        crm.get("/x")


@pytest.mark.parametrize(("encoding", "body"), BOMBS, ids=BOMB_IDS)
def test_a_body_is_decoded_up_to_its_limit(encoding: str, body: bytes) -> None:
    run = Attempt()
    crm = client(Sink(response(200, body, encoding)), run)

    with memory_below(PEAK), pytest.raises(Permanent) as raised:
        crm.get("/x")

    assert str(raised.value) == (
        "crm: GET /v1/x answered 200, but its body exceeds 4 MB: request less, or stream it with"
        " a GET"
    )
    assert run.gate.answers == [CallOutcome.ok()]


def test_a_body_without_an_end_is_left_at_its_limit() -> None:
    body = Pieces(iter(lambda: bytes(65536), None))

    with memory_below(PEAK), pytest.raises(Permanent, match="exceeds 4 MB"):
        client(Sink(response(200, body))).get("/x")

    assert body.taken <= 4 * MB + 65536
    assert body.closed


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, br", "BR"])
def test_an_encoding_that_was_not_requested_is_refused(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    class Installed(_decoders.ContentDecoder):
        def decode(self, data: bytes) -> bytes:
            raise AssertionError("httpx decodes without a limit")

        flush = decode  # type: ignore[assignment]

    for name in ("br", "zstd"):
        monkeypatch.setitem(_decoders.SUPPORTED_DECODERS, name, Installed)
    sink = Sink(response(200, b"abc", encoding))

    with pytest.raises(Permanent, match=f"has the encoding '{encoding.lower()}'"):
        client(sink).get("/x")

    assert sink.last.headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("", JSON),
        ("identity", JSON),
        ("utf-8", JSON),
        ("gzip", gzip.compress(JSON, mtime=0)),
        ("GZIP, identity", gzip.compress(JSON, mtime=0)),
        ("deflate", zlib.compress(JSON)),
        ("deflate", zlib.compress(JSON)[2:-4]),
        ("gzip", gzip.compress(JSON, mtime=0) + b"garbage"),
        ("gzip", b"".join(gzip.compress(part, mtime=0) for part in (JSON[:4], b"", JSON[4:]))),
    ],
    ids=range(9),
)
@pytest.mark.parametrize("size", [1, 65536])
def test_a_body_of_one_encoding_is_decoded(encoding: str, body: bytes, size: int) -> None:
    answers = [response(200, cut(body, size), encoding) for _ in range(3)]
    crm = client(Sink(*answers))

    assert crm.get("/x").json() == {"id": 7}
    assert crm.post("/x").json() == {"id": 7}
    with crm.stream("GET", "/x") as streamed:
        assert b"".join(streamed.iter_bytes()) == JSON


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate", "br", "gzip, gzip"])
def test_an_empty_body_needs_no_decoding(encoding: str) -> None:
    crm = client(Sink(*(response(status, b"", encoding) for status in (204, 200, 204))))
    assert crm.get("/x").content == b""
    assert crm.head("/x").content == b""
    assert crm.delete("/x").content == b""


@pytest.mark.parametrize(("encoding", "body"), BOMBS, ids=BOMB_IDS)
@pytest.mark.parametrize("lost", [1, 9])
def test_a_body_that_ends_early_is_an_incomplete_response(
    encoding: str, body: bytes, lost: int
) -> None:
    whole = gzip.compress(JSON) if encoding.endswith("gzip") else zlib.compress(JSON)
    whole = whole[2:-4] if body is BARE else whole
    run = Attempt()
    # Neither a length nor chunks: only the encoding shows that the connection was cut.
    crm = client(Sink(*(response(200, whole[:-lost], encoding) for _ in range(2))), run)

    for method in ("GET", "POST"):
        with pytest.raises(Transient, match="broke before the answer was complete"):
            crm.request(method, "/x")

    assert run.effects.committed == {}


def test_members_of_a_body_share_its_limit() -> None:
    body = gzip.compress(bytes(MB), mtime=0) * 32

    with memory_below(PEAK), pytest.raises(Permanent, match="exceeds 4 MB"):
        client(Sink(response(200, body, "gzip"))).get("/x")


def test_a_decoded_stream_has_no_length_of_its_encoded_body() -> None:
    length = {"content-length": str(len(GZIPPED))}
    crm = client(Sink(*(response(200, body, "gzip", **length) for body in (GZIPPED, b""))))

    with crm.stream("GET", "/x") as streamed:
        assert not {"content-encoding", "content-length"} & streamed.headers.keys()
    assert crm.head("/x").headers["content-length"] == length["content-length"]


def test_a_body_of_many_pieces_arrives_whole() -> None:
    body = bytes(range(256)) * 12_000

    answer = client(Sink(response(200, cut(gzip.compress(body), 777), "gzip"))).get("/x")

    assert answer.content == body
    assert "content-encoding" not in answer.headers


def test_a_garbled_body_is_an_incomplete_response() -> None:
    run = Attempt()
    crm = client(Sink(response(200, b"\x1f\x8b\x08" + b"junk" * 9, "gzip")), run)

    with pytest.raises(Transient, match="broke before the answer was complete"):
        crm.get("/x")

    assert run.gate.answers == [CallOutcome.failed()]


# -- effects: the destination answered 2xx, so the call was executed


@pytest.mark.parametrize(
    ("encoding", "body", "why"),
    [
        ("gzip", GZIPPED, "exceeds 256 KB: request less, or stream it with a GET"),
        (
            "gzip, gzip",
            STACKED,
            "has the encoding 'gzip, gzip': only one of gzip and deflate is decoded",
        ),
    ],
)
def test_an_effect_is_committed_without_a_body_that_cannot_be_read(
    encoding: str, body: bytes, why: str
) -> None:
    run, sink = Attempt(), Sink(response(201, body, encoding))

    with memory_below(2 * MB):
        answers = [client(sink, run).post("/notes") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    for answer in answers:
        with pytest.raises(Permanent) as raised:
            answer.json()
        assert str(raised.value) == f"the response was recorded without its body, which {why}"
    assert len(sink.requests) == 1
    assert (run.effects.failed, run.gate.answers) == ([], [CallOutcome.ok()])


def test_a_call_within_an_effect_is_not_denied_by_its_body() -> None:
    run = Attempt()
    run.effects.key = "key-1"

    with pytest.raises(Transient, match="'gzip, gzip'") as raised:
        client(Sink(response(200, STACKED, "gzip, gzip")), run).post("/x")

    assert not raised.value.refused
    assert (run.effects.calls[-1], run.effects.failed) == ("succeeded", [])


# -- bodies that no handler asked for


@pytest.mark.parametrize("status", [302, 422, 500])
@pytest.mark.parametrize(
    ("encoding", "body"), [*BOMBS, ("gzip, gzip", STACKED)], ids=[*BOMB_IDS, "stacked"]
)
def test_the_body_of_an_error_does_not_change_its_class(
    status: int, encoding: str, body: bytes
) -> None:
    crm = client(Sink(response(status, body, encoding)))

    with memory_below(MB), pytest.raises((Permanent, Transient), match=f"answered {status}"):
        crm.get("/x")


def test_redirects_share_the_limit_of_their_call() -> None:
    hops = [response(302, gzip.compress(bytes(3 * MB)), "gzip", location=f"/{n}") for n in range(3)]
    run, sink = Attempt(), Sink(*hops)

    with memory_below(PEAK), pytest.raises(Permanent) as raised:
        client(sink, run).get("/x", follow_redirects=True)

    assert str(raised.value) == (
        "crm: GET /v1/x was redirected, but a body on the way exceeds 4 MB: request less, or"
        " stream it with a GET"
    )
    assert len(sink.requests) == 2
    assert run.gate.answers == [CallOutcome.ok()]


# -- streams and time


def test_a_stream_is_decoded_in_small_pieces() -> None:
    crm = client(Sink(response(200, GZIPPED, "gzip")))

    with memory_below(MB), crm.stream("GET", "/x") as streamed:
        sizes = [len(piece) for piece in streamed.iter_bytes()]

    assert sum(sizes) == SIZE
    assert max(sizes) <= 65536


def test_a_stream_refuses_stacked_encodings_as_well() -> None:
    crm = client(Sink(response(200, STACKED, "gzip, gzip")))

    with crm.stream("GET", "/x") as streamed, pytest.raises(httpx.DecodingError, match="gzip"):
        streamed.read()


def endless(clock: ManualClock, piece: bytes, *, start: bytes = b"") -> Iterator[bytes]:
    """Yields a piece each second."""
    yield start
    while True:
        clock.advance(seconds=1)
        yield piece


# An empty block of deflate is five bytes, and decodes to nothing.
@pytest.mark.parametrize(
    ("encoding", "start", "piece"),
    [("", b"", b"."), ("gzip", GZIPPED[:10], b"\0\0\0\xff\xff")],
    ids=["identity", "empty blocks"],
)
@pytest.mark.parametrize("status", [200, 302, 500])
def test_a_slow_body_ends_with_the_time_of_its_call(
    encoding: str, start: bytes, piece: bytes, status: int
) -> None:
    clock = ManualClock(NOW)
    body = Pieces(endless(clock, piece, start=start))
    sink = Sink(response(status, body, encoding, location="/y"))

    with pytest.raises((Permanent, Transient)):
        client(sink, clock=clock, timeout=5.0).get("/x", follow_redirects=True)

    assert (clock.now() - NOW).total_seconds() <= 6
    assert body.closed


def test_a_stream_may_take_longer_than_its_call() -> None:
    clock = ManualClock(NOW)
    body = Pieces(piece for _, piece in zip(range(30), endless(clock, b"x" * MB), strict=False))
    crm = client(Sink(response(200, body)), clock=clock, timeout=5.0)

    with crm.stream("GET", "/x") as streamed:
        assert sum(map(len, streamed.iter_bytes())) == 29 * MB
