"""A hostile run: no secret, signature or token in any output, row, message or answer (G10).

The body of an accepted event is stored as it came, so no body here has a secret.
"""

import json
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.functions.bundles import build
from tests.functions.handlers.hostile import spellings
from tests.functions.inbox import Inbox
from tests.functions.invocations import http_event
from webhook_inbox import providers
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.provider import Sample
from webhook_inbox.domain.secrets import COMPLETION_KEY, TOKEN_KEY
from webhook_inbox.ledger.payloads import unpack

VAULT = 'vault/+"4711&=%x-ABCdef'
# A status is counted by API Gateway alone; Powertools warns of an invocation without a metric.
pytestmark = pytest.mark.filterwarnings("ignore:No application metrics")
CREDENTIAL = "crm-9f3b2Qz_77/+tokenXY"
SECRETS = {
    "bot": "telegram-5f2e9aQw81",
    "keys": '{"planner": "key-planner-81Zq0Lm"}',
    "people": "ann:pass-word-1977Xq",
    "jwt": "aHMyNTYtc2hhcmVkLWtleS0wMTIzNDU2Nzg5YWJjZGVmWFla",
    "signed": "whsec_c2lnbmluZy1zZWNyZXQtNjZhWjAxcFE=",
    "hub": "docker-hub-token-a81Xz33",
    "vault": VAULT,
    "leaky-api": CREDENTIAL,
    COMPLETION_KEY: "completion-key-73hKq0vB2",
    TOKEN_KEY: "token-key-5Xw0aT9oP3",
}
SOURCES = """
[sources.bot]
provider = "telegram"

[sources.keys]
auth = "api-key"
event_id = { json = "id" }
event_type = { json = "type" }
allow = ["unhandled"]

[sources.people]
auth = "basic"
event_id = { json = "id" }
allow = ["unhandled"]

[sources.jwt]
auth = "jwt"
issuer = "https://issuer.example"
audience = "inbox"
algorithms = ["HS256"]
event_id = { claim = "jti" }
allow = ["unhandled"]

[sources.signed]
provider = "standard-webhooks"
allow = ["unhandled"]

[sources.hub]
provider = "docker-hub"
allow = ["unhandled"]

[destinations.leaky]
base_url = "http://127.0.0.1:PORT"
auth = { bearer = "leaky-api" }
breaker = false
"""
TYPES = (
    "raises", "group", "retried", "refused", "skipped", "held", "effects", "refused-effect",
    "asks", "waits", "logs",
)  # fmt: skip


class Leaky(BaseHTTPRequestHandler):
    """Answers with the credential of the request, in headers, reason and body."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        sent = self.headers.get("authorization", "")
        body = json.dumps({"echo": [sent, *spellings(sent.removeprefix("Bearer "))]}).encode()
        self.send_response(int(self.path.rpartition("/")[2]), "because")
        self.send_header("x-echo", sent)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Writes nothing."""


