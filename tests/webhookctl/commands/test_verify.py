"""`verify`: one request, explained offline."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from tests.unit.providers.cases import example, signed
from tests.webhookctl.commands.stage import Cli, Inbox
from webhook_inbox import providers
from webhook_inbox.client.connection import Selection
from webhook_inbox.client.diagnosis.diagnose import diagnose
from webhook_inbox.client.diagnosis.hypothesis import Trial
from webhook_inbox.domain.manifest import SourceSpec
from webhook_inbox.domain.provider import Sample

SECRET = "a-secret-that-nobody-may-see"
BODY = b'{"id":"evt_1","type":"invoice.paid"}'

pytestmark = pytest.mark.usefixtures("checkout")


class Request:
    """A valid request of Stripe's, in files that a test may break."""

    def __init__(self, directory: Path, now: datetime) -> None:
        provider = providers.load(SourceSpec("stripe", "stripe", "stripe"))
        sent = provider.sign(Sample("evt_1", "invoice.paid", BODY), SECRET, now)
        self.signature = sent["stripe-signature"]
        self.headers = directory / "headers.txt"
        self.body = directory / "body.json"
        self.secret = directory / "secret.txt"
        self.headers.write_text("".join(f"{name}: {value}\n" for name, value in sent.items()))
        self.body.write_bytes(BODY)
        self.secret.write_text(SECRET + "\n")

    @property
    def files(self) -> list[str]:
        return ["--headers", str(self.headers), "--body", str(self.body)]

    @property
    def options(self) -> list[str]:
        return [*self.files, "--secret-file", str(self.secret), "--source", "stripe"]


@pytest.fixture
def request_(tmp_path: Path, inbox: Inbox) -> Request:
    return Request(tmp_path, inbox.now)


def test_a_valid_request_passes_every_step(cli: Cli, request_: Request) -> None:
    shown = cli("verify", *request_.options)
    assert (shown.code, shown.err) == (0, "")
    assert "failed" not in shown.out
    assert shown.out.endswith("valid: event evt_1, type invoice.paid\n")


def test_no_target_is_asked_for_anything(cli: Cli, request_: Request) -> None:
    cli("verify", *request_.options)
    request_.body.write_bytes(BODY + b"\n")
    cli("verify", *request_.options)
    assert cli.selected == list[Selection]()


def test_it_says_which_step_failed_and_why(cli: Cli, request_: Request) -> None:
    request_.body.write_bytes(json.dumps(json.loads(BODY)).encode())
    shown = cli("verify", *request_.options)
    assert shown.code == 1
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert "signature found ok" in lines
    assert "signature valid failed" in lines
    assert "event named not reached" in lines
    cause = "the body was parsed and reserialized; the provider signed it without spaces"
    assert f"cause: {cause}" in lines


STEPS = {
    "stripe": {"secret usable"},
    "google-pubsub": {"published key fetched"},
    "plaid": {"secret usable", "published key fetched"},
}


@pytest.mark.parametrize("provider_name", STEPS)
def test_only_what_a_scheme_needs_is_a_step(
    cli: Cli, request_: Request, tmp_path: Path, provider_name: str
) -> None:
    case = signed(provider_name)
    spec = SourceSpec("stripe", provider_name, "stripe", settings=example(provider_name))
    found = diagnose(Trial(spec, case.delivery, case.secrets), fetcher=case)

    assert found.failed is None
    asked = {str(step) for step in found.steps}
    assert asked & {"secret usable", "published key fetched"} == STEPS[provider_name]
    assert {"signature found", "signature valid", "event named"} <= asked


def test_a_step_that_there_is_not_is_not_shown(cli: Cli, request_: Request) -> None:
    shown = cli("verify", *request_.options, "--json")

    assert "published key fetched" not in {each["step"] for each in shown.data["steps"]}
    assert "published key" not in cli("verify", *request_.options).out


def test_as_json(cli: Cli, request_: Request) -> None:
    request_.body.write_bytes(BODY + b"\n")
    shown = cli("verify", *request_.options, "--json")
    assert shown.code == 1
    assert (shown.data["valid"], shown.data["reason"]) == (False, "invalid-signature")
    results = {each["step"]: each["result"] for each in shown.data["steps"]}
    assert results["signature valid"] == "failed"
    (cause,) = shown.data["causes"]
    assert (cause["cause"], cause["proven"]) == ("body-newline", True)


def test_without_a_checkout_the_provider_is_named(
    cli: Cli, request_: Request, checkout: Path
) -> None:
    (checkout / "inbox.toml").unlink()
    options = [*request_.files, "--secret-file", str(request_.secret)]
    assert cli("verify", *options, "--provider", "stripe").code == 0


@pytest.mark.parametrize("given", [[], ["--source", "stripe", "--provider", "stripe"]])
def test_it_has_to_be_said_who_sent_it(cli: Cli, request_: Request, given: list[str]) -> None:
    shown = cli("verify", *request_.files, "--secret-file", str(request_.secret), *given)
    assert shown.code == 2
    assert "give either --source or --provider" in " ".join(shown.err.split())


