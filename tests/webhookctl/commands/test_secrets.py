"""`secrets set` and `secrets list`: a value goes in and is never seen again."""

import io
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import typer
from botocore.exceptions import ClientError

from tests.webhookctl.commands.stage import MANIFEST, PREFIX, STACK, Cli, client, documents
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore
from webhook_inbox.client.times import iso
from webhook_inbox.domain.manifest import DestinationSpec, SourceSpec
from webhook_inbox.domain.secret_document import HANDLERS, SOURCES, TOOLS, in_force

VALUE = "whsec_a-value-nobody-may-see"
DOCUMENT = PREFIX + SOURCES
CRM = DestinationSpec("crm", "https://crm.example", auth={"bearer": "crm-token"}, sign="crm-sign")


def stored(name: str = "acme", reader: str = SOURCES) -> tuple[str, ...]:
    return documents().read(reader).get(name, ())


@pytest.fixture
def calling(cli: Cli) -> Cli:
    """An inbox with a destination and a handler that reads a secret."""
    secrets = ("acme", "crm-sign", "crm-token", "github", "openai", "stripe")
    cli.manifest = replace(MANIFEST, destinations={"crm": CRM}, secrets=secrets)
    return cli


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_value_is_standard_input_without_its_last_line_break(cli: Cli, end: str) -> None:
    shown = cli("secrets", "set", "acme", stdin=VALUE + end)
    assert (shown.code, shown.out) == (0, f"Set acme in {DOCUMENT}, which had no value.\n")
    assert stored() == (VALUE,)


def test_other_white_space_belongs_to_the_value(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin=" a b \n\n")
    assert stored() == (" a b \n",)


def test_it_says_when_the_functions_use_it(cli: Cli) -> None:
    assert "within 60 s" in cli("secrets", "set", "acme", stdin=VALUE).err


def test_as_json(cli: Cli) -> None:
    assert cli("secrets", "set", "acme", "--json", stdin=VALUE).data == {
        "name": "acme",
        "document": DOCUMENT,
        "change": "created",
        "seen_within_seconds": 60,
    }


def test_each_secret_is_in_the_document_of_the_functions_that_read_it(calling: Cli) -> None:
    for name in ("acme", "crm-token", "crm-sign", "openai"):
        assert calling("secrets", "set", name, stdin=f"the-{name}").code == 0
    calling("secrets", "set", "github-api", "--create", stdin="the-token")

    assert documents().read(SOURCES) == {"acme": ("the-acme",)}
    assert set(documents().read(HANDLERS)) == {"crm-token", "crm-sign", "openai"}
    assert documents().read(TOOLS) == {"github-api": ("the-token",)}


def test_the_value_before_stays_as_the_previous_one_and_other_names_stay(cli: Cli) -> None:
    cli("secrets", "set", "github", stdin="the-other")
    cli("secrets", "set", "acme", stdin="the-first-value")
    shown = cli("secrets", "set", "acme", stdin=VALUE)
    assert shown.out == (
        f"Replaced acme in {DOCUMENT}; the previous value stays valid until the next change.\n"
    )
    assert stored() == (VALUE, "the-first-value")
    assert stored("github") == ("the-other",)


def test_after_a_leak_no_previous_value_stays(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin="the-leaked-value")
    shown = cli("secrets", "set", "acme", "--replace", stdin=VALUE)
    assert shown.out == f"Replaced acme in {DOCUMENT}; no previous value is valid.\n"
    assert stored() == (VALUE,)


def test_a_rotation_that_began_with_a_leaked_value_is_ended(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin="the-leaked-value")
    cli("secrets", "set", "acme", stdin=VALUE)
    assert cli("secrets", "set", "acme", "--replace", "--json", stdin=VALUE).data["change"] == (
        "replaced"
    )
    assert stored() == (VALUE,)


def test_the_same_value_once_more_changes_nothing_and_ends_no_overlap(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin="the-first-value")
    cli("secrets", "set", "acme", stdin=VALUE)
    again = cli("secrets", "set", "acme", stdin=VALUE)
    assert (again.code, again.out) == (
        0,
        f"Unchanged: acme in {DOCUMENT} already has this value.\n",
    )
    assert again.err == ""
    assert cli("secrets", "set", "acme", "--json", stdin=VALUE).data["change"] == "unchanged"
    store = SecretsManagerStore(client("secretsmanager"), DOCUMENT, keys={})
    assert store.fetch() == {"acme": (VALUE, "the-first-value")}


