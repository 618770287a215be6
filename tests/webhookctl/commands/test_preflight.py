"""`preflight` as an operator runs it; each request and answer has the shape of botocore's model."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.credentials import EC
from botocore.exceptions import ClientError, MissingDependencyException
from botocore.validate import validate_parameters

from tests.webhookctl.commands.stage import Cli, Inbox, client
from webhook_inbox.adapters.aws.reader import PAGES
from webhook_inbox.domain.manifest import METADATA, Manifest, SourceSpec

STACK = "WebhookInbox-dev"
MANIFEST = Manifest(
    stage="dev",
    sources={name: SourceSpec(name, name, name) for name in ("github", "stripe")},
    secrets=("crm", "github", "stripe"),
)
APP = """
import json, os
from pathlib import Path

context = json.loads(os.environ["CDK_CONTEXT_JSON"])
out = Path(os.environ["CDK_OUTDIR"])
(out / "Inbox.template.json").write_text(Path("template.json").read_text())
(out / "code").mkdir()
(out / "code" / "a.py").write_text("x" * 1000)
(out / "Inbox.assets.json").write_text(json.dumps({"files": {"code": {
    "source": {"path": "code", "packaging": "zip"},
    "destinations": {"here": {"bucketName": "b", "objectKey": "k"}},
}}}))
(out / "manifest.json").write_text(json.dumps({"artifacts": {
    "Inbox.assets": {"type": "cdk:asset-manifest", "properties": {"file": "Inbox.assets.json"}},
    "Inbox": {"type": "aws:cloudformation:stack", "dependencies": ["Inbox.assets"], "properties": {
        "templateFile": "Inbox.template.json",
        "stackName": context.get("stack", "WebhookInbox") + "-" + context["stage"],
        "requiresBootstrapStackVersion": 6,
        "bootstrapStackVersionSsmParameter": "/cdk-bootstrap/hnb659fds/version",
    }},
}}))
"""
QUEUE_URL = "https://sqs.us-east-1.amazonaws.com/111122223333/webhook-inbox-dev-default"
CONSOLE = "Service Quotas console > AWS services"


def template(*, workers: int = 2, reserved: int | None = None, routes: int = 1) -> dict[str, Any]:
    """Returns a template with one lane, its queue with a fixed name, and one API."""
    own = {} if reserved is None else {"ReservedConcurrentExecutions": reserved}
    resources: dict[str, Any] = {
        "Worker": {"Type": "AWS::Lambda::Function", "Properties": own},
        "Mapping": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "FunctionName": {"Ref": "Worker"},
                "ScalingConfig": {"MaximumConcurrency": workers},
            },
        },
        "Dead": {"Type": "AWS::SQS::Queue"},
        "Work": {
            "Type": "AWS::SQS::Queue",
            "Properties": {"QueueName": "webhook-inbox-dev-default"},
        },
        "Logs": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "/inbox/dev"}},
        "Api": {"Type": "AWS::ApiGatewayV2::Api"},
        "Alarm": {"Type": "AWS::CloudWatch::Alarm"},
    }
    for number in range(routes):
        resources[f"Route{number}"] = {"Type": "AWS::ApiGatewayV2::Route"}
    return {"Resources": resources, "Metadata": {METADATA: json.dumps(MANIFEST.to_data())}}


def settings(*, total: int = 10, unreserved: int | None = None, used: int = 0) -> dict[str, Any]:
    """Returns Lambda's answer for an account; the default is a new one."""
    return {
        "AccountLimit": {
            "TotalCodeSize": 80_530_636_800,
            "ConcurrentExecutions": total,
            "UnreservedConcurrentExecutions": total if unreserved is None else unreserved,
        },
        "AccountUsage": {"TotalCodeSize": used, "FunctionCount": 0},
    }


def described(status: str) -> dict[str, Any]:
    """Returns CloudFormation's answer for the stack."""
    stack = {"StackName": STACK, "StackStatus": status, "CreationTime": datetime.now(UTC)}
    return {"Stacks": [stack]}


def document_of(*names: str) -> dict[str, Any]:
    """Returns Secrets Manager's answer for a document."""
    return {"SecretString": json.dumps(dict.fromkeys(names, "only a test"))}