def test_an_unknown_source_is_named(cli: Cli, request_: Request) -> None:
    shown = cli("verify", *request_.options, "--source", "acne")
    assert (shown.code, shown.out) == (2, "")
    assert "no source acne in inbox.toml; known sources: acme, github" in shown.err


def test_the_secret_is_read_from_a_variable(
    cli: Cli, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGNING_SECRET", SECRET)
    given = [*request_.files, "--source", "stripe", "--secret-env"]
    assert cli("verify", *given, "SIGNING_SECRET").code == 0
    unset = cli("verify", *given, "ANOTHER")
    assert unset.code == 1
    assert "the variable ANOTHER is not set" in unset.err


def test_the_secret_is_read_from_standard_input(cli: Cli, request_: Request) -> None:
    assert cli("verify", *request_.files, "--source", "stripe", stdin=SECRET + "\n").code == 0


def test_no_option_takes_a_secret(cli: Cli, request_: Request) -> None:
    shown = cli("verify", *request_.options, "--secret", SECRET)
    assert shown.code == 2
    assert "no option --secret" in shown.err


@pytest.mark.parametrize("form", [[], ["--json"], ["--debug"]])
def test_neither_secret_nor_signature_is_printed(
    cli: Cli, request_: Request, tmp_path: Path, form: list[str]
) -> None:
    right = tmp_path / "right.txt"
    right.write_text(SECRET)
    request_.secret.write_text("another-secret-in-use")
    for more in ([], ["--try", str(right)]):
        shown = cli("verify", *request_.options, *more, *form)
        assert shown.code == 1
        for hidden in (SECRET, "another-secret-in-use", request_.signature[-64:]):
            assert hidden not in shown.out + shown.err


def test_another_secret_that_fits_is_named_by_its_file(
    cli: Cli, request_: Request, tmp_path: Path
) -> None:
    live = tmp_path / "live-mode.txt"
    live.write_text(SECRET)
    request_.secret.write_text("the-secret-of-test-mode")
    shown = cli("verify", *request_.options, "--try", str(live))
    assert f"it was signed with another secret: the one in {live}" in shown.out


def test_it_is_judged_as_of_when_it_came(cli: Cli, request_: Request, inbox: Inbox) -> None:
    came = inbox.now
    inbox.clock.advance(minutes=34)
    stale = cli("verify", *request_.options)
    assert stale.code == 1
    assert "it was signed 34 min before it was received" in stale.out
    assert cli("verify", *request_.options, "--at", came.isoformat()).code == 0
    assert cli("verify", *request_.options, "--at", "33m").code == 0


@pytest.mark.parametrize("style", ["curl", "json", "lists", "request"])
def test_headers_are_read_as_tools_write_them(cli: Cli, request_: Request, style: str) -> None:
    value = request_.signature
    request_.headers.write_text(
        {
            "curl": f"> POST /webhooks/stripe HTTP/2\r\n> Stripe-Signature: {value}\r\n>\r\n",
            "json": json.dumps({"Stripe-Signature": value}),
            "lists": json.dumps({"Stripe-Signature": [value]}),
            "request": f"POST /x HTTP/1.1\nHost: a.example\nSTRIPE-SIGNATURE: {value}\n\n",
        }[style]
    )
    assert cli("verify", *request_.options).code == 0


@pytest.mark.parametrize("text", ["", "\n", "{}", "{", "no header here", '{"a'])
def test_a_file_without_headers_is_one_line(cli: Cli, request_: Request, text: str) -> None:
    request_.headers.write_text(text)
    shown = cli("verify", *request_.options)
    assert (shown.code, shown.out) == (1, "")
    assert shown.err.startswith(f"webhookctl: {request_.headers}")
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize("file", ["headers", "body", "secret"])
def test_a_file_that_is_not_there_is_one_line(cli: Cli, request_: Request, file: str) -> None:
    getattr(request_, file).unlink()
    shown = cli("verify", *request_.options)
    assert shown.code == 1
    assert "cannot be read: No such file" in shown.err


def test_a_secret_that_is_no_text_is_refused_unseen(cli: Cli, request_: Request) -> None:
    request_.secret.write_bytes(b"secret-\xff")
    shown = cli("verify", *request_.options, "--debug")
    assert shown.code == 1
    assert "is not UTF-8 text" in shown.err
    assert "secret-" not in shown.err


def test_what_the_provider_publishes_is_taken_from_a_file(
    cli: Cli, tmp_path: Path, checkout: Path
) -> None:
    case = signed("aws-sns")
    with (checkout / "inbox.toml").open("a") as configuration:
        configuration.write('[sources.topic]\nprovider = "aws-sns"\n')
        configuration.writelines(f'{k} = "{v}"\n' for k, v in example("aws-sns").items())
    headers, body, key = (tmp_path / name for name in ("h.json", "b.json", "key.pem"))
    headers.write_text(json.dumps(dict(case.delivery.headers)))
    body.write_bytes(case.delivery.body)
    key.write_bytes(case.published)
    at = case.delivery.received_at
    given = ["--headers", str(headers), "--body", str(body), "--source", "topic"]
    given += ["--at", at.isoformat()]
    missing = cli("verify", *given)
    assert missing.code == 1
    assert "pass it with --published" in missing.out
    assert cli("verify", *given, "--published", str(key)).code == 0
