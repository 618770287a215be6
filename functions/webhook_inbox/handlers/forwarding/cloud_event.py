"""Encodes an event as a CloudEvent in structured JSON.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
"""

import json
from base64 import b64encode
from datetime import UTC, datetime
from typing import Final

from webhook_inbox.domain.trace import Trace
from webhook_inbox.handlers.event import Event

SPEC_VERSION: Final = "1.0"
JSON: Final = "application/json"


def cloud_event(event: Event, *, source: str) -> str:
    """Returns the CloudEvent of an event, the same text in every attempt.

    A JSON body is copied unchanged to `data`; any other body is in `data_base64`.

    Args:
        event: the event.
        source: the CloudEvent's `source`; with the event's id it identifies duplicates.
    """
    content_type = event.headers.get("content-type", JSON)
    attributes = {
        "specversion": SPEC_VERSION,
        "id": event.id,
        "source": source,
        "type": event.type or "unknown",
        "time": rfc3339(event.occurred_at or event.received_at),
        "datacontenttype": content_type,
        # The trace of the event and not of an attempt, so that the text stays the same.
        "traceparent": _trace(event).traceparent,
    }
    data = json_text(event.body) if _says_json(content_type) else None
    if data is None:
        return json.dumps({**attributes, "data_base64": b64encode(event.body).decode()})
    return f'{json.dumps(attributes)[:-1]}, "data": {data}}}'


def json_text(body: bytes) -> str | None:
    """Returns a body as JSON text, or None if it is not strict JSON."""
    try:
        text = body.decode()
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return text


def rfc3339(moment: datetime) -> str:
    """Returns a time in RFC 3339 format, in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _trace(event: Event) -> Trace:
    return Trace.of(event.headers, source=event.source, event_id=event.id)


def _says_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == JSON or media_type.endswith("+json")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")  # although Python's parser accepts it