def test_a_document_made_by_hand_is_used(cli: Cli) -> None:
    by_hand = '{"github": "set-in-the-console"}'
    client("secretsmanager").create_secret(Name=DOCUMENT, SecretString=by_hand)
    assert cli("secrets", "set", "acme", stdin=VALUE).code == 0
    assert documents().read(SOURCES) == {"github": ("set-in-the-console",), "acme": (VALUE,)}


def test_a_malformed_document_is_named_and_not_shown(cli: Cli) -> None:
    client("secretsmanager").create_secret(Name=DOCUMENT, SecretString="hush-hush")
    for words in (("set", "acme"), ("list",)):
        shown = cli("secrets", *words, "--debug", stdin=VALUE)
        assert shown.code == 1
        assert f"the secret {DOCUMENT} is not JSON; store an object like" in shown.err
        assert "hush" not in shown.err
        assert VALUE not in shown.err


def test_a_document_marked_for_deletion_names_the_command_that_restores_it(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin="the-first-value")
    client("secretsmanager").delete_secret(SecretId=DOCUMENT, RecoveryWindowInDays=7)
    shown = cli("secrets", "set", "acme", stdin=VALUE)
    assert shown.code == 1
    restore = f"run `aws secretsmanager restore-secret --secret-id {DOCUMENT}`, and then repeat"
    assert f"{DOCUMENT} is marked for deletion: {restore}" in shown.err


def test_a_document_that_would_be_too_large_is_refused(cli: Cli) -> None:
    shown = cli("secrets", "set", "acme", stdin="x" * 70_000)
    assert shown.code == 1
    assert "Secrets Manager stores 65536" in shown.err
    assert documents().read(SOURCES) == {}


@pytest.mark.parametrize("operation", ["get_secret_value", "create_secret"])
def test_a_missing_right_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    def denied(**_: str) -> None:
        error = {"Code": "AccessDeniedException", "Message": "not authorized"}
        raise ClientError({"Error": error}, operation)

    with monkeypatch.context() as patch:
        patch.setattr(client("secretsmanager"), operation, denied)
        shown = cli("secrets", "set", "acme", stdin=VALUE)
    assert shown.code == 1
    assert f"a value is set by reading {DOCUMENT} and writing it again: request" in shown.err
    assert "GetSecretValue, PutSecretValue and, for the first value, CreateSecret" in shown.err
    assert VALUE not in shown.err


@pytest.mark.parametrize("local", [True, False])
def test_a_name_that_nothing_uses_needs_create(cli: Cli, *, local: bool) -> None:
    cli.local = local
    shown = cli("secrets", "set", "acne", stdin=VALUE)
    assert shown.code == 2
    assert shown.err == (
        "webhookctl: no secret acne of a source, destination or handler; known secrets: acme,"
        ' github, stripe; did you mean "acme"? To store it all the same, add --create\n'
    )
    made = cli("secrets", "set", "acne", "--create", "--json", stdin=VALUE).data
    assert (made["document"], made["seen_within_seconds"]) == (PREFIX + TOOLS, None)


def test_a_secret_that_only_the_checkout_uses_is_known(cli: Cli, checkout: Path) -> None:
    assert cli("secrets", "set", "hashed", stdin=VALUE).code == 0
    assert stored("hashed") == (VALUE,)
    assert 'did you mean "hashed"?' in cli("secrets", "set", "hased", stdin=VALUE).err
    (checkout / "inbox.toml").write_text("[[[")
    assert "no secret hashed" in cli("secrets", "set", "hashed", stdin=VALUE).err


def test_without_the_deployed_manifest_the_checkout_says_who_reads_it(
    cli: Cli, checkout: Path
) -> None:
    cli.manifest = None
    assert (checkout / "inbox.toml").is_file()
    assert cli("secrets", "set", "acme", stdin=VALUE).code == 0
    assert stored() == (VALUE,)


def test_without_any_configuration_it_is_unknown_who_reads_it(cli: Cli) -> None:
    cli.manifest = None
    shown = cli("secrets", "set", "acme", stdin=VALUE)
    assert shown.code == 1
    assert "unknown whether a source or a handler uses acme" in shown.err
    assert "request cloudformation:GetTemplateSummary, or change to your" in shown.err


# -- before the first deployment


def test_before_the_first_deployment_the_checkout_says_who_reads_it(
    cli: Cli, checkout: Path
) -> None:
    text = (checkout / "inbox.toml").read_text()
    (checkout / "inbox.toml").write_text('handler_secrets = ["openai"]\n' + text)
    cli.deployed = False
    shown = cli("secrets", "set", "acme", stdin=VALUE)
    assert (shown.code, shown.out) == (0, f"Set acme in {DOCUMENT}, which had no value.\n")
    assert f"there is no stack {STACK} in this account and region" in shown.err
    assert "read it once the stack is deployed" in shown.err
    assert cli("secrets", "set", "openai", "--json", stdin=VALUE).data["document"] == (
        PREFIX + HANDLERS
    )
    assert "did you mean" in cli("secrets", "set", "acne", stdin=VALUE).err
    cli.deployed = True
    assert stored() == (VALUE,)


