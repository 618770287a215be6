"""Stores bodies: in the event's row, or in S3; compressed where that makes them smaller.

The attribute `body_encoding` is "raw"; "words1", zlib with the preset dictionary `WORDS`; or
"zlib", without one.
"""

import zlib
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from webhook_inbox.domain.digest import digest_of
from webhook_inbox.domain.errors import Permanent, Skipped
from webhook_inbox.domain.model import StoredEvent
from webhook_inbox.domain.ports import Blobs, Item, Key, Table
from webhook_inbox.domain.timestamps import from_ms, to_ms

if TYPE_CHECKING:
    from zlib import _Compress

# Above this size an S3 put is cheaper than the write units, and a duplicate costs none.
INLINE_LIMIT: Final = 8 * 1024
# A shorter body is not worth the time: no row of it takes a second write unit.
COMPRESSED_FROM: Final = 256
# A longer body is stored in S3 as it is: to compress a megabyte takes 4 to 15 ms, more than all
# else of ingest, and a million of them cost 37 dollars of storage.
COMPRESSED_TO: Final = 32 * 1024
LEVEL: Final = 6
PREFIX: Final = "bodies/"
# For rejected deliveries: the bucket deletes them after a week.
REJECTED_PREFIX: Final = "rejected/"


@dataclass(frozen=True, slots=True)
class Packed:
    """A body to be stored: row attributes and, for S3, the object."""

    attributes: Item
    blob_key: str = ""
    blob: bytes = b""

    def store(self, blobs: Blobs) -> Item:
        """Uploads the object, if there is one, and returns the attributes of the body's row.

        So no row can refer to an object that was not uploaded before it.

        Raises:
            Unavailable: S3 failed.
        """
        if self.blob_key:
            blobs.put(self.blob_key, self.blob)
        return self.attributes


def pack(body: bytes, *, prefix: str) -> Packed:
    """Returns how to store a body; an object's key is the prefix and the body's SHA-256.

    So another object cannot replace it. The bucket's lifecycle rules depend on the prefix.
    """
    data, encoding = _compress(body)
    attributes: Item = {"body_encoding": encoding, "body_size": len(body)}
    if len(data) <= INLINE_LIMIT:
        return Packed({**attributes, "body": data})
    key = f"{prefix}{digest_of(body)}"
    return Packed({**attributes, "body_ref": key}, blob_key=key, blob=data)


def pack_event(event: StoredEvent) -> Packed:
    """Returns how to store an event's body.

    The key has the time of receipt in it: an event's id may be used again after 35 days, and an
    erasure of the first event must not delete the body that a delivery of the second has uploaded.
    """
    prefix = f"{event_prefix(event.source, event.event_id)}{to_ms(event.received_at)}-"
    return pack(event.body, prefix=prefix)


def event_prefix(source: str, event_id: str) -> str:
    """Returns the prefix of the keys of all objects of an event, and of no other event's.

    Not all of them have a row: a delivery uploads its body before it writes the row.
    """
    return f"{PREFIX}{source}/{sha256(event_id.encode()).hexdigest()[:32]}/"


def received_ms(blob_key: str) -> int:
    """Returns when the delivery of an event's object was received; 0 in keys without a time."""
    time, dash, _ = blob_key.rpartition("/")[2].partition("-")
    return int(time) if dash else 0


def unpack(item: Item, blobs: Blobs) -> bytes:
    """Returns the body of a row.

    Raises:
        Unavailable: S3 failed.
        Permanent: the object is missing or was changed.
        Skipped: an operator has erased it.
    """
    if "erased_at" in item:
        raise Skipped(f"its payload was erased on {from_ms(item['erased_at']):%Y-%m-%d}")
    if "body" in item:
        return _decode(item["body"], item["body_encoding"])
    key: str = item["body_ref"]
    data = blobs.get(key)
    if data is None:
        raise Permanent(f"the stored body {key} is gone")
    body = _decode(data, item["body_encoding"])
    if not key.endswith(sha256(body).hexdigest()):
        raise Permanent(f"the stored body {key} is not what was accepted")
    return body


def unpack_event(row: Item, table: Table, blobs: Blobs) -> bytes:
    """Returns the body of an event's row; an erasure may delete the object after the row was read.

    Raises: see `unpack`.
    """
    try:
        return unpack(row, blobs)
    except Permanent:
        # An erasure marks the row before it deletes the object.
        marked = table.get(Key(row["pk"], row["sk"])) or {}
        if "erased_at" not in marked:
            raise
        return unpack(marked, blobs)


def _compress(body: bytes) -> tuple[bytes, str]:
    if not COMPRESSED_FROM <= len(body) <= COMPRESSED_TO:
        return body, "raw"
    compressor = _primed().copy()
    data = compressor.compress(body) + compressor.flush()
    return (data, "words1") if len(data) < len(body) else (body, "raw")


@cache
def _primed() -> "_Compress":
    """Returns a compressor that has read the dictionary, which takes longer than a body of 3 KB."""
    return zlib.compressobj(LEVEL, zdict=_words())


def _words() -> bytes:
    # Loaded at the first body: replay and reconciler compress none, and seldom read one.
    from webhook_inbox.ledger.vocabulary import WORDS  # noqa: PLC0415

    return WORDS


def _decode(data: bytes, encoding: str) -> bytes:
    if encoding == "raw":
        return data
    if encoding not in {"zlib", "words1"}:
        raise Permanent(f"the stored body has the unknown encoding {encoding!r}")
    try:
        if encoding == "zlib":
            return zlib.decompress(data)
        decompressor = zlib.decompressobj(zdict=_words())
        body = decompressor.decompress(data)
    except zlib.error as error:
        raise Permanent("the stored body cannot be decompressed") from error
    if not decompressor.eof:
        raise Permanent("the stored body is cut off")
    return body
