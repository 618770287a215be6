"""Ordering keys of serial runs: each is a message group of its lane.

    ingest ── ordering key from the body ──► event row ──► message group ──► FIFO lane

SQS delivers no message of a group while another of it is in flight. The event's row stores the
ordering keys, so that duplicates, the reconciler and replay send into the same group. A run that
waits for longer leaves the group for the key's line (queue/line).
"""

from collections.abc import Iterable
from hashlib import sha256

from webhook_inbox.domain.json_path import at, parse
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.ledger.schema import ID_LIMIT


def ordering_keys_of(specs: Iterable[HandlerSpec], body: bytes) -> dict[str, str]:
    """Returns the ordering key of each serial handler's run, by handler.

    A handler whose path has no value in this body is left out; its run will be dead. The body is
    parsed only if there is a serial handler.
    """
    serial = [spec for spec in specs if spec.serial]
    if not serial:
        return {}
    try:
        document = parse(body)
    except ValueError:
        return {}
    found = {spec.name: _ordering_key(document, spec) for spec in serial}
    return {name: ordering_key for name, ordering_key in found.items() if ordering_key}


def missing(spec: HandlerSpec) -> str:
    """Returns the error of a serial run without an ordering key."""
    path = spec.order.ordering_key if spec.order else ""
    return (
        f"the body has no text or whole number at {path!r}, the ordering key of {spec.name};"
        " correct the path in the handler's `order`, or narrow its types"
    )


def _ordering_key(document: object, spec: HandlerSpec) -> str:
    found = at(document, spec.order.ordering_key) if spec.order else None
    if isinstance(found, int) and not isinstance(found, bool):
        return _storable(str(found))
    return _storable(found) if isinstance(found, str) else ""


def _storable(text: str) -> str:
    """Returns a text that fits a key: itself, or its hash if it is long or not valid Unicode."""
    encoded = text.encode(errors="surrogatepass")
    if len(encoded) <= ID_LIMIT and encoded.decode(errors="replace") == text:
        return text
    return f"sha256:{sha256(encoded).hexdigest()}"
