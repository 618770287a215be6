"""The functions: their shape, their environment, and exactly what each may do."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import aws_iam as iam
from webhook_inbox_cdk.processor import Placement, allow

from tests.infra.conftest import INBOX, Synthesize, write_functions
from tests.infra.template import Template, named
from webhook_inbox.adapters.environment import (
    IngestEnvironment,
    MaintenanceEnvironment,
    ProcessorEnvironment,
    ReplayEnvironment,
)
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.secrets import COMPLETION_KEY, TOKEN_KEY

FUNCTIONS = ("ingest", "processor", "replay", "reconciler")
ROWS = {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"}
DEAD = {"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage"}
DOCUMENT = (
    "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}"
    ":secret:webhook-inbox/Inbox/"
)
READ = "secretsmanager:GetSecretValue"
LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}


def rights(template: Template, name: str) -> dict[str, set[str]]:
    """A function's rights, the resources by short names instead of logical ids."""
    return {_short(resource): actions for resource, actions in template.rights(name).items()}


def _short(resource: str) -> str:
    known = {
        "InboxLedgerTable": "table",
        "InboxBodiesBucket": "bucket",
        "InboxLanedefaultWork": "work",
        "InboxLaneslowWork": "slow work",
        "InboxLanedefaultDead": "dead",
        "InboxLaneslowDead": "slow dead",
        "InboxSecretsTokenKey": "token key",
        "InboxSecretsCompletionKey": "completion key",
    }
    for start, short in known.items():
        if resource.startswith("${" + start):
            return short + resource.partition("}")[2]
    if resource.startswith(DOCUMENT):
        return "document" + resource.removeprefix(DOCUMENT)
    return "logs" if "Logs" in resource else resource


def test_ingest_writes_sends_and_reads_its_sources_secrets_only(dev: Template) -> None:
    assert rights(dev, "ingest") == {
        "logs": LOGS,
        "table": {*ROWS, "dynamodb:PutItem"},
        "work": {"sqs:SendMessage"},
        "slow work": {"sqs:SendMessage"},
        "bucket/bodies/*": {"s3:PutObject"},
        "bucket/rejected/*": {"s3:PutObject"},
        "documentsources-??????": {READ},
    }


def test_ingest_changes_its_document_where_a_provider_delivers_its_secret_and_creates_none(
    synthesize: Synthesize, tmp_path: Path
) -> None:
    asana = '\n[sources.asana]\nprovider = "asana"\nsecret = "asana-key"\n'
    template = synthesize(functions=write_functions(tmp_path, inbox=INBOX + asana))

    secrets = {place: acts for place, acts in rights(template, "ingest").items() if READ in acts}

    assert secrets == {"documentsources-??????": {READ, "secretsmanager:PutSecretValue"}}


def test_ingest_reads_the_key_that_tokens_are_hashed_with_where_a_source_bears_one(
    synthesize: Synthesize, dev: Template, tmp_path: Path
) -> None:
    bot = '\n[sources.bot]\nprovider = "telegram"\n'
    bearing = synthesize(functions=write_functions(tmp_path, inbox=INBOX + bot))
    made = bearing.all("AWS::SecretsManager::Secret")
    assert len(made) == 2
    assert all(secret["GenerateSecretString"]["PasswordLength"] >= 32 for secret in made.values())
    readers = [name for name in FUNCTIONS if "token key" in rights(bearing, name)]
    assert readers == ["ingest"]
    told = json.loads(named(bearing.outputs["GeneratedKeys"]))
    assert told == environment(bearing, "ingest").generated_keys
    assert list(told) == [TOKEN_KEY]
    assert told[TOKEN_KEY].startswith("${InboxSecretsTokenKey")
    assert "token key" not in rights(dev, "ingest")
    assert environment(dev, "ingest").generated_keys == {}


def environment(template: Template, name: str) -> Any:
    """Returns a function's variables as it reads them."""
    variables = template.function(name)["Environment"]["Variables"]
    kind = {"ingest": IngestEnvironment, "processor": ProcessorEnvironment}[name]
    return kind.read({key: named(value) for key, value in variables.items()})


def test_each_function_reads_its_own_document_and_not_the_other(dev: Template) -> None:
    documents = {name: environment(dev, name).secret_document for name in ("ingest", "processor")}
    assert documents == {
        "ingest": "webhook-inbox/Inbox/sources",
        "processor": "webhook-inbox/Inbox/handlers",
    }
    read = {
        name: [place for place, acts in rights(dev, name).items() if READ in acts]
        for name in FUNCTIONS
    }
    assert read == {
        "ingest": ["documentsources-??????"],
        "processor": ["documenthandlers-??????", "completion key"],
        "replay": [],
        "reconciler": [],
    }


def test_processors_alone_read_the_key_that_completion_tokens_are_made_with(dev: Template) -> None:
    """Ingest knows a token by its hash: it could not make one."""
    assert [name for name in FUNCTIONS if "completion key" in rights(dev, name)] == ["processor"]


