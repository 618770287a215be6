"""The whole: what must keep its name, what others read, and where it can be embedded."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sns as sns
from webhook_inbox_cdk.inbox import InboxProps, WebhookInbox
from webhook_inbox_cdk.processor import Placement

from tests.infra.conftest import INBOX, write_functions
from tests.infra.template import KEPT_ONCE_DEPLOYED, Template, named
from webhook_inbox.domain.errors import ConfigurationError

# A changed id replaces the resource: another address to register at every provider, an empty
# table, no valid completion tokens. Change the construct tree if you must; never these.
PINNED = {
    "InboxApiHttp889206E3": "AWS::ApiGatewayV2::Api",
    "InboxApiStage9058D5F4": "AWS::ApiGatewayV2::Stage",
    "InboxApiHttpANYwebhookssourceEF7FD0C5": "AWS::ApiGatewayV2::Route",
    "InboxLedgerTable21E94605": "AWS::DynamoDB::GlobalTable",
    "InboxBodiesBucket7F744A95": "AWS::S3::Bucket",
    "InboxLanedefaultWorkD7E8DAFD": "AWS::SQS::Queue",
    "InboxLanedefaultDeadLetters0FA0FA60": "AWS::SQS::Queue",
    "InboxSecretsCompletionKey17C2740F": "AWS::SecretsManager::Secret",
}
OUTPUTS = {
    "ApiUrl",
    "ApproverPolicyArn",
    "OperatorPolicyArn",
    "ReaderPolicyArn",
    "BucketName",
    "DlqUrls",
    "GeneratedKeys",
    "IngestFunctionName",
    "LogGroupNames",
    "ProcessorFunctionNames",
    "QueueUrls",
    "ReconcilerFunctionName",
    "ReplayFunctionName",
    "SecretPrefix",
    "Stage",
    "TableName",
    "WebhookUrlGithub",
    "WebhookUrlStripeEu",
}


def test_ids_of_what_must_not_be_replaced_stay(dev: Template, prod: Template) -> None:
    for template in (dev, prod):
        assert {name: template.ids.get(name) for name in PINNED} == PINNED


def test_the_template_has_the_manifest_for_the_command_line(dev: Template) -> None:
    found = dev.manifest
    assert found.stage == "dev"
    assert found.sources.keys() >= {"github"}
    assert found.handlers


def test_what_the_docs_import_makes_a_template_of_its_own(prod: Template) -> None:
    """`cdk import` sends these resources alone, each with what keeps it."""
    page = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text()
    mapping = json.loads(page.partition("`kept.json` maps")[2].split("```")[1].removeprefix("json"))
    assert {name: list(keys) for name, keys in mapping.items()} == {
        "InboxLedgerTable21E94605": ["TableName"],
        "InboxBodiesBucket7F744A95": ["BucketName"],
        "InboxApiHttp889206E3": ["ApiId"],
    }
    for name in mapping:
        resource = prod.body["Resources"][name]
        assert resource["DeletionPolicy"] in KEPT_ONCE_DEPLOYED
        text = json.dumps(resource)
        assert "Fn::GetAtt" not in text
        assert not [other for other in prod.ids if f'"Ref": "{other}"' in text]


def test_everything_retained_is_known(dev: Template) -> None:
    retained = {
        dev.ids[name]
        for name, resource in dev.body["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    }
    assert retained == {
        "AWS::ApiGatewayV2::Api",
        "AWS::DynamoDB::GlobalTable",
        "AWS::S3::Bucket",
        "AWS::SQS::Queue",
    }


def test_outputs_are_those_that_the_command_line_reads(dev: Template) -> None:
    assert set(dev.outputs) == OUTPUTS
    assert named(dev.outputs["Stage"]) == "dev"


def test_outputs_by_lane_are_json(dev: Template) -> None:
    for name in ("QueueUrls", "DlqUrls", "ProcessorFunctionNames"):
        assert list(json.loads(named(dev.outputs[name]))) == ["default", "slow"]


def test_each_function_has_its_log_group_in_an_output(dev: Template) -> None:
    groups = json.loads(named(dev.outputs["LogGroupNames"]))
    assert len(groups) == len(dev.all("AWS::Lambda::Function"))
    for function, group in groups.items():
        assert function.startswith("${Inbox")
        assert "Logs" in group


def test_each_source_has_an_address_to_register(dev: Template) -> None:
    api = named(dev.outputs["ApiUrl"])
    assert named(dev.outputs["WebhookUrlGithub"]) == f"{api}/webhooks/github"
    assert named(dev.outputs["WebhookUrlStripeEu"]) == f"{api}/webhooks/stripe-eu"


def test_sources_that_differ_by_dashes_only_are_refused(tmp_path: Path, props: InboxProps) -> None:
    inbox = INBOX + '[sources.a-1b]\nprovider = "github"\n[sources.a1b]\nprovider = "github"\n'
    functions = write_functions(tmp_path, inbox=inbox)
    app = App(outdir=str(tmp_path / "out"))
    with pytest.raises(ConfigurationError, match="'a1b' differs from another source"):
        WebhookInbox(Stack(app, "Dashes"), "Inbox", replace(props, functions=functions))


def test_the_stack_of_prod_is_protected_against_deletion(props: InboxProps, tmp_path: Path) -> None:
    """The CDK command line applies what the assembly's manifest has."""
    app = App(outdir=str(tmp_path))
    for stage in ("prod", "dev"):
        WebhookInbox(Stack(app, stage), "Inbox", replace(props, stage=stage))
    manifest = json.loads(Path(app.synth().directory, "manifest.json").read_text())
    properties = {name: each["properties"] for name, each in manifest["artifacts"].items()}
    assert properties["prod"]["terminationProtection"] is True
    assert not properties["dev"].get("terminationProtection")