@pytest.fixture(scope="module")
def leaky() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Leaky)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def built(leaky: int, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    directory = tmp_path_factory.mktemp("hostile") / "functions"
    sources = SOURCES.replace("PORT", str(leaky))
    made = build(directory, sink_url="http://127.0.0.1:9", sources=sources, laboratory=("hostile",))
    return directory, made


class Run:
    """Everything that is sent in a hostile run, and everything that comes out of it."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.forbidden: set[str] = set()
        # The signatures of rejected deliveries, which are kept for their re-verification.
        self.kept: set[str] = set()
        self.answers: list[str] = []
        for name, value in SECRETS.items():
            inbox.account.set_secret(name, value)
            self.forbid(value)
        for part in ("key-planner-81Zq0Lm", "pass-word-1977Xq"):
            self.forbid(part)

    def forbid(self, secret: str) -> None:
        self.forbidden.update(spellings(secret))

    def deliver(self, source: str, content: dict[str, Any], **changes: Any) -> None:
        """Delivers, as its sender and with the changes that an attacker makes."""
        inbox = self.inbox
        provider = providers.load(inbox.manifest.sources[source])
        body = json.dumps(content).encode()
        sample = Sample(str(content.get("id", "evt-1")), str(content.get("type", "")), body)
        sent = provider.send(sample, SECRETS[source], datetime.now(UTC))
        headers = {**sent.headers, "host": "hooks.example", "cookie": "sid=cookie-71Qz0"}
        self.forbid("cookie-71Qz0")
        for name in provider.signature_headers | provider.token_headers:
            value = headers.get(name, "")
            # A signature's time and id are no secrets.
            if len(value) > 20:
                self.forbid(value)
        changed = {**headers, **changes.get("headers", {})}
        for value in changes.get("headers", {}).values():
            self.forbid(value)
        event = http_event(f"/webhooks/{source}", headers=changed, body=changes.get("body", body))
        event["rawQueryString"] = changes.get("query", sent.query)
        if "query" in changes:
            self.forbid(changes["query"].partition("=")[2])
        self.answers.append(inbox.request(event).body)

    def everything(self) -> str:
        """Returns all output, rows with their bodies, objects and messages."""
        inbox, account = self.inbox, self.inbox.account
        inbox.output.read()
        rows = account.rows()
        bodies = [unpack(row, account) for row in rows if "body" in row]
        queued = [account.receive(queue) for queue in (account.queue, account.dead_letters)]
        return repr([rows, bodies, queued, account.objects()]) + inbox.output.text

    def leaks(self) -> list[str]:
        text = self.everything()
        printed = self.inbox.output.text
        return sorted(
            form
            for form in self.forbidden
            if len(form) >= 8 and form in (printed if form in self.kept else text)
        )


@pytest.fixture
def run(inbox: Inbox) -> Run:
    return Run(inbox)


def test_no_secret_is_in_anything_that_a_hostile_run_leaves(run: Run) -> None:
    inbox = run.inbox
    for number, type_ in enumerate(TYPES):
        run.deliver("bot", {"update_id": number, type_: {}})
    for number, path in enumerate(("/200", "/400", "/401", "/429", "/500", "/302")):
        run.deliver("bot", {"update_id": 100 + number, "calls": {}, "path": path})
    for source in ("keys", "people", "jwt", "signed"):
        run.deliver(source, {"id": f"{source}-1", "type": "note"})
        run.deliver(source, {"id": f"{source}-1", "type": "note", "other": 1})
    push = {"push_data": {"pushed_at": 1417566161, "tag": "latest"}}
    run.deliver("hub", {**push, "repository": {"repo_name": "svendowideit/testhook"}})
    attack(run)
    inbox.work()
    inbox.work()
    dead = {"status": ["dead_letter"]}
    for payload in ({**dead, "dry_run": True}, {**dead, "reason": "fixed", "requested_by": "jo"}):
        run.answers.append(json.dumps(inbox.invoke("replay", payload)))
    inbox.work()
    run.answers.append(json.dumps(inbox.invoke("reconciler", {}, remaining=300)))
    complete(run)

    assert len(inbox.account.rows("event#")) > 2 * len(TYPES)
    assert run.leaks() == []
    assert "run replayed" in run.inbox.output.text
    answers = "".join(run.answers)
    assert not [form for form in run.forbidden if len(form) >= 8 and form in answers]


def attack(run: Run) -> None:
    """Sends deliveries whose credentials are wrong, misplaced or malformed."""
    near = {"telegram": "telegram-5f2e9aQw81-forged", "other": "guess-5f2e9aQw81-forged"}
    token = "x-telegram-bot-api-secret-token"
    for value in near.values():
        run.deliver("bot", {"update_id": 900, "logs": {}}, headers={token: value})
    run.deliver("keys", {"id": "k"}, headers={"x-api-key": "key-planner-81Zq0Lm-nearly"})
    run.deliver("keys", {"id": "k"}, headers={"authorization": "Bearer misplaced-4Qx81z"})
    for wrong in ("Basic YW5uOndyb25nLTE5NzdYcQ==", "Bearer pasted-in-81Zq", "Basic ###-81Zq0"):
        run.deliver("people", {"id": "p"}, headers={"authorization": wrong})
    for wrong in ("Bearer a.b.c-jwt-81Zq0Lm", "Bearer " + "eyJhbGciOiJub25lIn0.e30.x81Zq"):
        run.deliver("jwt", {"id": "j"}, headers={"authorization": wrong})
    wrong = "v1,bm90LW91cnMtODFacTBMbQ=="
    run.deliver("signed", {"id": "s"}, headers={"webhook-signature": wrong})
    run.kept.update(spellings(wrong))
    run.deliver("hub", {"id": "h"}, query="token=docker-hub-guess-a81Xz")
    run.deliver("keys", {}, body=b"{not json")
    run.inbox.request(http_event("/webhooks/unknown", headers={"authorization": "to-none-81Zq0"}))
    run.forbid("to-none-81Zq0")


def complete(run: Run) -> None:
    """Reports the end of a job, by its token and by wrong ones; and reads an event's status."""
    tokens = list(sys.modules["handlers.hostile"].TOKENS)
    answered = [json.loads(answer) for answer in run.answers if "status_url" in answer]
    assert tokens
    assert answered
    paths = [f"/completions/{tokens[0]}", f"/completions/{tokens[0]}x"]
    urls = [answer["status_url"] for answer in answered]
    paths += [url.removeprefix("https://hooks.example") for url in (*urls, urls[0] + "x")]
    for path in paths:
        method = "GET" if "/status/" in path else "POST"
        body = b'{"error": "it broke", "retry": true}'
        answer = run.inbox.request(http_event(path, method=method, body=body))
        assert path.rpartition("/")[2] not in answer.body
    secrets = {path.rpartition(".")[2] for path in paths}
    text = run.everything()
    assert not [secret for secret in secrets if secret in text]
