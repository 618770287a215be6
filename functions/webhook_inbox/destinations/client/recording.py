"""Names, arguments and recorded responses of calls in the journal."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

import httpx

from webhook_inbox.destinations.client.body import too_large
from webhook_inbox.destinations.client.exchange import ReadResponse
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.domain.manifest import DestinationSpec

# As JSON; the result of an effect is limited to 300 KB (effects/journal.py).
BODY_LIMIT: Final = 256 * 1024
# The extension of a response without a body that says why.
UNREAD: Final = "webhook_inbox.unread"
# The recorded headers: handlers read them, or support asks for them. Cookies are secrets.
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


def to_record(answered: ReadResponse) -> dict[str, Any]:
    """Returns a response as JSON data, without a body that is unread or too large to record."""
    response = answered.response
    headers = {name: response.headers[name] for name in HEADERS if name in response.headers}
    unread = {"unread": answered.unread} if answered.unread else {}
    return {"status": response.status_code, "headers": headers, **_body(answered.body), **unread}


def from_record(record: Mapping[str, Any], request: httpx.Request) -> httpx.Response:
    """Returns the recorded response, the same in every attempt."""
    status, headers = record["status"], record["headers"]
    if "base64" in record:
        content = b64decode(record["base64"])
    elif "text" in record:
        content = record["text"].encode()
    else:
        why = {UNREAD: record.get("unread") or str(too_large(BODY_LIMIT))}
        empty = httpx.ByteStream(b"")
        return BodilessResponse(
            status, headers=headers, stream=empty, request=request, extensions=why
        )
    return httpx.Response(status, headers=headers, content=content, request=request)


class BodilessResponse(httpx.Response):
    """A response that was recorded without its body: reading it is a permanent failure."""

    @property
    def content(self) -> bytes:
        """Raises `Permanent`."""
        return self.read()

    def iter_raw(self, chunk_size: int | None = None) -> Iterator[bytes]:  # noqa: ARG002 - httpx's
        """Raises `Permanent`."""
        why = self.extensions[UNREAD]
        raise Permanent(f"the response was recorded without its body, which {why}")


def _body(body: bytes | None) -> dict[str, str]:
    if body is None:
        return {}
    try:
        text = {"text": body.decode()}
    except UnicodeDecodeError:
        text = {"base64": b64encode(body).decode()}
    # A control character takes six bytes in JSON.
    return text if len(json.dumps(text, ensure_ascii=False).encode()) <= BODY_LIMIT else {}


NAME_LIMIT: Final = 128


def effect_name(spec: DestinationSpec, request: httpx.Request) -> str:
    """Returns a name such as "POST /notes": short, and printable ASCII."""
    name = f"{request.method} {_path(spec, request)}"
    if len(name) <= NAME_LIMIT:
        return name
    return f"{request.method} {sha256(name.encode()).hexdigest()}"


def arguments(spec: DestinationSpec, request: httpx.Request) -> dict[str, str]:
    """Returns the arguments that identify a call across attempts."""
    found = {
        "method": request.method,
        "path": _path(spec, request),
        "params": request.url.query.decode(),
        "body": _body_argument(request),
    }
    key = request.headers.get(spec.key_header, "") if spec.key_header else ""
    return {**found, "key": key} if key else found


def _path(spec: DestinationSpec, request: httpx.Request) -> str:
    """Returns the path below the base URL, as it is sent."""
    path = request.url.raw_path.partition(b"?")[0].decode()
    base = httpx.URL(spec.base_url).raw_path.decode().rstrip("/") + "/"
    return f"/{path.removeprefix(base)}" if path.startswith(base) else path


def _body_argument(request: httpx.Request) -> str:
    """Returns the JSON of a body with sorted keys, or its hash without a random boundary."""
    body, type_ = request.read(), request.headers.get("content-type", "")
    if not body:
        return ""
    if type_.startswith("application/json"):
        try:
            return json.dumps(json.loads(body), sort_keys=True)
        except (ValueError, RecursionError):
            pass
    boundary = type_.partition("boundary=")[2] if type_.startswith("multipart/") else ""
    return sha256(body.replace(boundary.encode(), b"") if boundary else body).hexdigest()