class Account:
    """Answers by operation; a text is the code of an error, a function takes the request."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.answers: dict[str, Any] = {
            "GetCallerIdentity": {
                "Account": "111122223333",
                "Arn": "arn:aws:sts::111122223333:assumed-role/deployer/ada",
            },
            "GetParameter": {"Parameter": {"Value": "31"}},
            "DescribeStacks": "ValidationError",
            "GetTemplate": "ValidationError",
            "DescribeStackResources": "ValidationError",
            "ListStacks": {"StackSummaries": []},
            "GetQueueUrl": "AWS.SimpleQueueService.NonExistentQueue",
            "DescribeLogGroups": {"logGroups": [{"logGroupName": "/inbox/dev-other"}]},
            "DescribeSecret": {"Name": "a document"},
            "GetSecretValue": document_of("github", "stripe", "crm"),
            "GetAccountSettings": settings(),
            "GetServiceQuota": {"Quota": {"QuotaName": "Routes per API", "Value": 300.0}},
            "GetApis": {"Items": []},
            "DescribeResourcePolicies": {"resourcePolicies": []},
        }

    def answer(self, caller: BaseClient, operation: str, values: dict[str, Any]) -> Any:
        """Replaces the call, and validates the request and the answer."""
        model = caller.meta.service_model.operation_model(operation)
        validate_parameters(values, model.input_shape)
        self.called.add(f"{caller.meta.service_model.service_name}:{operation}")
        reply = self.answers[operation]
        reply = reply(values) if callable(reply) else reply
        if isinstance(reply, str):
            raise ClientError({"Error": {"Code": reply, "Message": "no"}}, operation)
        if isinstance(reply, Exception):
            raise reply
        if operation == "GetTemplate":  # botocore decodes the text after the validation
            validate_parameters(
                {"TemplateBody": json.dumps(reply["TemplateBody"])}, model.output_shape
            )
            return reply
        validate_parameters(reply, model.output_shape)
        return reply


@pytest.fixture
def inbox() -> Inbox:
    """An inbox in memory, whose clock is the machine's."""
    return Inbox()


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """A new account, bootstrapped, without the stack."""
    made = Account()

    def call(caller: BaseClient, operation: str, values: dict[str, Any]) -> Any:
        return made.answer(caller, operation, values)

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    monkeypatch.setattr("webhook_inbox.adapters.aws.account.Account.clients", staticmethod(client))
    return made


@pytest.fixture
def project(checkout: Path) -> Path:
    """A project whose app writes its assembly at once."""
    top = checkout.parent
    (top / "app.py").write_text(APP)
    (top / "template.json").write_text(json.dumps(template()))
    return top


Checks = dict[str, dict[str, str]]
Run = Callable[..., Checks]


def at_once(root: Path, directory: Path, context: dict[str, str]) -> None:
    """Runs the project's app in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDK_CONTEXT_JSON", json.dumps(context))
        patch.setenv("CDK_OUTDIR", str(directory))
        exec((root / "app.py").read_text(), {})


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saves the start of another Python."""
    monkeypatch.setattr("webhookctl.local.deployment.plan.run_app", at_once)


@pytest.fixture
def run(cli: Cli, account: Account, project: Path, quick: None) -> Run:
    """Runs the command, and returns the results by check; the exit status follows from them."""

    def ran(*options: str, changed: dict[str, Any] | None = None) -> Checks:
        if changed is not None:
            (project / "template.json").write_text(json.dumps(changed))
        shown = cli("--json", "--stack", STACK, "preflight", *options)
        checks = {each["check"]: each for each in json.loads(shown.out)["checks"]}
        assert shown.code == any(each["level"] == "failure" for each in checks.values()), shown.err
        assert all((each["level"] == "ok") == (each["remedy"] == "") for each in checks.values())
        return checks

    return ran


def test_the_default_stack_passes_in_a_new_account(run: Run, account: Account) -> None:
    checks = run()
    assert {each["level"] for each in checks.values()} == {"ok"}
    assert checks["lambda concurrency"]["figure"].endswith("a replay leave 6 for ingest")
    assert checks["credentials"]["figure"].startswith("account 111122223333, arn:aws:sts::1111")
    assert not {name for name in account.called if ":Get" not in name} - {
        "apigatewayv2:GetApis",
        "cloudformation:DescribeStacks",
        "cloudformation:ListStacks",
        "logs:DescribeLogGroups",
        "logs:DescribeResourcePolicies",
        "secretsmanager:DescribeSecret",
    }  # it reads only


