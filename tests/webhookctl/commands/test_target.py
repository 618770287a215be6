"""Which inbox a command is about."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.support.world import MANIFEST
from tests.webhookctl.commands.stage import Cli, Inbox, client
from webhook_inbox.client.connection import Selection, connect
from webhook_inbox.client.errors import OperationError
from webhook_inbox.client.local_session import State, started, write
from webhook_inbox.client.names import known_manifest
from webhook_inbox.client.target import Target
from webhook_inbox.domain.errors import AccessDenied, Unavailable
from webhook_inbox.domain.manifest import METADATA, Manifest

OUTPUTS = {
    "Stage": "dev",
    "ApiUrl": "https://abc.execute-api.eu-west-1.amazonaws.com",
    "TableName": "ledger",
    "BucketName": "bodies",
    "QueueUrls": json.dumps({"default": "https://sqs/work"}),
    "DlqUrls": json.dumps({"default": "https://sqs/dead"}),
    "SecretPrefix": "webhook-inbox/Inbox/",
    "LogGroupNames": json.dumps({"Inbox-Ingest-1": "Inbox-IngestLogs-1"}),
    "GeneratedKeys": json.dumps({"inbox/token-key": "arn:of:the:key"}),
    "IngestFunctionName": "ingest",
    "ProcessorFunctionNames": json.dumps({"default": "processor"}),
    "ReplayFunctionName": "replay",
    "ReconcilerFunctionName": "reconciler",
    "WebhookUrlStripe": "https://abc.execute-api.eu-west-1.amazonaws.com/webhooks/stripe",
    "WebhookUrlStripeEu": "https://abc.execute-api.eu-west-1.amazonaws.com/webhooks/stripe-eu",
}
CREDENTIALS = dict.fromkeys(
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), "only a test"
)
NO_TARGET = "no target: use --stack NAME or --local, or set WEBHOOKCTL_TARGET"


class Clients:
    """CloudFormation with one stack, and a note of each client that was made."""

    def __init__(self, outputs: dict[str, str]) -> None:
        self.outputs = outputs
        self.metadata: dict[str, str] = {METADATA: json.dumps(MANIFEST.to_data())}
        self.made: list[tuple[str, dict[str, Any]]] = []
        self.sessions: list[dict[str, Any]] = []

    def session(self, **options: Any) -> "Clients":
        self.sessions.append(options)
        return self

    def create_client(self, service: str, **options: Any) -> "Clients":
        self.made.append((service, options))
        return self

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803
        if StackName != "Inbox":
            message = f"Stack with id {StackName} does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "x")
        outputs = [{"OutputKey": k, "OutputValue": v} for k, v in self.outputs.items()]
        stack_id = f"arn:aws:cloudformation:eu-west-1:123456789012:stack/{StackName}/1"
        stack = {"StackName": StackName, "StackId": stack_id, "Outputs": outputs}
        return {"Stacks": [stack]}

    def get_template_summary(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803
        return {"Metadata": json.dumps(self.metadata)} if self.metadata else {}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Clients:
    clients = Clients(dict(OUTPUTS))
    monkeypatch.setattr("botocore.session.Session", clients.session)
    return clients


@pytest.fixture
def running(tmp_path: Path) -> Iterator[State]:
    """A live session of this directory: ourselves."""
    state = State(
        pid=os.getpid(),
        started=started(),
        endpoint="http://127.0.0.1:4566",
        front="http://127.0.0.1:8787",
        sink="http://127.0.0.1:8788",
        credentials=CREDENTIALS,
        outputs={**OUTPUTS, "Stage": "local"},
        manifest=MANIFEST.to_data(),
        children={},
    )
    write(tmp_path / ".local", state)
    return state


# -- in AWS


def test_a_stacks_outputs_become_a_target(aws: Clients) -> None:
    target = connect(Selection(stack="Inbox"))
    assert (target.name, target.local, target.stage) == ("Inbox", False, "dev")
    assert (target.table_name, target.bucket_name) == ("ledger", "bodies")
    assert (target.secret_prefix, target.replay_function) == ("webhook-inbox/Inbox/", "replay")
    assert target.urls == {
        "stripe": OUTPUTS["WebhookUrlStripe"],
        "stripe-eu": OUTPUTS["WebhookUrlStripeEu"],
    }


def test_the_variable_names_a_stack(aws: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOKCTL_TARGET", "Inbox")
    assert connect(Selection()).name == "Inbox"


def test_what_is_said_beats_the_variable(
    aws: Clients, running: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBHOOKCTL_TARGET", "local")
    assert connect(Selection(stack="Inbox")).name == "Inbox"


def test_profile_and_region_are_used(aws: Clients) -> None:
    connect(Selection(stack="Inbox", profile="ops", region="eu-west-1"))
    assert aws.sessions == [{"profile": "ops"}]
    assert aws.made[0][1]["region_name"] == "eu-west-1"


def test_aws_region_is_used_which_botocore_does_not_know(
    aws: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    connect(Selection(stack="Inbox"))
    assert aws.made[0][1]["region_name"] == "eu-north-1"


def test_aws_profile_precedes_the_other_variable_as_with_the_cdk_command_line(
    aws: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "ops")
    monkeypatch.setenv("AWS_DEFAULT_PROFILE", "other")
    connect(Selection(stack="Inbox"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    connect(Selection(stack="Inbox"))
    # Keys in the environment precede a profile that no option names.
    assert aws.sessions == [{"profile": None}, {"profile": "ops"}]


def test_an_invocation_is_waited_for_and_never_repeated(aws: Clients) -> None:
    connect(Selection(stack="Inbox")).client("lambda")
    config = aws.made[-1][1]["config"]
    assert config.read_timeout > 300
    assert config.retries["total_max_attempts"] == 1


def test_an_unknown_stack_is_told(aws: Clients) -> None:
    with pytest.raises(OperationError, match="there is no stack Inbux in this account and region"):
        connect(Selection(stack="Inbux"))


@pytest.mark.parametrize("name", ["TableName", "ReplayFunctionName", "Stage"])
def test_a_stack_that_is_no_inbox_is_told(aws: Clients, name: str) -> None:
    del aws.outputs[name]
    with pytest.raises(
        OperationError, match=f"is not a webhook-inbox stack.* has no output {name}"
    ):
        connect(Selection(stack="Inbox"))


def test_other_errors_of_cloudformation_are_not_swallowed(
    aws: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeStacks")

    monkeypatch.setattr(aws, "describe_stacks", denied)
    with pytest.raises(AccessDenied):
        connect(Selection(stack="Inbox"))


def test_the_manifest_is_the_deployed_one(
    aws: Clients, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = connect(Selection(stack="Inbox"))
    assert target.manifest == MANIFEST
    aws.metadata = {}
    assert target.manifest == MANIFEST  # read once


def test_a_stack_without_a_manifest_is_told(aws: Clients) -> None:
    later = json.dumps({**MANIFEST.to_data(), "sources": {"acme": {"unknown": 1}}})
    for aws.metadata in ({}, {"another tool's": "1"}, {METADATA: "{"}, {METADATA: later}):
        target = connect(Selection(stack="Inbox"))
        with pytest.raises(OperationError, match=r"no manifest of this version .*: deploy it"):
            _ = target.manifest
        assert known_manifest(target) == Manifest()


def test_who_may_not_read_the_manifest_may_read_the_rest(
    aws: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "no"}}, "GetTemplateSummary")

    monkeypatch.setattr(aws, "get_template_summary", denied)
    target = connect(Selection(stack="Inbox"))
    code = "AccessDenied"
    assert known_manifest(target) == Manifest()
    code = "Throttling"
    with pytest.raises(Unavailable, match="Throttling"):
        known_manifest(target)


# -- on this machine


def test_the_running_session_is_the_local_target(running: State) -> None:
    target = connect(Selection(local=True))
    assert (target.name, target.local, target.stage) == ("local", True, "local")
    assert target.urls["stripe"] == "http://127.0.0.1:8787/webhooks/stripe"


def test_its_manifest_is_the_sessions(running: State) -> None:
    assert connect(Selection(local=True)).manifest == MANIFEST


def test_a_session_above_the_repository_is_not_ours(
    running: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "another" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "another")
    with pytest.raises(OperationError, match="no inbox runs on this machine"):
        connect(Selection(local=True))


def test_another_users_session_is_not_ours(running: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: os.geteuid() + 1)
    with pytest.raises(OperationError, match="no inbox runs on this machine"):
        connect(Selection(local=True))


def test_it_is_found_from_below(
    running: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "functions").mkdir()
    monkeypatch.chdir(tmp_path / "functions")
    monkeypatch.setenv("WEBHOOKCTL_TARGET", "local")
    assert connect(Selection()).local


def test_the_local_endpoint_is_asked_whatever_the_developer_set(
    running: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://elsewhere.example")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    client = connect(Selection(local=True)).client("dynamodb")
    assert client.meta.endpoint_url == "http://127.0.0.1:4566"
    assert client.meta.region_name == "us-east-1"
    assert client.meta.config.proxies == {}


def test_a_session_that_died_is_none(running: State, tmp_path: Path) -> None:
    state = tmp_path / ".local" / "state.json"
    dead = {**json.loads(state.read_text()), "pid": 2**22 + 1}  # beyond the kernel's largest
    state.write_text(json.dumps(dead))
    with pytest.raises(OperationError, match="no inbox runs on this machine: start one with"):
        connect(Selection(local=True))


@pytest.mark.parametrize("selection", [Selection(), Selection(local=True)])
def test_a_session_that_an_archive_brought_is_refused(
    running: State, tmp_path: Path, selection: Selection
) -> None:
    write(tmp_path / ".local", replace(running, endpoint="http://evil.example:80"))
    with pytest.raises(OperationError, match=r"\.local/state\.json names a server that is not on"):
        connect(selection)


# -- none, or two


def test_without_a_target_it_says_how_to_name_one() -> None:
    with pytest.raises(OperationError, match=NO_TARGET):
        connect(Selection())


def test_without_a_target_a_running_session_is_pointed_at(running: State) -> None:
    with pytest.raises(OperationError, match="an inbox runs on this machine, so use --local"):
        connect(Selection())


def test_two_targets_are_one_too_many() -> None:
    with pytest.raises(OperationError, match="--local and --stack are two targets"):
        connect(Selection(local=True, stack="Inbox"))


def test_a_target_reads_bodies_only_when_asked() -> None:
    made: list[str] = []
    target = Target("t", False, "dev", "ledger", "bodies", "p/", "replay", {}, made.append)
    target.ledger()
    assert made == ["dynamodb"]
    target.ledger(with_bodies=True)
    assert made == ["dynamodb", "s3", "dynamodb"]


# -- the line that names it


def test_the_line_has_account_and_region_of_the_stack_without_a_further_call(
    aws: Clients,
) -> None:
    target = connect(Selection(stack="Inbox"))
    assert target.line == "Inbox · account 123456789012 · eu-west-1"
    assert [service for service, _ in aws.made] == ["cloudformation"]


def test_the_line_of_the_local_inbox_has_its_url(running: State) -> None:
    assert connect(Selection(local=True)).line == "local · http://127.0.0.1:8787"


def test_each_command_names_its_target_once(cli: Cli, inbox: Inbox) -> None:
    shown = cli("inbox", "list")
    assert shown.target == "WebhookInbox-test · account 123456789012 · eu-central-1"


def test_with_json_the_target_is_named_on_a_terminal_only(
    cli: Cli, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("inbox", "list", "--json").target == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert cli("inbox", "list", "--json").target.startswith("WebhookInbox-test · account")


def test_a_planned_stack_is_named_by_the_caller_and_without_the_right_by_its_region(
    cli: Cli, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(**_: str) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "x")

    cli.deployed = False
    shown = cli("secrets", "list")
    assert (shown.code, shown.target) == (
        0,
        "WebhookInbox-test · account 123456789012 · us-east-1",
    )
    monkeypatch.setattr(client("sts"), "get_caller_identity", denied)
    shown = cli("secrets", "list")
    assert (shown.code, shown.target) == (0, "WebhookInbox-test · account unknown · us-east-1")