def test_before_the_first_deployment_and_without_a_checkout_there_is_no_stack(cli: Cli) -> None:
    cli.deployed = False
    shown = cli("secrets", "set", "acme", stdin=VALUE)
    assert shown.code == 1
    assert shown.err.startswith(f"webhookctl: there is no stack {STACK} in this account")


def test_no_other_command_takes_a_stack_that_does_not_exist(cli: Cli) -> None:
    cli.deployed = False
    assert "there is no stack" in cli("secrets", "enrol", "acme").err
    assert "there is no stack" in cli("inbox", "list").err


# -- list


def test_the_list_has_states_and_users_and_no_value(calling: Cli) -> None:
    manifest = calling.manifest
    assert manifest is not None
    keyless = SourceSpec("topic", "paypal", "topic", settings={"webhook_id": "7"})
    calling.manifest = replace(manifest, sources={**manifest.sources, "topic": keyless})
    for value in ("first-value-of-acme", VALUE):
        documents().set(SOURCES, "acme", value)
    documents().set(SOURCES, "gone", VALUE)
    documents().set(HANDLERS, "crm-token", VALUE)
    documents().set(TOOLS, "github-api", VALUE)

    shown = calling("secrets", "list")

    assert shown.code == 0
    assert [line.split(maxsplit=1)[0] for line in shown.out.splitlines()[1:]] == [
        "acme", "github", "stripe", "gone", "crm-sign", "crm-token", "openai", "github-api",
    ]  # fmt: skip
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in shown.out.splitlines()}
    assert lines["acme"] == f"two values {PREFIX}sources source acme"
    assert lines["github"] == f"not set {PREFIX}sources source github"
    assert lines["gone"] == f"one value, unused {PREFIX}sources -"
    assert lines["crm-token"] == f"one value {PREFIX}handlers destination crm"
    assert lines["openai"] == f"not set {PREFIX}handlers handlers"
    assert lines["github-api"] == f"one value {PREFIX}tools webhookctl"
    assert "Set a missing one with `webhookctl secrets set NAME`" in shown.err
    assert VALUE not in shown.out + shown.err


def test_the_list_as_json(calling: Cli) -> None:
    documents().set(SOURCES, "acme", VALUE)
    objects = calling("secrets", "list", "--json").objects
    assert objects[0] == {
        "name": "acme",
        "document": DOCUMENT,
        "values": 1,
        "used_by": ["source acme"],
    }
    assert VALUE not in repr(objects)


def test_two_sources_may_share_a_secret(cli: Cli) -> None:
    twin = SourceSpec("acme-eu", "github", "acme")
    cli.manifest = replace(MANIFEST, sources={**MANIFEST.sources, "acme-eu": twin})
    [acme] = [each for each in cli("secrets", "list", "--json").objects if each["name"] == "acme"]
    assert acme["used_by"] == ["source acme", "source acme-eu"]


def test_before_the_first_deployment_the_list_is_that_of_the_checkout(
    cli: Cli, checkout: Path
) -> None:
    assert checkout.is_dir()
    cli.deployed = False
    cli("secrets", "set", "acme", stdin=VALUE)
    shown = cli("secrets", "list")
    assert "The list is that of this checkout." in shown.err
    assert "hashed" in shown.out


def test_an_inbox_without_secrets_says_so(cli: Cli) -> None:
    cli.manifest = replace(MANIFEST, sources={}, secrets=())
    assert "uses no secret, and none is stored" in cli("secrets", "list").err


# -- the value


@pytest.mark.parametrize("value", ["", "\n", "\r\n", "  \n"])
def test_an_empty_value_is_refused(cli: Cli, value: str) -> None:
    shown = cli("secrets", "set", "acme", stdin=value)
    assert shown.code == 1
    assert "the secret is empty" in shown.err


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
    assert stored() == (VALUE,)


# -- rotation


def audited() -> list[dict[str, object]]:
    rows = client("dynamodb").scan(TableName="ledger")["Items"]
    return [row for row in rows if row["pk"]["S"].startswith("audit#")]