def test_the_text_names_figure_limit_and_remedy(
    cli: Cli, account: Account, project: Path, quick: None
) -> None:
    account.answers["GetParameter"] = "ParameterNotFound"
    shown = cli("--stack", STACK, "preflight")
    assert shown.code == 1
    lines = shown.out.splitlines()
    place = lines.index(
        "failure  bootstrap: none (/cdk-bootstrap/hnb659fds/version); limit at least version 6"
    )
    assert lines[place + 1] == (
        "         run `npx --yes aws-cdk@2.1148.1 bootstrap aws://111122223333/us-east-1`"
    )
    assert "1 failure." in shown.err


@pytest.mark.parametrize(("version", "level"), [("5", "failure"), ("6", "ok")])
def test_bootstrap_resources_of_an_older_version_fail(
    run: Run, account: Account, version: str, level: str
) -> None:
    account.answers["GetParameter"] = {"Parameter": {"Value": version}}
    assert run()["bootstrap"]["level"] == level


def test_a_bootstrap_parameter_with_a_name_of_its_own(run: Run, project: Path) -> None:
    app = (project / "app.py").read_text()
    (project / "app.py").write_text(app.replace("/cdk-bootstrap/hnb659fds/version", "our-cdk"))
    assert run()["bootstrap"]["level"] == "ok"


