"""`listen`: copies events to an address on this machine."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from socketserver import StreamRequestHandler, TCPServer
from threading import Thread

import pytest

from tests.webhookctl.commands.live import Waits
from tests.webhookctl.commands.stage import Cli, Inbox, Result, serving
from webhook_inbox import providers
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery


class App:
    """An application on a laptop."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []

    def __call__(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        self.requests.append((headers, body))
        return self.answers.pop(0) if self.answers else 200, ""

    @property
    def ids(self) -> list[str]:
        return [headers["inbox-event-id"] for headers, _ in self.requests]


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def address(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with serving(app) as url:
        yield f"{url}/hooks"


def listen(
    cli: Cli,
    inbox: Inbox,
    address: str,
    *steps: Callable[[], object],
    options: tuple[str, ...] = (),
) -> Result:
    cli.clock = Waits(inbox, steps)
    shown = cli("listen", "--forward", address, *options)
    assert shown.code == 130, shown.err
    return shown


@pytest.mark.moto
def test_each_event_is_copied_once_with_its_body_and_headers(
    cli: Cli, inbox: Inbox, app: App, address: str
) -> None:
    listen(cli, inbox, address, lambda: inbox.deliver("evt-1", body=b"\xff\x00"), lambda: None)
    [(headers, body)] = app.requests
    assert body == b"\xff\x00"
    named = {name: headers[name] for name in headers if name.startswith("inbox-")}
    assert named["inbox-event-id"] == "evt-1"
    assert (named["inbox-source"], named["inbox-event-type"]) == ("acme", "paid")
    assert headers["x-acme-id"] == "evt-1"
    assert "x-acme-signature" not in headers


def test_the_signature_is_that_of_standard_webhooks(
    cli: Cli, inbox: Inbox, app: App, address: str
) -> None:
    shown = listen(cli, inbox, address, lambda: inbox.deliver("evt-1"))
    secret = shown.err.partition("SIGNING_SECRET=")[2].split()[0].rstrip(".")
    [(headers, body)] = app.requests
    provider = providers.load(SourceSpec("it", "standard-webhooks", "it"))
    provider.verify(Delivery("it", "POST", "/", "", headers, body, inbox.now), (secret,))
    again = listen(cli, inbox, address)
    assert secret in again.err


def test_it_changes_no_row(cli: Cli, inbox: Inbox, address: str) -> None:
    inbox.deliver("evt-1")
    rows = sorted(json.dumps(row, default=str, sort_keys=True) for row in inbox.table)
    listen(cli, inbox, address, lambda: None, options=("--since", "1h"))
    assert rows == sorted(json.dumps(row, default=str, sort_keys=True) for row in inbox.table)


def test_it_continues_where_it_ended(cli: Cli, inbox: Inbox, app: App, address: str) -> None:
    inbox.deliver("evt-before")
    inbox.clock.advance(minutes=1)
    listen(cli, inbox, address, lambda: inbox.deliver("evt-1"), lambda: None)
    inbox.clock.advance(hours=5)
    inbox.deliver("evt-2")
    inbox.clock.advance(hours=5)
    shown = listen(cli, inbox, address, lambda: inbox.deliver("evt-3"))
    assert app.ids == ["evt-1", "evt-2", "evt-3"]
    ready, *forwarded = shown.out.splitlines()
    assert ready.startswith("ready: ")
    assert [line.split()[-1] for line in forwarded] == ["evt-2", "evt-3"]
    assert "Continues behind " in shown.err
    listen(cli, inbox, address, options=("--since", "30d"))
    assert app.ids[3:] == ["evt-before", "evt-1", "evt-2", "evt-3"]


def test_a_failed_copy_is_tried_three_times_and_blocks_none(
    cli: Cli, inbox: Inbox, app: App, address: str
) -> None:
    app.answers = [500, 200, 500, 500]
    steps = [lambda: inbox.deliver("evt-1") and inbox.deliver("evt-2"), *[lambda: None] * 8]
    shown = listen(cli, inbox, address, *steps, options=("--json",))
    assert app.ids == ["evt-1", "evt-2", "evt-1", "evt-1"]
    told = [(e["event_id"], e["outcome"]) for e in shown.objects if "outcome" in e]
    assert told == [
        ("evt-1", "failed"),
        ("evt-2", "forwarded"),
        ("evt-1", "failed"),
        ("evt-1", "given up"),
    ]
    assert (
        shown.objects[2]["error"] == "answered 500" or shown.objects[1]["error"] == "answered 500"
    )


def test_a_failed_copy_survives_a_restart(cli: Cli, inbox: Inbox, app: App, address: str) -> None:
    app.answers = [500]
    listen(cli, inbox, address, lambda: inbox.deliver("evt-1"))
    listen(cli, inbox, address)
    assert [headers["inbox-attempt"] for headers, _ in app.requests] == ["1", "2"]


def test_an_outage_of_the_ledger_loses_and_repeats_nothing(
    cli: Cli, inbox: Inbox, app: App, address: str
) -> None:
    def outage() -> None:
        inbox.deliver("evt-1")
        inbox.deliver("evt-2")
        inbox.plan.fail("Query", skip=5)

    shown = listen(cli, inbox, address, outage, lambda: None, lambda: None)
    assert app.ids == ["evt-1", "evt-2"]
    assert "Stale since" in shown.err


def test_readiness_is_one_line(cli: Cli, inbox: Inbox, address: str) -> None:
    shown = listen(cli, inbox, address, lambda: None)
    assert shown.out == f"ready: WebhookInbox-test to {address}\n"
    [ready] = listen(cli, inbox, address, options=("--json",)).objects
    assert ready == {"ready": True, "from": "WebhookInbox-test", "to": address}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://shop.example/hooks", "shop.example is not this machine"),
        ("http://10.0.0.7:3000", "10.0.0.7 is not this machine"),
        ("http://localhost.evil.example", "is not this machine"),
        ("ftp://localhost", "is no address"),
        ("localhost:3000", "is no address"),
    ],
)
def test_payloads_stay_on_this_machine(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, words: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    refused = cli("listen", "--forward", url)
    assert (refused.code, words in refused.err) == (1, True)


def test_the_file_is_of_its_user_only(cli: Cli, inbox: Inbox, address: str, tmp_path: Path) -> None:
    listen(cli, inbox, address)
    [file] = (tmp_path / "state" / "webhookctl").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("broken")
    listen(cli, inbox, address)


def test_a_redirect_is_not_followed(cli: Cli, inbox: Inbox, app: App, address: str) -> None:
    app.answers = [302]
    shown = listen(cli, inbox, address, lambda: inbox.deliver("evt-1"))
    assert "answered 302" in shown.out
    assert len(app.requests) == 1


class NoHttp(StreamRequestHandler):
    """Answers a request as Redis does."""

    def handle(self) -> None:
        self.rfile.readline()
        self.wfile.write(b"-ERR unknown command\r\n")


def test_a_port_that_speaks_no_http_is_a_failed_copy(
    cli: Cli, inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with TCPServer(("127.0.0.1", 0), NoHttp) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        shown = listen(cli, inbox, url, lambda: inbox.deliver("evt-1"))
        server.shutdown()
    assert "evt-1  attempt 1: no answer: " in shown.out


@pytest.mark.parametrize("secret", ["whsec_a", "whsec_", "no base64!"])
def test_a_secret_of_another_form_is_refused_without_its_text(
    cli: Cli, inbox: Inbox, address: str, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("KEY", secret)
    cli.clock = Waits(inbox, ())
    shown = cli("listen", "--forward", address, "--secret-env", "KEY")
    assert shown.code == 1
    assert "whsec_ and a key in base64" in shown.err
    assert secret not in shown.err.replace("whsec_ and a key", "")
    good = "whsec_" + b64encode(b"k" * 24).decode()
    monkeypatch.setenv("KEY", good)
    listen(cli, inbox, address, options=("--secret-env", "KEY"))
