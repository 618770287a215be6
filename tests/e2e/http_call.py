"""One HTTP request, to the byte."""

import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit, urlunsplit

PATIENCE = 300.0
SENDINGS = 5


@dataclass(frozen=True)
class Answer:
    """An HTTP response, and how often it was asked for; header names are lower-case."""

    status: int
    headers: dict[str, str]
    body: bytes
    sendings: int = 1

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def was_lost(self) -> bool:
        """True if the inbox made no decision, so that a provider would retry.

        ministack may lose a worker (502), and on a slow machine ingest's 2.5 seconds, or the
        front's 30, may not be enough ("unavailable"). A missing secret is another matter.
        """
        if self.status != HTTPStatus.SERVICE_UNAVAILABLE:
            return self.status == HTTPStatus.BAD_GATEWAY
        return bool(self.json.get("status", "unavailable") == "unavailable")


def insist(send: Callable[[], Answer]) -> Answer:
    """Sends, and again what was lost, as providers do."""
    answer = send()
    while answer.was_lost and answer.sendings < SENDINGS:
        answer = replace(send(), sendings=answer.sendings + 1)
    return answer


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
        target = urlunsplit(("", "", parts.path, parts.query, ""))
        connection.request(method, target, body=body, headers=headers or {})
        answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, names, answer.read())
    finally:
        connection.close()
