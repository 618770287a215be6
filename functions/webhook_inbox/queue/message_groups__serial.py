"""Handlers that take the events of one entity one at a time, in the order of acceptance.

    ingest ── entity of the body ──► event row ──► message group ──► FIFO lane

SQS hands out nothing of a group of which a message is in flight, and a serial run's message stays
until the run is settled: that is the order. What a group is named by is known without the body
ever after, so that duplicates, the reconciler and replay send into the right one.
"""

from collections.abc import Iterable
from hashlib import sha256

from webhook_inbox.domain.json_path import at, parse
from webhook_inbox.domain.manifest import HandlerSpec
from webhook_inbox.ledger.schema import ID_LIMIT


def entities_of(specs: Iterable[HandlerSpec], body: bytes) -> dict[str, str]:
    """Returns what each serial handler's run is in order with, by handler.

    A handler whose path leads to nothing in this body is left out: its run is in order with
    nothing, and dies of it. The body is parsed only where there is a serial handler.
    """
    serial = [spec for spec in specs if spec.serial]
    if not serial:
        return {}
    try:
        document = parse(body)
    except ValueError:
        return {}
    found = {spec.name: _entity(document, spec) for spec in serial}
    return {name: entity for name, entity in found.items() if entity}


def missing(spec: HandlerSpec) -> str:
    """Returns why a run that is in order with nothing cannot be done."""
    path = spec.order.entity if spec.order else ""
    return (
        f"the body has no text or whole number at {path!r}, by which {spec.name} takes events in"
        " order; mend the path in the handler's `order`, or narrow its types"
    )


def _entity(document: object, spec: HandlerSpec) -> str:
    found = at(document, spec.order.entity) if spec.order else None
    if isinstance(found, int) and not isinstance(found, bool):
        return _storable(str(found))
    return _storable(found) if isinstance(found, str) else ""


def _storable(text: str) -> str:
    """Returns a text as a key can hold it: itself, or its hash if it is long or no Unicode."""
    encoded = text.encode(errors="surrogatepass")
    if len(encoded) <= ID_LIMIT and encoded.decode(errors="replace") == text:
        return text
    return f"sha256:{sha256(encoded).hexdigest()}"