def test_a_rotation_keeps_the_previous_value_until_its_end(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin="the-first-value")
    shown = cli("secrets", "rotate", "acme", "--overlap", "2h", "--by", "kim", stdin=VALUE)
    until = cli.inbox.now + timedelta(hours=2)
    assert (shown.code, shown.out) == (
        0,
        f"Rotated acme; the previous value is valid until {iso(until)}.\n",
    )
    values = stored()
    assert values == (VALUE, "the-first-value")
    assert in_force(values, until - timedelta(seconds=1)) == values
    assert in_force(values, until) == (VALUE,)


@pytest.mark.moto
def test_its_audit_has_names_and_no_value(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin="the-first-value")
    cli("secrets", "rotate", "acme", "--by", "kim", stdin=VALUE)
    [row] = [each for each in audited() if each["action"] == {"S": "rotate secret"}]
    assert row["counts"] == {"M": {"replaced": {"N": "1"}}}
    assert row["request"]["M"]["secret"] == {"S": "acme"}  # type: ignore[index]
    assert VALUE not in str(row)
    assert "first-value" not in str(row)


def test_the_value_is_never_an_argument(cli: Cli) -> None:
    assert cli("secrets", "rotate", "acme", VALUE, stdin="x").code == 2


@pytest.mark.parametrize("overlap", ["31d", "soon", ""])
def test_an_overlap_without_a_bound_is_refused(cli: Cli, overlap: str) -> None:
    shown = cli("secrets", "rotate", "acme", "--overlap", overlap, stdin=VALUE)
    assert shown.code == 2
    assert "--overlap" in shown.err


def test_the_first_value_and_the_same_value_are_no_rotation(cli: Cli) -> None:
    first = cli("secrets", "rotate", "acme", "--json", stdin=VALUE)
    assert first.data == {"name": "acme", "change": "created", "previous_until": None}
    same = cli("secrets", "rotate", "acme", stdin=VALUE)
    assert same.out == "Unchanged: acme already has this value.\n"


@pytest.mark.moto
def test_the_previous_value_is_revoked_with_yes_only(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin="the-leaked-value")
    cli("secrets", "rotate", "acme", stdin=VALUE)
    shown = cli("secrets", "revoke", "acme", "--previous")
    assert (shown.code, len(stored())) == (0, 2)
    assert "Dry run" in shown.err
    shown = cli("secrets", "revoke", "acme", "--previous", "--yes")
    assert (shown.code, stored()) == (0, (VALUE,))
    [row] = [each for each in audited() if each["action"] == {"S": "revoke secret"}]
    assert row["counts"] == {"M": {"revoked": {"N": "1"}}}
    assert "has no previous value" in cli("secrets", "revoke", "acme", "--previous", "--yes").err


def test_the_current_value_cannot_be_revoked(cli: Cli) -> None:
    shown = cli("secrets", "revoke", "acme", "--yes")
    assert shown.code == 2
    assert "secrets set --replace" in shown.err


def test_the_status_shows_each_rotation_and_no_value(cli: Cli) -> None:
    for _ in range(2):
        cli("secrets", "set", "github", stdin=f"value-{_}")
    cli("secrets", "set", "acme", stdin="the-first-value")
    cli("secrets", "rotate", "acme", "--overlap", "2h", stdin=VALUE)
    cli.inbox.clock.advance(minutes=30)
    shown = cli("secrets", "status")
    assert shown.code == 0
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in shown.out.splitlines()}
    assert lines["acme"] == "two values 30 min ago in 1 h 30 min no delivery in 14 days"
    assert lines["github"] == "two values - next change no delivery in 14 days"
    assert VALUE not in shown.out
    cli.inbox.clock.advance(hours=2)
    [acme] = cli("secrets", "status", "acme", "--json").objects
    assert (acme["values"], acme["previous_last_used"]) == (1, None)


def test_the_status_has_the_last_use_of_the_previous_value(cli: Cli) -> None:
    cli("secrets", "set", "acme", stdin="the-first-value")
    cli("secrets", "rotate", "acme", stdin=VALUE)
    used = cli.inbox.now - timedelta(hours=3)
    client("cloudwatch").put_metric_data(
        Namespace=f"WebhookInbox/{STACK}",
        MetricData=[
            {
                "MetricName": "VerifiedWithPrevious",
                "Dimensions": [{"Name": "source", "Value": "acme"}],
                "Timestamp": used,
                "Value": 2.0,
            }
        ],
    )
    [acme] = cli("secrets", "status", "acme", "--json").objects
    assert acme["previous_last_used"] == iso(used)


def test_an_unknown_name_has_no_status(cli: Cli) -> None:
    shown = cli("secrets", "status", "acne")
    assert (shown.code, 'did you mean "acme"?' in shown.err) == (2, True)
