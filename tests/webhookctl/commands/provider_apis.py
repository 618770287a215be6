"""The providers' ends, over HTTP: their logs, and sending again when they are asked to."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.unit.support.world import SECRET
from tests.webhookctl.commands.stage import Inbox, Server
from webhook_inbox.client.post import post
from webhook_inbox.domain.provider import Provider, Sample
from webhook_inbox.providers import github, stripe

TOKEN = "-".join(("not", "a", "token", sha256(b"only a test").hexdigest()[:8]))


@dataclass(frozen=True)
class Asked:
    """A request that the API was sent."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    form: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Said:
    """Answers as the API does."""

    status: int
    data: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        if isinstance(self.data, bytes):
            return self.data
        return b"" if self.data is None else json.dumps(self.data).encode()


class ProviderApi(ABC):
    """The behaviour that both APIs share.

    `instead` is what the next requests are answered, whatever they ask; None answers one as
    usual. `page` is the most entries that a page holds.
    """

    provider: Provider
    source: str

    def __init__(self, inbox: Inbox, address: str) -> None:
        self.inbox = inbox
        self.address = f"{address}/webhooks/{self.source}"
        self.page = 100
        self.instead: list[Said | None] = []
        self.asked: list[Asked] = []

    def answer(self, asked: Asked) -> Said:
        self.asked.append(asked)
        said = self.instead.pop(0) if self.instead else None
        if said is not None:
            return said
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return Said(401, {"message": f"Bad credentials {asked.headers['authorization']}"})
        return self.respond(asked)

    @abstractmethod
    def respond(self, asked: Asked) -> Said:
        """Answers an authorised request."""

    def times(self, method: str) -> int:
        return sum(asked.method == method for asked in self.asked)

    def send(self, event_id: str, type_: str, body: bytes) -> int:
        """Sends a delivery, signed now, and returns what it is answered."""
        sample = Sample(event_id, type_, body)
        headers = self.provider.sign(sample, SECRET, self.inbox.now)
        return post(self.address, body, headers).status


class GitHub(ProviderApi):
    """The deliveries of one webhook; a lost one is answered 503 by what stands before the inbox."""

    provider = github.PROVIDER
    source = "github"

    def __init__(self, inbox: Inbox, address: str, hook: str = "/repos/octo/app/hooks/7") -> None:
        super().__init__(inbox, address)
        self.hook = hook
        self.log: list[dict[str, Any]] = []
        self.sent: dict[str, tuple[str, bytes]] = {}

    def deliver(self, guid: str, type_: str = "issues.opened", *, lost: bool = False) -> None:
        body = json.dumps({"action": type_.partition(".")[2], "guid": guid}).encode()
        self.sent[guid] = (type_, body)
        self._attempt(guid, lost=lost)

    def respond(self, asked: Asked) -> Said:
        deliveries = f"{self.hook}/deliveries"
        if asked.method == "GET" and asked.path == deliveries:
            return self._list(asked.query)
        number = asked.path.removeprefix(f"{deliveries}/").removesuffix("/attempts")
        for entry in self.log:
            if asked.method == "POST" and number == str(entry["id"]):
                self._attempt(entry["guid"], again=True)
                return Said(202, {})
        return Said(404, {"message": "Not Found"})

    def _attempt(self, guid: str, *, lost: bool = False, again: bool = False) -> None:
        type_, body = self.sent[guid]
        status = 503 if lost else self.send(guid, type_, body)
        event, _, action = type_.partition(".")
        entry = {
            "id": 12345678 + len(self.log),
            "guid": guid,
            "delivered_at": f"{self.inbox.now:%Y-%m-%dT%H:%M:%SZ}",
            "redelivery": again,
            "status": "OK" if status < 300 else "Service Unavailable",
            "status_code": status,
            "event": event,
            "action": action or None,
        }
        self.log.insert(0, entry)

    def _list(self, query: dict[str, str]) -> Said:
        start = int(query.get("cursor", "v1_0").removeprefix("v1_"))
        size = min(self.page, int(query["per_page"]))
        more = start + size < len(self.log)
        there = f"<https://elsewhere.example{self.hook}?cursor=v1_{start + size}>"
        link = {"link": f'{there}; rel="next"'} if more else {}
        return Said(200, self.log[start : start + size], link)


class Stripe(ProviderApi):
    """The events of an account, and one webhook endpoint."""

    provider = stripe.PROVIDER
    source = "stripe"

    def __init__(self, inbox: Inbox, address: str) -> None:
        super().__init__(inbox, address)
        self.enabled = ["*"]
        self.events: list[dict[str, Any]] = []

    def happen(self, event_id: str, type_: str = "invoice.paid", *, lost: bool = False) -> None:
        created = int(self.inbox.now.timestamp())
        event = {"id": event_id, "object": "event", "type": type_, "created": created}
        self.events.insert(0, event)
        if not lost:
            self._send(event)

    def respond(self, asked: Asked) -> Said:
        if asked.path == "/v1/webhook_endpoints/we_1":
            return Said(200, {"id": "we_1", "enabled_events": self.enabled})
        if asked.path == "/v1/events":
            return self._list(asked.query)
        event_id = asked.path.removeprefix("/v1/events/").removesuffix("/retry")
        for event in self.events:
            if asked.form == {"webhook_endpoint": "we_1"} and event["id"] == event_id:
                self._send(event)
                return Said(200, event)
        return Said(404, {"error": {"message": f"No such notification: '{event_id}'"}})

    def _send(self, event: dict[str, Any]) -> None:
        # Not as the list has it: an endpoint's own API version renders it.
        body = json.dumps({"api_version": "2026-10-28", **event}).encode()
        self.send(event["id"], event["type"], body)

    def _list(self, query: dict[str, str]) -> Said:
        low, high = int(query["created[gte]"]), int(query["created[lte]"])
        inside = [event for event in self.events if low <= event["created"] <= high]
        ids = [event["id"] for event in inside]
        start = ids.index(query["starting_after"]) + 1 if "starting_after" in query else 0
        size = min(self.page, int(query["limit"]))
        data = inside[start : start + size]
        return Said(200, {"object": "list", "data": data, "has_more": start + size < len(inside)})


@contextmanager
def answering(api: ProviderApi) -> Iterator[str]:
    """Serves an API and yields its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            query, form = (
                {name: values[0] for name, values in parse_qs(text).items()}
                for text in (parts.query, body)
            )
            headers = {name.lower(): value for name, value in self.headers.items()}
            said = api.answer(Asked(self.command, parts.path, query, headers, form))
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(said.body)))
            self.end_headers()
            self.wfile.write(said.body)

        def log_message(self, *_: object) -> None: ...

    server = Server(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def stamp(moment: datetime) -> str:
    """Returns epoch seconds, as a header of a rate limit has them."""
    return str(int(moment.timestamp()))