def test_stages_have_the_same_resources(dev: Template, prod: Template) -> None:
    assert dev.ids == prod.ids


@pytest.mark.parametrize("stage", ["", "Prod", "1st", "a_b", "x" * 21, "prod\n"])
def test_a_stage_that_cannot_be_part_of_names_is_refused(props: InboxProps, stage: str) -> None:
    with pytest.raises(ConfigurationError, match="use 1-20 of a-z 0-9 -, a letter first"):
        WebhookInbox(Stack(App(), "Stage"), "Inbox", replace(props, stage=stage))


def test_a_foreign_app_embeds_the_inbox_beside_its_own(props: InboxProps, tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    stack = Stack(app, "Shop")
    orders = sns.Topic(stack, "Orders")
    inbox = WebhookInbox(stack, "Webhooks", replace(props, stage="shop"))
    for processor in inbox.processors.values():
        orders.grant_publish(processor)
    template = Template.of(Path(app.synth().directory), "Shop")
    assert set(template.outputs) == OUTPUTS
    assert template.one("AWS::DynamoDB::GlobalTable", "WebhooksLedger")
    for lane in ("default", "slow"):
        policy = template.one("AWS::IAM::Policy", f"WebhooksProcessor{lane}Role")
        assert "sns:Publish" in str(policy)


def test_warnings_are_annotations_that_the_cdk_prints(props: InboxProps, tmp_path: Path) -> None:
    inbox = f'{INBOX}[sources.mail]\nprovider = "sendgrid"\n'
    functions = write_functions(tmp_path, inbox=inbox)
    stack = Stack(App(outdir=str(tmp_path / "out")), "Inbox")
    made = WebhookInbox(stack, "Inbox", replace(props, functions=functions))
    found = [entry.data for entry in made.node.metadata if entry.type == "aws:cdk:warning"]
    alarms, placeholder, warning = found
    assert 'inbox.toml [destinations.crm] base_url: "https://crm.example" belongs to' in placeholder
    assert "inbox.toml [alarms]: no address receives the alarms of the stage dev" in alarms
    assert "inbox.toml [sources.mail]: no handler takes its events" in warning


def test_an_import_that_the_bundle_does_not_contain_is_refused(
    props: InboxProps, tmp_path: Path
) -> None:
    functions = write_functions(tmp_path)
    billing = functions / "handlers" / "billing.py"
    billing.write_text("import stripe\n" + billing.read_text())
    with pytest.raises(ConfigurationError, match=r"handlers/billing\.py:1: imports stripe, which"):
        WebhookInbox(Stack(App(), "Inbox"), "Inbox", replace(props, functions=functions))


def test_two_inboxes_in_one_stack_are_refused(props: InboxProps, tmp_path: Path) -> None:
    stack = Stack(App(outdir=str(tmp_path)), "Two")
    WebhookInbox(stack, "First", props)
    with pytest.raises(RuntimeError, match="already a Construct with name"):
        WebhookInbox(stack, "Second", replace(props, stage="other"))


def test_processors_run_in_a_network_on_request(props: InboxProps, tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    stack = Stack(app, "Inbox")
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-1",
        availability_zones=["eu-west-1a", "eu-west-1b"],
        private_subnet_ids=["subnet-a", "subnet-b"],
    )
    WebhookInbox(stack, "Inbox", replace(props, placement=Placement(vpc=vpc)))
    template = Template.of(Path(app.synth().directory), "Inbox")
    placed = {name for name, f in template.all("AWS::Lambda::Function").items() if "VpcConfig" in f}
    assert len(placed) == 2
    assert all(name.startswith("InboxProcessor") for name in placed)
    assert template.function("processor")["VpcConfig"]["SubnetIds"] == ["subnet-a", "subnet-b"]
    assert "ec2:CreateNetworkInterface" in template.rights("processor")["*"]
