"""What a call is named in the journal, and what a repetition has to have in common with it."""

import json
from hashlib import sha256
from typing import Final

import httpx

from webhook_inbox.domain.manifest import DestinationSpec

NAME_LIMIT: Final = 128


def effect_name(spec: DestinationSpec, request: httpx.Request) -> str:
    """Returns "POST /notes" and the like: an effect's name is short, and printable ASCII."""
    name = f"{request.method} {_path(spec, request)}"
    if len(name) <= NAME_LIMIT:
        return name
    return f"{request.method} {sha256(name.encode()).hexdigest()}"


def arguments(spec: DestinationSpec, request: httpx.Request) -> dict[str, str]:
    """Returns what says whether a call is the same as before."""
    told = {
        "method": request.method,
        "path": _path(spec, request),
        "params": request.url.query.decode(),
        "body": _body(request),
    }
    key = request.headers.get(spec.key_header, "") if spec.key_header else ""
    return {**told, "key": key} if key else told


def _path(spec: DestinationSpec, request: httpx.Request) -> str:
    """Returns the path below the base URL, as it is sent."""
    path = request.url.raw_path.partition(b"?")[0].decode()
    base = httpx.URL(spec.base_url).raw_path.decode().rstrip("/") + "/"
    return f"/{path.removeprefix(base)}" if path.startswith(base) else path


def _body(request: httpx.Request) -> str:
    """Returns the JSON of a body, its keys in order; or its hash without a random boundary."""
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
