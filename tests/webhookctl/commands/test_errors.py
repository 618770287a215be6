"""Every failure is one line that ends with what to do next."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore import exceptions as boto
from botocore.exceptions import ClientError

from tests.webhookctl.commands.stage import Cli, Inbox
from webhook_inbox.adapters.aws.errors import translated
from webhook_inbox.adapters.aws.remedies import LOG_IN
from webhook_inbox.domain.errors import ConfigurationError
from webhookctl.__main__ import main
from webhookctl.errors import CommandError, explain
from webhookctl.invocation import World


@pytest.fixture
def inbox() -> Inbox:
    """An inbox in memory."""
    return Inbox()


def client_error(code: str, message: str = "no", status: int = 400) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "DescribeStacks")


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (boto.NoCredentialsError(), "choose a --profile, set AWS_PROFILE, or log in"),
        (
            boto.PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY"),
            "complete them, or choose another --profile",
        ),
        (boto.ProfileNotFound(profile="ops"), "choose one of `aws configure list-profiles`"),
        (boto.NoRegionError(), "name one with --region or AWS_REGION"),
        (boto.UnauthorizedSSOTokenError(), LOG_IN),
        (boto.LoginRefreshRequired(), LOG_IN),
        (boto.LoginTokenLoadError(error_msg="none"), LOG_IN),
        (boto.MissingDependencyException(msg="awscrt"), "pip install 'botocore[crt]'"),
        (boto.TokenRetrievalError(provider="sso", error_msg="expired"), LOG_IN),
        (
            boto.EndpointConnectionError(endpoint_url="http://x"),
            "with --local, that `webhookctl dev`",
        ),
        (boto.ReadTimeoutError(endpoint_url="http://x"), "check the network and try again"),
        (client_error("ExpiredToken"), LOG_IN),
        (
            client_error("AccessDeniedException"),
            "request this permission, or choose another --profile",
        ),
        (client_error("ResourceNotFoundException"), "deploy the stack again"),
        (client_error("ThrottlingException"), "try again in a moment"),
        (client_error("InternalFailure", status=500), "try again in a moment"),
        (client_error("ValidationError"), "run it again with --debug to see where"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_aws_says_has_a_remedy_whether_an_adapter_met_it_or_not(
    error: Exception, remedy: str
) -> None:
    assert remedy in explain(error)
    unavailable = translated("dynamodb", "Query", error)
    unavailable.__cause__ = error
    assert explain(unavailable).startswith("dynamodb Query: ")
    assert remedy in explain(unavailable)


@pytest.mark.parametrize("kind", [CommandError, ConfigurationError])
def test_our_own_errors_say_it_all(kind: type[Exception]) -> None:
    assert explain(kind("the port is taken: choose another")) == "the port is taken: choose another"


def test_a_file_that_cannot_be_read_is_named() -> None:
    assert explain(PermissionError(13, "Permission denied", "x.json")) == (
        "x.json: Permission denied"
    )


def test_a_fault_of_ours_is_called_one() -> None:
    said = explain(ZeroDivisionError("division\nby zero"))
    assert said.startswith("internal error, ZeroDivisionError: division by zero")
    assert said.endswith("run it again with --debug to see where")


# -- the boundary


@pytest.fixture
def failing(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Calls the command line where connecting raises; returns status, output and errors."""

    def call(error: BaseException, *options: str) -> tuple[int, str, str]:
        def connect(_: object) -> Any:
            raise error

        with pytest.raises(SystemExit) as ended:
            main(["inbox", "list", *options], world=World(connect=connect))
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


Failing = Callable[..., tuple[int, str, str]]


def test_an_error_is_one_line_and_the_status_one(failing: Failing) -> None:
    assert failing(CommandError("no target:\n  use --local")) == (
        1,
        "",
        "webhookctl: no target: use --local\n",
    )


def test_a_terminal_is_not_spoken_to_by_an_error(failing: Failing) -> None:
    assert "\x1b" not in failing(CommandError("\x1b[2J"))[2]


@pytest.mark.parametrize("place", ["before", "behind"])
def test_the_traceback_is_shown_when_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], place: str
) -> None:
    def connect(_: object) -> Any:
        raise CommandError("no target")

    words = ["--debug", "inbox", "list"] if place == "before" else ["inbox", "list", "--debug"]
    with pytest.raises(SystemExit):
        main(words, world=World(connect=connect))
    said = capsys.readouterr().err
    assert said.startswith("Traceback (most recent call last)")
    assert said.endswith("webhookctl: no target\n")


def test_an_interruption_is_no_error(failing: Failing) -> None:
    assert failing(KeyboardInterrupt()) == (130, "", "")


def test_a_wrong_call_shows_the_usage(cli: Cli) -> None:
    shown = cli("inbox", "lst")
    assert shown.code == 2
    assert 'no command lst; did you mean "list"?' in shown.err
    assert "\x1b" not in shown.err
    assert "─" not in shown.err


def test_options_may_stand_before_and_behind_the_command(cli: Cli) -> None:
    for words in (
        ["--stack", "Inbox", "--region", "eu-west-1", "--json", "inbox", "list"],
        ["inbox", "list", "--stack", "Inbox", "--region", "eu-west-1", "--json"],
        ["--stack", "Other", "inbox", "list", "--stack", "Inbox", "--region", "eu-west-1"],
    ):
        assert cli(*words).code == 0
    assert {(s.stack, s.region, s.local) for s in cli.selected} == {("Inbox", "eu-west-1", False)}


def test_the_local_target_may_be_named_on_either_side(cli: Cli) -> None:
    cli("--local", "inbox", "list")
    cli("inbox", "list", "--local")
    assert [selection.local for selection in cli.selected] == [True, True]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["inbox"],
        ["secrets"],
    ],
)
def test_without_a_command_help_is_shown(cli: Cli, words: list[str]) -> None:
    shown = cli(*words)
    assert "Usage: webhookctl" in shown.out + shown.err
