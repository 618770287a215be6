"""Decodes the bodies of responses piece by piece, within the limits of their call.

httpx decodes each piece from the network as a whole and any number of encodings: 640 bytes can
become 628 MB. No body reaches it encoded.
"""

import zlib
from collections.abc import Callable, Iterator
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


def with_bounded_body(response: httpx.Response, allowance: Allowance) -> httpx.Response:
    """Returns a response whose body is decoded as it is read, within an allowance.

    Reading it raises UnreadableBody, or httpx.ReadTimeout after the time of the allowance.
    """
    stream = cast(httpx.SyncByteStream, response.stream)
    listed = response.headers.get_list("content-encoding", split_commas=True)
    encodings = [name.lower() for name in map(str.strip, listed) if name.lower() != "identity"]
    return httpx.Response(
        response.status_code,
        # Without it, httpx does not decode.
        headers=[pair for pair in response.headers.raw if pair[0].lower() != b"content-encoding"],
        stream=_BoundedBody(stream, list(filter(None, encodings)), allowance),
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
        for piece in self._decoded():
            self._allowance.spend(len(piece))
            yield piece

    def close(self) -> None:
        self._stream.close()

    def _decoded(self) -> Iterator[bytes]:
        encodings = self._encodings
        if len(encodings) > 1 or _UNDECODED.intersection(encodings):
            raise UnreadableBody(
                f"has the encoding {', '.join(encodings)[:_SHOWN]!r}: only one of gzip and deflate"
                " is decoded"
            )
        if _GZIP.union({"deflate"}).isdisjoint(encodings):
            return self._received()
        return _inflated(self._received(), gzip=encodings[0] in _GZIP)

    def _received(self) -> Iterator[bytes]:
        for piece in self._stream:
            # Here, since any number of bytes may decode to nothing.
            self._allowance.require_time()
            yield piece


def _inflated(received: Iterator[bytes], *, gzip: bool) -> Iterator[bytes]:
    """Yields the decoded bytes in pieces of at most 64 KB; ignores what follows their end."""
    data = next(filter(None, received), b"")
    if not data:
        return
    # Some servers send deflate without the header of zlib (RFC 9110, 8.4.1.2).
    window = 16 + zlib.MAX_WBITS if gzip else zlib.MAX_WBITS
    bare = not gzip and data[0] & 0x0F != zlib.DEFLATED
    decoder = zlib.decompressobj(-zlib.MAX_WBITS if bare else window)
    try:
        while not decoder.eof:
            if piece := decoder.decompress(data, PIECE):
                yield piece
            data = decoder.unconsumed_tail or next(filter(None, received), b"")
            if not data:
                break
        # At most the rest of one repetition, 258 bytes.
        yield decoder.flush()
    except zlib.error as error:
        raise httpx.DecodingError(str(error)) from error