def test_processor_reaches_its_own_lane_and_the_handlers_secrets_only(dev: Template) -> None:
    assert rights(dev, "processor") == {
        "logs": LOGS,
        "table": {*ROWS, "dynamodb:PutItem"},
        "work": {*DEAD, "sqs:GetQueueAttributes", "sqs:SendMessage"},
        "bucket": {"s3:ListBucket"},
        "bucket/bodies/*": {"s3:GetObject"},
        "documenthandlers-??????": {READ},
        "completion key": {READ},
    }


def test_the_processor_that_splits_batches_takes_items_in_for_every_lane(
    tmp_path: Path, synthesize: Synthesize, dev: Template
) -> None:
    batches = '[sources.mail]\nprovider = "sendgrid"\n'
    splitting = synthesize(functions=write_functions(tmp_path, inbox=INBOX + batches))
    assert rights(splitting, "processor") == {
        **rights(dev, "processor"),
        "slow work": {"sqs:SendMessage"},
        "bucket/bodies/*": {"s3:GetObject", "s3:PutObject"},
    }
    variables = splitting.function("processor")["Environment"]["Variables"]
    read = ProcessorEnvironment.read({key: named(value) for key, value in variables.items()})
    assert list(read.reachable(splitting.manifest)) == ["default", "slow"]
    others = [t.one("AWS::IAM::Policy", "InboxProcessorslowRole") for t in (splitting, dev)]
    assert others[0] == others[1]


def test_replay_finds_changes_and_sends_runs_and_clears_dead_copies(dev: Template) -> None:
    assert rights(dev, "replay") == {
        "logs": LOGS,
        "table": {*ROWS, "dynamodb:BatchGetItem", "dynamodb:PutItem"},
        "table/index/by_due": {"dynamodb:Query"},
        "table/index/by_received": {"dynamodb:Query"},
        "bucket": {"s3:ListBucket"},
        "bucket/bodies/*": {"s3:GetObject"},
        "work": {"sqs:SendMessage"},
        "slow work": {"sqs:SendMessage"},
        "dead": DEAD,
        "slow dead": DEAD,
    }


def test_reconciler_looks_at_the_backlog_and_keeps_no_audit(dev: Template) -> None:
    bodies = {"bucket", "bucket/bodies/*"}
    assert rights(dev, "reconciler") == {
        **{on: actions for on, actions in rights(dev, "replay").items() if on not in bodies},
        "table": {*ROWS, "dynamodb:BatchGetItem"},
        "work": {"sqs:SendMessage", "sqs:GetQueueAttributes"},
        "slow work": {"sqs:SendMessage", "sqs:GetQueueAttributes"},
        "*": {"cloudwatch:GetMetricStatistics"},
    }


def test_no_role_has_a_managed_policy(dev: Template) -> None:
    for role in dev.all("AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role
        [statement] = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}


def test_only_handlers_get_extra_rights(synthesize: Synthesize) -> None:
    extra = allow("ses:SendEmail", "ses:SendRawEmail", on="arn:aws:ses:eu-west-1:1:identity/a")
    template = synthesize(Placement(rights=[extra]))
    granted = {"arn:aws:ses:eu-west-1:1:identity/a": {"ses:SendEmail", "ses:SendRawEmail"}}
    assert template.rights("processor").items() >= granted.items()
    slow = template.one("AWS::IAM::Policy", "InboxProcessorslowRole")
    assert "ses:SendEmail" in str(slow)
    for name in ("ingest", "replay", "reconciler"):
        assert "ses:SendEmail" not in str(template.rights(name))


