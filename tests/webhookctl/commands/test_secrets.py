"""`secrets set`: a value goes in and is never seen again."""

import io
from pathlib import Path

import pytest
import typer
from botocore.exceptions import ClientError

from tests.webhookctl.commands.stage import PREFIX, STACK, Cli, client
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore

VALUE = "whsec_a-value-nobody-may-see"


def stored(name: str = "acme") -> str:
    answer = client("secretsmanager").get_secret_value(SecretId=PREFIX + name)
    value: str = answer["SecretString"]
    return value


@pytest.fixture
def _declared(cli: Cli) -> None:
    """The secret as a deployment leaves it: there, and without a value."""
    client("secretsmanager").create_secret(Name=f"{PREFIX}acme")


@pytest.mark.usefixtures("_declared")
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_value_is_standard_input_without_its_last_line_break(cli: Cli, end: str) -> None:
    shown = cli("secrets", "set", "acme", stdin=VALUE + end)
    assert (shown.code, shown.out) == (
        0,
        "Set webhook-inbox/test/acme, which had no value.\n",
    )
    assert stored() == VALUE


@pytest.mark.usefixtures("_declared")
def test_other_white_space_belongs_to_the_value(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin=" a b \n\n")
    assert stored() == " a b \n"


@pytest.mark.usefixtures("_declared")
def test_it_says_when_the_functions_use_it(cli: Cli) -> None:
    assert "within 60 s" in cli("secrets", "set", "acme", stdin=VALUE).err


@pytest.mark.usefixtures("_declared")
def test_as_json(cli: Cli) -> None:
    assert cli("secrets", "set", "acme", "--json", stdin=VALUE).data == {
        "name": "acme",
        "secret": "webhook-inbox/test/acme",
        "created": False,
        "change": "created",
        "seen_within_seconds": 60,
    }


@pytest.mark.usefixtures("_declared")
def test_the_value_before_stays_as_the_previous_one(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin="the-first-value")
    cli("secrets", "set", "acme", stdin=VALUE)
    answer = client("secretsmanager").get_secret_value(
        SecretId=f"{PREFIX}acme", VersionStage="AWSPREVIOUS"
    )
    assert answer["SecretString"] == "the-first-value"


@pytest.mark.usefixtures("_declared")
def test_the_same_value_once_more_changes_nothing_and_ends_no_overlap(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin="the-first-value")
    replaced = cli("secrets", "set", "acme", stdin=VALUE)
    assert replaced.out == (
        "Replaced webhook-inbox/test/acme; the previous value stays valid until the next change.\n"
    )
    again = cli("secrets", "set", "acme", stdin=VALUE)
    assert (again.code, again.out) == (
        0,
        "Unchanged: webhook-inbox/test/acme already has this value.\n",
    )
    assert cli("secrets", "set", "acme", "--json", stdin=VALUE).data["change"] == "unchanged"
    store = SecretsManagerStore(client("secretsmanager"), PREFIX)
    assert store.fetch("acme") == (VALUE, "the-first-value")


@pytest.mark.usefixtures("_declared")
def test_who_may_not_read_it_may_still_set_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(**_: str) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetSecretValue")

    with monkeypatch.context() as patch:
        patch.setattr(client("secretsmanager"), "get_secret_value", denied)
        shown = cli("secrets", "set", "acme", stdin=VALUE)
    assert shown.out.startswith("Set webhook-inbox/test/acme; ")
    assert stored() == VALUE


@pytest.mark.usefixtures("_declared")
@pytest.mark.parametrize("local", [True, False])
def test_a_name_that_nothing_uses_needs_create(cli: Cli, *, local: bool) -> None:
    cli.local = local
    shown = cli("secrets", "set", "acne", stdin=VALUE)
    assert shown.code == 1
    assert shown.err == (
        "webhookctl: no secret acne of a source, destination or handler; known secrets: acme,"
        ' github, stripe; did you mean "acme"? To store it all the same, add --create\n'
    )
    assert cli("secrets", "set", "acne", "--create", "--json", stdin=VALUE).data["created"]


def test_a_secret_that_only_the_checkout_uses_is_known(cli: Cli, checkout: Path) -> None:
    cli.local = True
    assert cli("secrets", "set", "hashed", stdin=VALUE).code == 0
    assert 'did you mean "hashed"?' in cli("secrets", "set", "hased", stdin=VALUE).err
    (checkout / "inbox.toml").write_text("[[[")
    assert "no secret hashed" in cli("secrets", "set", "hashed", stdin=VALUE).err


def test_without_the_deployed_manifest_no_name_is_refused(cli: Cli) -> None:
    cli.local, cli.manifest = True, None
    assert cli("secrets", "set", "acne", stdin=VALUE).code == 0


@pytest.mark.usefixtures("_declared")
@pytest.mark.parametrize("value", ["", "\n", "\r\n", "  \n"])
def test_an_empty_value_is_refused(cli: Cli, value: str) -> None:
    shown = cli("secrets", "set", "acme", stdin=value)
    assert shown.code == 1
    assert "the secret is empty" in shown.err


def test_a_name_that_no_deployment_knows_is_refused_in_aws(cli: Cli) -> None:
    cli.manifest = None
    shown = cli("secrets", "set", "acne", stdin=VALUE)
    assert shown.code == 1
    assert f"the stack {STACK} has no secret acne: add it to inbox.toml and deploy" in shown.err


def test_on_this_machine_a_missing_secret_is_made(cli: Cli) -> None:
    cli.local = True
    assert cli("secrets", "set", "acme", "--json", stdin=VALUE).data["created"] is True
    assert stored() == VALUE


@pytest.mark.parametrize("form", [[], ["--json"], ["--debug"]])
@pytest.mark.parametrize("name", ["acme", "acne", "not a name!"])
def test_the_value_is_never_printed(cli: Cli, name: str, form: list[str]) -> None:
    shown = cli("secrets", "set", name, *form, stdin=VALUE)
    assert VALUE not in shown.out + shown.err


def test_bytes_that_are_no_text_are_refused_unseen(cli: Cli) -> None:
    raw = io.TextIOWrapper(io.BytesIO(b"secret-\xff\xfe"), encoding="utf-8")
    shown = cli("secrets", "set", "acme", "--debug", stdin=raw)
    assert shown.code == 1
    assert "the secret is not UTF-8" in shown.err
    assert "secret-" not in shown.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("_declared")
def test_on_a_terminal_it_is_asked_for_without_echo(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {}

    def prompt(text: str, **how: object) -> str:
        asked.update(how, text=text)
        return VALUE

    monkeypatch.setattr(typer, "prompt", prompt)
    assert cli("secrets", "set", "acme", stdin=Terminal()).code == 0
    assert asked["hide_input"] is True
    assert stored() == VALUE
