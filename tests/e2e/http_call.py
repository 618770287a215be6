"""One HTTP request, to the byte."""

import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tests.waiting import DEADLINE, eventually


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
    def was_accepted(self) -> bool:
        """True if the inbox stored the event at this sending, or at one whose answer was lost."""
        again = self.status == HTTPStatus.OK and self.sendings > 1
        return self.status == HTTPStatus.ACCEPTED or again

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
    answers: list[Answer] = []

    def is_decided() -> bool:
        answers.append(send())
        return not answers[-1].was_lost

    eventually(is_decided, what=lambda: f"a decision, not {answers[-1]}")
    return replace(answers[-1], sendings=len(answers))


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
        HTTPSConnection(host, parts.port, timeout=DEADLINE, context=trust)
        if parts.scheme == "https"
        else HTTPConnection(host, parts.port, timeout=DEADLINE)
    )
    try:
        target = urlunsplit(("", "", parts.path, parts.query, ""))
        connection.request(method, target, body=body, headers=headers or {})
        answer = connection.getresponse()
        names = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, names, answer.read())
    finally:
        connection.close()
