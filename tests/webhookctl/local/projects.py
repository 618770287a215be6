"""A small project: two sources, one handler module, an app that embeds the inbox."""

import hashlib
import hmac
import json
import uuid
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.waiting import DEADLINE, eventually

INBOX = """
[sources.github]
provider = "github"

[sources.billing]
provider = "standard-webhooks"

[destinations.sink]
base_url = "sink"

[approvers.finance]
people = { ann = "sink:/ann", bob = "sink:/bob" }
"""

NOTES = """
import json
import urllib.request

from webhook_inbox import Approval, Router

github = Router("github")
VERSION = "first"


@github.on("issues.opened", backoff="fast", max_attempts=2)
def note(event, ctx):
    title = event.json()["issue"]["title"]
    print(f"taking {title}")
    if title == "broken":
        raise RuntimeError("the handler's own words")
    if title == "refund":
        ctx.effect(
            "refund",
            lambda: ctx.http("sink").post("/refunds", json={"refunded": title}).json(),
            args={"title": title},
            approve=Approval(by="finance", count=2),
        )
        return
    request = urllib.request.Request(
        ctx.destination("sink").base_url + "/notes",
        data=json.dumps({"title": title, "version": VERSION}).encode(),
        headers={"Idempotency-Key": ctx.idempotency_key("note")},
    )
    urllib.request.urlopen(request, timeout=50).read()
"""

APP = """
import os

from aws_cdk import App

from stacks.inbox_stack import InboxStack

app = App(analytics_reporting=False, outdir=os.environ["CDK_OUTDIR"])
InboxStack(app)
app.synth()
"""

# ministack may lose a worker, and on a slow machine ingest's 2.5 seconds may be too short.
SENT_AGAIN = frozenset({502, 503})


def write_functions(directory: Path) -> Path:
    """Writes `inbox.toml` and `handlers/`."""
    handlers = directory / "handlers"
    handlers.mkdir(parents=True)
    (handlers / "__init__.py").write_text('MODULES = ("notes",)\n')
    (handlers / "notes.py").write_text(NOTES)
    (directory / "inbox.toml").write_text(INBOX)
    return directory


def write_project(directory: Path) -> Path:
    """Writes a repository that `webhookctl dev` can run."""
    write_functions(directory / "functions")
    (directory / "app.py").write_text(APP)
    return directory


def issue(title: str) -> bytes:
    """Returns the body of GitHub's event for a new issue."""
    return json.dumps({"action": "opened", "issue": {"number": 1, "title": title}}).encode()


def deliver(
    url: str, secret: str, title: str, *, delivery: str | None = None
) -> tuple[int, dict[str, Any]]:
    """Posts a signed GitHub event, and again until it is accepted, as providers do."""
    return post(*_signed(url, secret, title, delivery))


def accepted(url: str, secret: str, title: str, *, delivery: str | None = None) -> bool:
    """Delivers a new event; returns whether the inbox accepted it.

    An event that got a 502 or 503 may be stored: the next sending is then a duplicate.
    """
    *earlier, last = _posted(*_signed(url, secret, title, delivery))
    return last[0] == HTTPStatus.ACCEPTED or (bool(earlier) and last[0] == HTTPStatus.OK)


def _signed(
    url: str, secret: str, title: str, delivery: str | None
) -> tuple[str, bytes, dict[str, str]]:
    body = issue(title)
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "issues",
        "X-GitHub-Delivery": delivery or str(uuid.uuid4()),
        "X-Hub-Signature-256": f"sha256={signature}",
    }
    return f"{url}/webhooks/github", body, headers


def post(url: str, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """Posts, and again while the inbox asks for that."""
    return _posted(url, body, headers)[-1]


def _posted(url: str, body: bytes, headers: dict[str, str] | None) -> list[tuple[int, Any]]:
    """Returns the answers; only the last is none of SENT_AGAIN."""
    answers: list[tuple[int, Any]] = []

    def is_decided() -> bool:
        answers.append(call(url, "POST", body, headers))
        return answers[-1][0] not in SENT_AGAIN

    eventually(is_decided, what=lambda: f"a decision on {url}, not {answers[-1]}")
    return answers


def call(
    url: str, method: str = "GET", body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Calls a JSON endpoint."""
    parts = urlsplit(url)
    connection = HTTPConnection(str(parts.hostname), parts.port, timeout=DEADLINE)
    try:
        connection.request(method, parts.path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def effects(sink_url: str) -> list[dict[str, Any]]:
    """Returns the bodies of the sink's effects."""
    return [effect["body"] for effect in call(f"{sink_url}/effects")[1].values()]