# -- one resolution of profile and region


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with two profiles, and no keys or region in the environment."""
    file = tmp_path / "aws-config"
    keys = "aws_access_key_id = test\naws_secret_access_key = test\n"
    file.write_text(
        f"[default]\nregion = eu-west-1\n{keys}[profile ops]\n{keys}"
        f"[profile far]\nregion = ap-south-1\n{keys}"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    return file


@pytest.mark.parametrize(
    ("variables", "profile", "region"),
    [
        ({}, "ada, no profile set", "eu-west-1, from profile default of the config file"),
        ({"AWS_PROFILE": "far"}, "profile far (AWS_PROFILE)", "ap-south-1, from profile far of"),
        # The profile has no region: that of "default".
        ({"AWS_PROFILE": "ops"}, "profile ops (AWS_PROFILE)", "eu-west-1, from profile default"),
        # botocore alone prefers the other variable.
        (
            {"AWS_PROFILE": "far", "AWS_DEFAULT_PROFILE": "ops"},
            "profile far (AWS_PROFILE)",
            "ap-south-1",
        ),
        (
            {"AWS_PROFILE": "far", "AWS_REGION": "us-east-2", "AWS_DEFAULT_REGION": "us-west-1"},
            "profile far",
            "us-east-2, from AWS_REGION",
        ),
        (
            {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_PROFILE": "far"},
            "ada, keys of AWS_ACCESS_KEY_ID",
            "ap-south-1, from profile far",
        ),
    ],
)
def test_profile_and_region_are_those_of_the_cdk_command_line(
    run: Run,
    configuration: Path,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    profile: str,
    region: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    checks = run()
    assert profile in checks["credentials"]["figure"]
    assert checks["region"]["figure"].startswith(region)
    assert checks["cdk agrees"]["level"] == "ok"


def test_options_that_the_cdk_command_line_does_not_see_are_a_warning(
    run: Run, configuration: Path
) -> None:
    found = run("--profile", "far", "--region", "eu-north-1")["cdk agrees"]
    assert found["level"] == "warning"
    assert found["figure"] == (
        "the CDK CLI uses no profile set and region eu-west-1 (profile default of the config file)"
    )
    assert found["remedy"] == (
        "add --profile far --region eu-north-1 to each cdk command, or run `export AWS_PROFILE=far"
        " AWS_REGION=eu-north-1`"
    )


def test_a_profile_in_cdk_json_is_a_warning(run: Run, configuration: Path, project: Path) -> None:
    (project / "cdk.json").write_text(json.dumps({"app": "python3 app.py", "profile": "far"}))
    found = run()["cdk agrees"]
    assert found["level"] == "warning"
    assert "uses profile far (CDK_PROFILE or cdk.json) and region ap-south-1" in found["figure"]


def test_without_a_region_nothing_else_is_checked(
    run: Run, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    checks = run()
    assert checks.keys() == {"region"}
    assert "export AWS_REGION=NAME" in checks["region"]["remedy"]
    assert not account.called


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ("ExpiredToken", "`aws login`"),
        (MissingDependencyException(msg="CRT"), "pip install 'botocore[crt]'"),
    ],
)
def test_credentials_that_do_not_work_end_the_checks(
    run: Run, account: Account, error: object, remedy: str
) -> None:
    account.answers["GetCallerIdentity"] = error
    checks = run()
    assert checks.keys() == {"region", "credentials"}
    assert remedy in checks["credentials"]["remedy"]


def test_the_root_user_is_a_warning(run: Run, account: Account) -> None:
    arn = "arn:aws:iam::111122223333:root"
    account.answers["GetCallerIdentity"] = {"Account": "111122223333", "Arn": arn}
    assert run()["credentials"]["level"] == "warning"


def test_sessions_of_aws_login_can_sign() -> None:
    assert EC is not None  # awscrt is installed


# -- concurrency


@pytest.mark.parametrize(
    ("workers", "level"), [(2, "ok"), (5, "ok"), (6, "warning"), (8, "failure")]
)
def test_workers_leave_executions_to_ingest(run: Run, workers: int, level: str) -> None:
    found = run(changed=template(workers=workers))["lambda concurrency"]
    assert found["level"] == level
    assert found["limit"] == "10 in the account, 10 unreserved"
    assert ("lower `workers` of a lane in inbox.toml" in found["remedy"]) == (level != "ok")


@pytest.mark.parametrize(("reserved", "level"), [(900, "ok"), (901, "failure")])
def test_reservations_leave_100_unreserved(
    run: Run, account: Account, reserved: int, level: str
) -> None:
    account.answers["GetAccountSettings"] = settings(total=1000)
    checks = run(changed=template(reserved=reserved))
    assert checks["lambda reservations"]["level"] == level
    assert "0 workers of 1 lane" in checks["lambda concurrency"]["figure"]


def test_the_deployed_stacks_own_reservations_are_free_for_it(run: Run, account: Account) -> None:
    account.answers["GetAccountSettings"] = settings(total=1000, unreserved=100)
    account.answers["DescribeStacks"] = described("UPDATE_COMPLETE")
    account.answers["GetTemplate"] = {"TemplateBody": template(reserved=900)}
    assert run(changed=template(reserved=900))["lambda reservations"]["level"] == "ok"


# -- quotas


@pytest.mark.parametrize(("routes", "level"), [(300, "ok"), (301, "failure")])
def test_routes(run: Run, routes: int, level: str) -> None:
    found = run(changed=template(routes=routes))["routes of the API"]
    assert (found["level"], found["limit"]) == (level, "300")


@pytest.mark.parametrize(
    "reply",
    ["AccessDeniedException", "NoSuchResourceException", {"Quota": {"QuotaName": "x", "Value": 1}}],
    ids=["denied", "unknown", "another quota"],
)
def test_a_quota_that_cannot_be_read_is_the_documented_one(
    run: Run, account: Account, reply: object
) -> None:
    account.answers["GetServiceQuota"] = reply
    assert run()["routes of the API"]["limit"] == "300 (documented default)"


@pytest.mark.parametrize(("in_use", "level"), [(599, "ok"), (600, "failure")])
def test_apis_of_all_pages(run: Run, account: Account, in_use: int, level: str) -> None:
    item = {"Name": "n", "ProtocolType": "HTTP", "RouteSelectionExpression": "x"}

    def page(values: dict[str, Any]) -> dict[str, Any]:
        start = int(values.get("NextToken", "0"))
        more = {"NextToken": str(start + 100)} if start + 100 < in_use else {}
        return {"Items": [item] * min(100, in_use - start), **more}

    account.answers["GetApis"] = page
    assert run()["APIs of the region"]["level"] == level


def test_a_count_without_an_end_is_unknown(run: Run, account: Account) -> None:
    account.answers["GetApis"] = {"Items": [], "NextToken": "more"}
    found = run()["APIs of the region"]
    assert found["level"] == "unknown"
    assert f"more than {PAGES} pages" in found["remedy"]


@pytest.mark.parametrize(
    ("documents", "level"),
    [(["{}"] * 9, "ok"), (["{}"] * 10, "warning"), (["delivery.logs.amazonaws.com"] * 10, "ok")],
)
def test_log_policies(run: Run, account: Account, documents: list[str], level: str) -> None:
    policies = [{"policyName": "p", "policyDocument": text} for text in documents]
    account.answers["DescribeResourcePolicies"] = {"resourcePolicies": policies}
    assert run()["log resource policies"]["level"] == level


def test_code_storage_that_is_full(run: Run, account: Account) -> None:
    account.answers["GetAccountSettings"] = settings(used=80_530_636_800 - 999)
    found = run()["lambda code storage"]
    assert found["level"] == "failure"
    assert found["remedy"].startswith(CONSOLE)


# -- names


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        ("CREATE_COMPLETE", ""),
        ("UPDATE_ROLLBACK_COMPLETE", ""),
        ("ROLLBACK_COMPLETE", f"`aws cloudformation delete-stack --stack-name {STACK}`"),
        ("ROLLBACK_FAILED", f"`aws cloudformation delete-stack --stack-name {STACK}`"),
        ("DELETE_FAILED", "remove it, and run `aws cloudformation delete-stack"),
        ("UPDATE_ROLLBACK_FAILED", f"rollback {STACK}`, or `aws cloudformation continue-update-"),
        ("REVIEW_IN_PROGRESS", "delete the empty stack"),
        ("UPDATE_IN_PROGRESS", "wait until it ends"),
    ],
)
def test_the_state_of_the_stack(run: Run, account: Account, status: str, remedy: str) -> None:
    account.answers["DescribeStacks"] = described(status)
    found = run()["stack"]
    assert found["figure"] == f"{STACK} {status}"
    assert remedy in found["remedy"]
    assert (found["level"] == "ok") == (remedy == "")


def owned_by(stack: str) -> dict[str, Any]:
    """Returns CloudFormation's answer for a resource of a stack."""
    resource = {
        "StackName": stack,
        "LogicalResourceId": "x",
        "ResourceType": "x",
        "Timestamp": datetime.now(UTC),
        "ResourceStatus": "CREATE_COMPLETE",
    }
    return {"StackResources": [resource]}


