"""`secrets enrol`: a source waits for its provider's secret, for as long as it is told."""

import getpass
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.support.world import with_source
from tests.webhookctl.commands.stage import Cli, Inbox, client, documents
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.model import Delivery
from webhook_inbox.domain.secret_document import SOURCES
from webhook_inbox.ingest.enrolment import key
from webhook_inbox.ingest.ingest import Ingest
from webhook_inbox.ingest.receipt import Receipt
from webhook_inbox.providers import load

OFFERED = "b537207f20cbfa02357cf448134da559"
ASANA = '\n[sources.asana]\nprovider = "asana"\nsecret = "asana-key"\n'


@pytest.fixture
def asana(cli: Cli, checkout: Path) -> Cli:
    """An inbox with a source whose provider delivers its secret."""
    toml = checkout / "inbox.toml"
    toml.write_text(toml.read_text() + ASANA)
    cli.urls["asana"] = "https://inbox.example/webhooks/asana"
    return cli


def offer(inbox: Inbox, secret: str = OFFERED) -> Receipt:
    """Creates the webhook, as the provider sees it: its first request offers the secret."""
    vault = SecretsManagerStore(client("secretsmanager"), documents().id(SOURCES), keys={})
    ingest = Ingest(
        with_source(SourceSpec("asana", "asana", "asana-key")),
        replace(inbox.ports, secret_store=vault, vault=vault),
        providers=load,
    )
    headers = {"x-hook-secret": secret, "content-type": "application/json"}
    path = "/webhooks/asana"
    return ingest.receive(Delivery("asana", "POST", path, "", headers, b"{}", inbox.now))


def test_what_the_provider_offers_then_becomes_the_secret(asana: Cli, inbox: Inbox) -> None:
    assert offer(inbox).status == 403

    shown = asana("secrets", "enrol", "asana")

    assert shown.code == 0
    assert offer(inbox).status == 200
    assert documents().read(SOURCES) == {"asana-key": (OFFERED,)}
    assert offer(inbox, "another-secret").reason == "contested-enrolment"
    assert documents().read(SOURCES) == {}


@pytest.mark.parametrize(("given", "minutes"), [((), 15), (("--for", "2m"), 2)])
def test_it_waits_for_a_quarter_of_an_hour_or_as_it_is_told(
    asana: Cli, inbox: Inbox, given: tuple[str, ...], minutes: int
) -> None:
    asana("secrets", "enrol", "asana", *given)
    inbox.clock.advance(seconds=minutes * 60)
    assert offer(inbox).reason == "not-enrolling"

    asana("secrets", "enrol", "asana", *given)
    inbox.clock.advance(seconds=minutes * 60 - 1)
    assert offer(inbox).status == 200


def test_it_says_until_when_and_what_to_do_now(asana: Cli, inbox: Inbox) -> None:
    end = (inbox.now + timedelta(minutes=15)).strftime("%Y-%m-%dT%H:%M:%S")

    shown = asana("secrets", "enrol", "asana")

    assert shown.out.startswith(f"asana accepts the first secret offered until {end}")
    assert shown.err == (
        "Now create the webhook at the provider, with the URL"
        " https://inbox.example/webhooks/asana\n"
    )


def test_as_json_it_tells_who_opened_it(asana: Cli, inbox: Inbox) -> None:
    data = asana("secrets", "enrol", "asana", "--for", "1h", "--json").data

    row = inbox.table.get(key("asana"))
    assert row is not None
    assert data == {
        "source": "asana",
        "open_until": data["open_until"],
        "opened_by": row["opened_by"],
        "url": "https://inbox.example/webhooks/asana",
    }
    assert row["opened_by"].startswith("arn:aws:")
    assert row["open_until"] - row["opened_at"] == 3_600_000


def test_the_document_is_there_for_ingest_which_may_not_create_it(asana: Cli) -> None:
    assert asana("secrets", "enrol", "asana").code == 0
    stored = client("secretsmanager").get_secret_value(SecretId=documents().id(SOURCES))
    assert stored["SecretString"] == "{}"


def test_on_this_machine_it_is_opened_by_its_user(asana: Cli, inbox: Inbox) -> None:
    asana.local = True
    asana("secrets", "enrol", "asana")
    row = inbox.table.get(key("asana"))
    assert row is not None
    assert row["opened_by"] == getpass.getuser()


@pytest.mark.parametrize(
    ("span", "words"),
    [("2h", "use at most 1h"), ("61m", "use at most 1h"), ("soon", "is not a duration")],
)
def test_a_span_that_is_too_long_or_none_is_refused(
    asana: Cli, inbox: Inbox, span: str, words: str
) -> None:
    shown = asana("secrets", "enrol", "asana", "--for", span)

    assert shown.code == 2
    assert words in " ".join(shown.err.split())
    assert inbox.table.get(key("asana")) is None


def test_a_source_that_is_not_deployed_is_refused(asana: Cli) -> None:
    del asana.urls["asana"]
    shown = asana("secrets", "enrol", "asana")
    assert shown.code == 2
    assert "no source asana is deployed; known sources: acme, github, stripe" in shown.err


def test_a_provider_that_delivers_no_secret_is_not_waited_for(cli: Cli, inbox: Inbox) -> None:
    shown = cli("secrets", "enrol", "github")

    assert shown.code == 1
    assert "the provider of github (github) delivers no secret" in shown.err
    assert "secrets set github" in shown.err
    assert inbox.table.get(key("github")) is None


def test_without_a_manifest_any_deployed_source_may_be_enrolled(cli: Cli, inbox: Inbox) -> None:
    cli.manifest = None
    cli.urls["asana"] = "https://inbox.example/webhooks/asana"
    assert cli("secrets", "enrol", "asana").code == 0
    assert inbox.table.get(key("asana")) is not None


def test_an_invalid_checkout_does_not_stop_the_command(asana: Cli, checkout: Path) -> None:
    (checkout / "inbox.toml").write_text("[sources.asana")
    assert asana("secrets", "enrol", "asana").code == 0
