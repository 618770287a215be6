"""Sources whose callers are your own, from the command line: sent to, explained, looked at."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.providers.tokens import SHARED, pem, private, private_pem, secret
from tests.unit.support.world import handler
from tests.webhookctl.commands.stage import Cli, Inbox, documents
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.domain.secret_document import SOURCES
from webhookctl.local.dev_secrets import FILE, SIGNING

TABLES = """
[sources.agents]
auth = "jwt"
issuer = "https://agents.example"
audience = "inbox"
body_claim = "body_sha256"
event_id = { claim = "jti" }
event_type = { json = "type" }

[sources.shared]
auth = "jwt"
issuer = "https://agents.example"
audience = "inbox"
algorithms = ["HS256"]
event_id = { header = "X-Event-Id" }

[sources.keys]
auth = "api-key"
event_id = { header = "X-Event-Id" }

[sources.passwords]
auth = "basic"
event_id = { header = "X-Event-Id" }
"""
SECRETS = {
    "agents": secret(planner=pem(private("planner"))),
    "shared": secret(planner=SHARED),
    "keys": secret(planner="planner-key", buyer="buyer-key"),
    "passwords": "p:planner-key",
}
AGENTS = {"agents": "planner", "shared": "planner", "keys": "planner", "passwords": None}
# The private key that signs where the secret only verifies.
PRIVATE = secret(planner=private_pem(private("planner")))


@pytest.fixture(autouse=True)
def called(inbox: Inbox, cli: Cli, checkout: Path, served: str) -> None:
    """Adds the sources to the checkout and to the inbox that runs."""
    file = checkout / "inbox.toml"
    file.write_text(file.read_text() + TABLES)
    sources = inbox_toml.load(file, stage="local").sources
    acting = {f"{name}.act": handler(f"{name}.act", source=name) for name in SECRETS}
    manifest = inbox.manifest
    inbox.deploy(replace(manifest, sources=sources, handlers={**manifest.handlers, **acting}))
    for name, value in SECRETS.items():
        inbox.vault.rotate(name, value)
        documents().set(SOURCES, name, value)
        cli.urls = {**cli.urls, name: f"{served}/webhooks/{name}"}


@pytest.fixture
def task() -> str:
    Path("task.completed__report.json").write_text('{"type": "task.completed"}')
    return "task.completed__report.json"


def signing(source: str) -> tuple[str, ...]:
    return ("--secret", PRIVATE) if source == "agents" else ()


@pytest.mark.parametrize("source", SECRETS)
def test_a_file_is_sent_as_the_first_agent_and_accepted(
    cli: Cli, inbox: Inbox, task: str, source: str
) -> None:
    sent = cli("send", task, "--source", source, *signing(source), "--json").data
    assert (sent["http_status"], sent["answer"]["status"]) == (202, "accepted")

    seen = cli("inbox", "inspect", sent["event_id"], "--source", source, "--json").data
    assert (seen["agent"], seen["source"]) == (AGENTS[source], source)
    shown = cli("inbox", "inspect", sent["event_id"], "--source", source).out
    assert (f", agent {AGENTS[source]}" in shown) == (AGENTS[source] is not None)


def test_public_keys_sign_nothing_and_the_remedy_is_told(cli: Cli, task: str) -> None:
    shown = cli("send", task, "--source", "agents")
    assert (shown.code, shown.out) == (1, "")
    assert "the secret holds no key that signs RS256" in shown.err
    assert "give an agent's private key" in shown.err
    assert "BEGIN PUBLIC" not in shown.err


def test_the_local_inbox_signs_with_the_private_key_it_keeps(
    cli: Cli, task: str, checkout: Path
) -> None:
    state = checkout.parent / ".local"
    state.mkdir()
    (state / FILE).write_text(json.dumps({"agents" + SIGNING: PRIVATE}))
    cli.local = True
    shown = cli("send", task, "--source", "agents", "--json")
    assert shown.data["answer"]["status"] == "accepted"


@pytest.mark.parametrize("source", ["shared", "keys", "passwords"])
def test_a_file_that_is_sent_again_is_known_by_its_body_unless_it_is_to_be_new(
    cli: Cli, task: str, source: str
) -> None:
    answers = [
        cli("send", task, "--source", source, *more, "--json").data["answer"]["status"]
        for more in ((), (), ("--new-id",))
    ]
    assert answers == ["accepted", "held", "accepted"]


@pytest.mark.parametrize(
    ("header", "code", "words"),
    [
        ("X-Api-Key: planner-key", 0, "valid: event evt-1"),
        ("X-Api-Key: of-nobody", 1, "invalid-signature: no agent has this credential"),
        ("X-Other: planner-key", 1, "missing-signature: no x-api-key header"),
    ],
)
def test_a_key_is_explained(cli: Cli, task: str, header: str, code: int, words: str) -> None:
    Path("headers.txt").write_text(f"{header}\nX-Event-Id: evt-1\n")
    Path("secret.txt").write_text(SECRETS["keys"])
    given = ("--headers", "headers.txt", "--body", task, "--secret-file", "secret.txt")
    shown = cli("verify", *given, "--source", "keys")

    assert shown.code == code
    assert words in shown.out
    assert "published key" not in shown.out
    assert "planner-key" not in shown.out + shown.err


def test_a_provider_that_is_all_settings_needs_its_source(cli: Cli, task: str) -> None:
    Path("headers.txt").write_text("X-Api-Key: x\n")
    Path("secret.txt").write_text("x")
    given = ("--headers", "headers.txt", "--body", task, "--secret-file", "secret.txt")
    for provider, words in (("api-key", "event_id: missing"), ("jwt", "issuer: missing")):
        shown = cli("verify", *given, "--provider", provider)
        assert shown.code == 1
        assert words in shown.err


def test_sources_are_checked(cli: Cli) -> None:
    shown = cli("check")
    assert shown.code == 0
    for name, scheme in (("agents", "jwt"), ("keys", "api-key"), ("passwords", "basic")):
        assert [name, scheme] in [line.split()[:2] for line in shown.out.splitlines()]