TAKEN: dict[str, tuple[dict[str, Any], str, str]] = {
    "GetQueueUrl": (
        {"QueueUrl": QUEUE_URL},
        "queue webhook-inbox-dev-default",
        f"`aws sqs delete-queue --queue-url {QUEUE_URL}`",
    ),
    "DescribeLogGroups": (
        {"logGroups": [{"logGroupName": "/inbox/dev"}]},
        "log group /inbox/dev",
        "`aws logs delete-log-group --log-group-name /inbox/dev`",
    ),
}


@pytest.mark.parametrize("operation", TAKEN)
def test_a_name_that_is_taken(run: Run, account: Account, operation: str) -> None:
    account.answers[operation], figure, remedy = TAKEN[operation]
    found = run()["names"]
    assert found["figure"] == f"{figure} belongs to no stack"
    assert remedy in found["remedy"]
    account.answers["DescribeStackResources"] = owned_by("Other")
    found = run()["names"]
    assert found["figure"] == f"{figure} belongs to the stack Other"
    assert found["remedy"] == "choose another stack name, or remove the stack Other"
    account.answers["DescribeStackResources"] = owned_by(STACK)
    assert run()["names"]["level"] == "ok"


@pytest.mark.parametrize(("seconds", "level"), [(59, "warning"), (60, "ok")])
def test_queues_of_a_stack_that_was_just_deleted(
    run: Run, account: Account, inbox: Inbox, seconds: int, level: str
) -> None:
    now = inbox.clock.now()
    summary = {"StackName": STACK, "CreationTime": now, "StackStatus": "DELETE_COMPLETE"}
    ago = [seconds, 3600]
    account.answers["ListStacks"] = {
        "StackSummaries": [
            {**summary, "DeletionTime": now - timedelta(seconds=each)} for each in ago
        ]
    }
    assert run()["deleted queues"]["level"] == level


def test_a_deletion_in_the_future_of_this_clock_is_just_now(
    run: Run, account: Account, inbox: Inbox
) -> None:
    now = inbox.clock.now()
    summary = {"StackName": STACK, "CreationTime": now, "StackStatus": "DELETE_COMPLETE"}
    later = now + timedelta(minutes=1)
    account.answers["ListStacks"] = {"StackSummaries": [{**summary, "DeletionTime": later}]}
    assert run()["deleted queues"]["figure"] == f"{STACK} was deleted 0 s ago"


# -- secrets


def test_secrets_without_a_value_are_a_warning(run: Run, account: Account) -> None:
    account.answers["GetSecretValue"] = document_of("github", "crm")
    found = run()["secrets"]
    assert (found["level"], found["figure"]) == ("warning", "2 of 3 set; missing: stripe")
    assert f"`webhookctl --stack {STACK} secrets set NAME`" in found["remedy"]
    account.answers["DescribeSecret"] = "ResourceNotFoundException"
    assert run()["secrets"]["figure"] == "0 of 3 set; missing: github, stripe, crm"


