"""Answers as the journal keeps them: what a repetition is given instead of calling again."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx

from webhook_inbox.domain.errors import Permanent

# As JSON; an effect's result may have 300 KB (effects/results.py).
BODY_LIMIT: Final = 256 * 1024
# What handlers read, and support asks for. Cookies and the like are secrets, and stay out.
HEADERS: Final = (
    "cf-ray",
    "content-disposition",
    "content-language",
    "content-type",
    "etag",
    "idempotency-replayed",
    "idempotent-replayed",
    "last-modified",
    "link",
    "location",
    "operation-location",
    "request-id",
    "x-amzn-requestid",
    "x-correlation-id",
    "x-github-request-id",
    "x-hubspot-correlation-id",
    "x-ms-request-id",
    "x-request-id",
)


def to_record(response: httpx.Response, body: bytes | None) -> dict[str, Any]:
    """Returns an answer as JSON data; `body` is None for one that is too large to be kept."""
    headers = {name: response.headers[name] for name in HEADERS if name in response.headers}
    return {"status": response.status_code, "headers": headers, **_body(body)}


def from_record(record: Mapping[str, Any], request: httpx.Request) -> httpx.Response:
    """Returns the recorded answer, the same in the first attempt and in every later one."""
    status, headers = record["status"], record["headers"]
    if "base64" in record:
        content = b64decode(record["base64"])
    elif "text" in record:
        content = record["text"].encode()
    else:
        unread = httpx.ByteStream(b"")
        return BodilessResponse(status, headers=headers, stream=unread, request=request)
    return httpx.Response(status, headers=headers, content=content, request=request)


class BodilessResponse(httpx.Response):
    """An answer whose body was too large to be recorded: reading it is a permanent failure."""

    @property
    def content(self) -> bytes:
        """Raises `Permanent`."""
        return self.read()

    def iter_raw(self, chunk_size: int | None = None) -> Iterator[bytes]:  # noqa: ARG002 - httpx's
        """Raises `Permanent`."""
        raise Permanent(
            f"the answer's body has more than {BODY_LIMIT // 1024} KB, so it was not recorded:"
            " do not read it, ask the destination for less, or fetch it with a GET"
        )


def _body(body: bytes | None) -> dict[str, str]:
    if body is None:
        return {}
    try:
        text = {"text": body.decode()}
    except UnicodeDecodeError:
        text = {"base64": b64encode(body).decode()}
    # Control characters take six in JSON.
    return text if len(json.dumps(text, ensure_ascii=False).encode()) <= BODY_LIMIT else {}