def test_allow_is_one_statement() -> None:
    statement = allow("s3:GetObject", on="arn:aws:s3:::invoices/*")
    assert isinstance(statement, iam.PolicyStatement)
    assert statement.to_statement_json() == {
        "Action": "s3:GetObject",
        "Effect": "Allow",
        "Resource": "arn:aws:s3:::invoices/*",
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_run_python_3_13_on_arm64_and_log_json(dev: Template, name: str) -> None:
    function = dev.function(name)
    assert function["Runtime"] == "python3.13"
    assert function["Architectures"] == ["arm64"]
    assert function["Handler"] == f"{name}.lambda_function.lambda_handler"


def test_functions_run_the_python_and_the_architecture_that_were_chosen(
    synthesize: Synthesize,
) -> None:
    template = synthesize(python="3.12", architecture="x86_64")
    for name in FUNCTIONS:
        assert template.function(name)["Runtime"] == "python3.12"
        assert template.function(name)["Architectures"] == ["x86_64"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_log_groups_of_their_own_that_expire(dev: Template, name: str) -> None:
    group = dev.function(name)["LoggingConfig"]["LogGroup"]["Ref"]
    assert dev.all("AWS::Logs::LogGroup")[group]["RetentionInDays"] == 30


@pytest.mark.parametrize(
    ("name", "timeout"), [("ingest", 10), ("processor", 60), ("replay", 300), ("reconciler", 300)]
)
def test_functions_end_in_time(dev: Template, name: str, timeout: int) -> None:
    assert dev.function(name)["Timeout"] == timeout


def test_only_processors_may_send_to_what_feeds_them(dev: Template) -> None:
    looping = {
        name: function["RecursiveLoop"]
        for name, function in dev.deployed("eu-west-1").all("AWS::Lambda::Function").items()
        if "RecursiveLoop" in function
    }
    assert set(looping.values()) == {"Allow"}
    assert len(looping) == 2
    assert all(name.startswith("InboxProcessor") for name in looping)


@pytest.mark.parametrize("name", ["replay", "reconciler"])
def test_lambda_repeats_no_asynchronous_invocation(dev: Template, name: str) -> None:
    configuration = dev.one("AWS::Lambda::EventInvokeConfig", f"Inbox{name.title()}")
    assert configuration["MaximumRetryAttempts"] == 0


def test_reconciler_runs_every_minute(dev: Template) -> None:
    rule = dev.one("AWS::Events::Rule")
    assert rule["ScheduleExpression"] == "rate(1 minute)"
    assert rule["State"] == "ENABLED"
    [target] = rule["Targets"]
    assert named(target["Arn"]).startswith("${InboxReconciler")
    assert target["RetryPolicy"] == {"MaximumRetryAttempts": 0}


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("ingest", IngestEnvironment),
        ("processor", ProcessorEnvironment),
        ("replay", ReplayEnvironment),
        ("reconciler", MaintenanceEnvironment),
    ],
)
def test_functions_read_the_environment_that_they_are_given(
    dev: Template, name: str, model: type[IngestEnvironment]
) -> None:
    variables = dev.function(name)["Environment"]["Variables"]
    read = model.read({key: named(value) for key, value in variables.items()})
    assert read.table_name.startswith("${InboxLedgerTable")
    assert read.queue_url.startswith("${InboxLanedefaultWork")
    if isinstance(read, MaintenanceEnvironment):
        assert list(read.dlq_names) == ["default", "slow"]
        assert all(dlq.endswith(".QueueName}") for dlq in read.dlq_names.values())
    if isinstance(read, ProcessorEnvironment):
        assert len(read.code_version) == 12


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_who_they_are(dev: Template, name: str) -> None:
    variables = dev.function(name)["Environment"]["Variables"]
    assert variables["POWERTOOLS_SERVICE_NAME"] == name
    assert variables["METRICS_NAMESPACE"] == "WebhookInbox/Inbox"


def test_processor_knows_its_queue_s_limits(dev: Template) -> None:
    variables = dev.function("processor")["Environment"]["Variables"]
    assert variables["MAX_RECEIVE_COUNT"] == "5"
    assert variables["BUCKET_NAME"]["Ref"].startswith("InboxBodiesBucket")
    assert list(environment(dev, "processor").generated_keys) == [COMPLETION_KEY]


def test_functions_are_in_no_network_unless_told(dev: Template) -> None:
    assert all("VpcConfig" not in f for f in dev.all("AWS::Lambda::Function").values())


def test_the_reconciler_and_replay_have_a_whole_cpu(dev: Template) -> None:
    memory = {name: dev.function(name)["MemorySize"] for name in FUNCTIONS}
    assert memory == {"ingest": 512, "processor": 512, "reconciler": 1769, "replay": 1769}


def test_the_memory_of_ingest_and_of_every_lane_can_be_chosen(synthesize: Synthesize) -> None:
    template = synthesize(Placement(memory=256), ingest_memory=1024)
    functions = template.all("AWS::Lambda::Function").items()
    lanes = {each["MemorySize"] for name, each in functions if "Processor" in name}

    assert (template.function("ingest")["MemorySize"], lanes) == (1024, {256})
    assert template.function("replay")["MemorySize"] == 1769


@pytest.mark.parametrize("memory", [127, 10_241])
def test_a_memory_that_lambda_does_not_have_is_refused(synthesize: Synthesize, memory: int) -> None:
    with pytest.raises(ConfigurationError, match=f"processor_memory is {memory}; Lambda takes 128"):
        synthesize(Placement(memory=memory))


def test_all_logs_are_kept_for_the_chosen_days(synthesize: Synthesize) -> None:
    groups = synthesize(log_retention=7).all("AWS::Logs::LogGroup").values()

    # Those of five functions, of which two are lanes, and the access log.
    assert [each["RetentionInDays"] for each in groups] == [7] * 6


@pytest.mark.parametrize("days", [0, 8])
def test_days_that_cloudwatch_does_not_have_are_refused(synthesize: Synthesize, days: int) -> None:
    with pytest.raises(
        ConfigurationError, match=f"cannot keep logs for {days} days; it takes 1, 3"
    ):
        synthesize(log_retention=days)