def test_a_document_that_is_scheduled_for_deletion_fails(run: Run, account: Account) -> None:
    account.answers["DescribeSecret"] = {"DeletedDate": datetime.now(UTC)}
    found = run()["secrets"]
    assert found["level"] == "failure"
    assert f"restore-secret --secret-id webhook-inbox/{STACK}/sources`" in found["remedy"]


def test_a_malformed_document_is_unknown_and_not_shown(run: Run, account: Account) -> None:
    account.answers["GetSecretValue"] = {"SecretString": "whsec_hidden"}
    found = run()["secrets"]
    assert found["level"] == "unknown"
    assert "is not JSON" in found["remedy"]
    assert "hidden" not in str(found)
    account.answers["GetSecretValue"] = {"SecretBinary": b"whsec_hidden"}
    assert "is binary" in run()["secrets"]["remedy"]


# -- rights, and what is no account


RIGHTS = {
    "GetParameter": ("bootstrap", "ssm:GetParameter"),
    "DescribeStacks": ("stack", "cloudformation:DescribeStacks"),
    "GetTemplate": ("APIs of the region", "cloudformation:GetTemplate"),
    "ListStacks": ("deleted queues", "cloudformation:ListStacks"),
    "GetQueueUrl": ("names", "sqs:GetQueueUrl"),
    "GetAccountSettings": ("lambda concurrency", "lambda:GetAccountSettings"),
    "GetApis": ("APIs of the region", "apigateway:GET"),
    "DescribeResourcePolicies": ("log resource policies", "logs:DescribeResourcePolicies"),
    "DescribeLogGroups": ("names", "logs:DescribeLogGroups"),
    "DescribeSecret": ("secrets", "secretsmanager:DescribeSecret"),
    "GetSecretValue": ("secrets", "secretsmanager:GetSecretValue"),
}


@pytest.mark.parametrize("operation", RIGHTS)
def test_a_check_without_its_right_is_unknown(run: Run, account: Account, operation: str) -> None:
    check, right = RIGHTS[operation]
    account.answers[operation] = "AccessDeniedException"
    found = run()[check]
    assert (found["level"], found["remedy"]) == ("unknown", f"request the right {right}")


@pytest.mark.parametrize(
    ("stack", "options"),
    [
        ("WebhookInbox-prod", ()),
        ("WebhookInbox-eu-prod", ()),
        ("WebhookInbox-eu-prod", ("-c", "stage=eu-prod")),
        ("My-Shop-eu-prod", ("-c", "stack=My-Shop")),
    ],
)
def test_the_stage_is_what_the_stacks_name_ends_with(
    cli: Cli, account: Account, project: Path, quick: None, stack: str, options: tuple[str, ...]
) -> None:
    assert cli("--stack", stack, "preflight", *options).code == 0


def test_a_stack_that_the_app_does_not_have_is_an_error(
    cli: Cli, account: Account, project: Path, quick: None
) -> None:
    shown = cli("--stack", "WebhookInbox-prod", "preflight", "-c", "stage=dev")
    assert "app.py synthesizes WebhookInbox-dev, and not WebhookInbox-prod" in shown.err
    assert cli("--stack", STACK, "preflight", "-c", "stage").code == 2


@pytest.mark.parametrize("options", [(), ("--local",)])
def test_the_inbox_on_this_machine_has_no_account(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("WEBHOOKCTL_TARGET", "local")
    shown = cli(*options, "preflight")
    assert shown.code in {1, 2}
    told = "no option --local here" if options else "preflight checks an AWS account"
    assert told in shown.err


def test_the_app_sees_no_credentials(cli: Cli, account: Account, project: Path) -> None:
    spied = "import os\nopen('seen', 'w').write(' '.join(n for n in os.environ if 'AWS' in n))\n"
    (project / "app.py").write_text(spied + APP)
    assert cli("--stack", STACK, "preflight").code == 0
    assert (project / "seen").read_text() == ""
    assert os.environ["AWS_ACCESS_KEY_ID"]


def test_an_app_of_another_user_is_not_run(
    cli: Cli, account: Account, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "app.py").write_text("open('ran', 'w')")
    monkeypatch.setattr("webhookctl.local.deployment.synth.owned", lambda path: False)
    shown = cli("--stack", STACK, "preflight")
    assert shown.code == 1
    assert "app.py belongs to another user" in shown.err
    assert not (project / "ran").exists()
