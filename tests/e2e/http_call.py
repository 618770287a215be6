"""One HTTP request, to the byte."""

import json
import ssl
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 60.0


@dataclass(frozen=True)
class Answer:
    """An HTTP response; header names are lower-case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def call(
    url: str,
    method: str = "GET",
    *,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
    trust: ssl.SSLContext | None = None,
) -> Answer:
    """Sends one request on a connection of its own."""
    parts = urlsplit(url)
    host = str(parts.hostname)
    connection = (
        HTTPSConnection(host, parts.port, timeout=PATIENCE, context=trust)
        if parts.scheme == "https"
        else HTTPConnection(host, parts.port, timeout=PATIENCE)
    )
    try:
        connection.request(method, parts.path, body=body, headers=headers or {})
        answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, names, answer.read())
    finally:
        connection.close()
