"""Decodes the bodies of responses piece by piece, within the limits of their call.

httpx decodes each piece from the network as a whole and any number of encodings: 640 bytes can
become 628 MB. No body reaches it encoded.
"""

import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, cast

import httpx

# The bytes of all bodies of a call, decoded: of its response and of redirects on the way.
ANSWER_LIMIT: Final = 4 * 1024 * 1024
# The largest piece that is decoded at once.
PIECE: Final = 64 * 1024
# The header `accept-encoding` of a call.
ACCEPTED: Final = "gzip"
# The extension of a request that holds the allowance of its call.
ALLOWANCE: Final = "webhook_inbox.allowance"

_GZIP: Final = frozenset({"gzip", "x-gzip"})
# The first byte of each member of a gzip body.
_GZIP_START: Final = 0x1F
# Not requested, and garbage to a handler. Any other name is a server's mistake, such as "utf-8",
# and the body is as it is.
_UNDECODED: Final = frozenset({"br", "compress", "dcb", "dcz", "x-compress", "zstd"})
_SHOWN: Final = 60


class UnreadableBody(httpx.DecodingError):
    """A body exceeds its limit or has an encoding that is not decoded.

    The destination has answered, so this says nothing about whether the call was executed.
    """


class Allowance:
    """The bytes and the time that the bodies of one call may take together.

    Args:
        left: returns the seconds that are left; None for no limit of time.
    """

    def __init__(self, left: Callable[[], float] | None = None) -> None:
        self._bytes: float = ANSWER_LIMIT
        self._left = left

    def lift(self) -> None:
        """Ends the limits: a handler reads the body as a stream."""
        self._bytes, self._left = float("inf"), None

    def require_time(self) -> None:
        """Raises httpx.ReadTimeout if the time is used up."""
        if self._left is not None and self._left() <= 0:
            raise httpx.ReadTimeout("the body exceeded the time limit")

    def spend(self, size: int) -> None:
        """Takes bytes; raises UnreadableBody if fewer are left."""
        self._bytes -= size
        if self._bytes < 0:
            raise too_large(ANSWER_LIMIT)


def too_large(limit: int) -> UnreadableBody:
    """Returns the error of a body with more bytes than this, a multiple of 1 KB."""
    size = f"{limit // 2**20} MB" if limit >= 2**20 else f"{limit // 1024} KB"
    return UnreadableBody(f"exceeds {size}: request less, or stream it with a GET")


def with_bounded_body(
    response: httpx.Response, allowance: Allowance, *, method: str
) -> httpx.Response:
    """Returns a response whose body is decoded as it is read, within an allowance.

    Reading it raises UnreadableBody, or httpx.ReadTimeout after the time of the allowance.
    """
    stream = cast(httpx.SyncByteStream, response.stream)
    listed = response.headers.get_list("content-encoding", split_commas=True)
    names = [name.lower() for name in map(str.strip, listed)]
    encodings = [name for name in names if name not in {"", "identity"}]
    # Without it, httpx does not decode.
    dropped = {b"content-encoding"}
    if encodings and method != "HEAD":
        # The length of the encoded body.
        dropped.add(b"content-length")
    return httpx.Response(
        response.status_code,
        headers=[pair for pair in response.headers.raw if pair[0].lower() not in dropped],
        stream=_BoundedBody(stream, encodings, allowance),
        extensions=response.extensions,
    )


class _BoundedBody(httpx.SyncByteStream):
    def __init__(
        self, stream: httpx.SyncByteStream, encodings: list[str], allowance: Allowance
    ) -> None:
        self._stream = stream
        self._encodings = encodings
        self._allowance = allowance

    def __iter__(self) -> Iterator[bytes]:
        for piece in _decoded(filter(None, self._received()), self._encodings):
            self._allowance.spend(len(piece))
            yield piece

    def close(self) -> None:
        self._stream.close()

    def _received(self) -> Iterator[bytes]:
        for piece in self._stream:
            # Here, since any number of bytes may decode to nothing.
            self._allowance.require_time()
            yield piece


def _decoded(received: Iterator[bytes], encodings: list[str]) -> Iterator[bytes]:
    first = next(received, None)
    if first is None:
        return  # An answer to HEAD or a 204 may name the encoding of a body that it does not have.
    if len(encodings) > 1 or _UNDECODED.intersection(encodings):
        raise UnreadableBody(
            f"has the encoding {', '.join(encodings)[:_SHOWN]!r}: only one of gzip and deflate is"
            " decoded"
        )
    received = chain([first], received)
    if _GZIP.isdisjoint(encodings) and "deflate" not in encodings:
        yield from received
        return
    try:
        yield from _inflated(received, gzip=encodings[0] in _GZIP)
    except zlib.error as error:
        raise httpx.DecodingError(str(error)) from error


def _inflated(received: Iterator[bytes], *, gzip: bool) -> Iterator[bytes]:
    """Yields the decoded bytes in pieces of at most 64 KB; ignores what follows their end.

    Raises:
        zlib.error: the body is not in its encoding, or ends early.
    """
    decoder = None
    for piece in received:
        data = piece
        while data:
            if decoder is None:
                decoder = _decoder(data[0], gzip=gzip)
            elif decoder.eof:
                # A body of gzip may have several members (RFC 1952, 2.2).
                if not gzip or data[0] != _GZIP_START:
                    return
                decoder = _decoder(data[0], gzip=gzip)
            if decoded := decoder.decompress(data, PIECE):
                yield decoded
            data = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
    if decoder is not None:
        # At most the rest of one repetition, 258 bytes.
        yield decoder.flush()
        if not decoder.eof:
            raise zlib.error("the body ends early")


def _decoder(first: int, *, gzip: bool) -> "zlib._Decompress":
    if gzip:
        return zlib.decompressobj(16 + zlib.MAX_WBITS)
    # Some servers send deflate without the header of zlib (RFC 9110, 8.4.1.2).
    bare = first & 0x0F != zlib.DEFLATED
    return zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)
