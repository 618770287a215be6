"""Destroy, redeploy with the kept resources, and restore, as docs/deploy.md describes them.

An import sends what `cdk import` sends: the deployed template and the mapped resources.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.e2e.whole_inbox import WholeInbox
from tests.waiting import eventually
from webhook_inbox.adapters.aws.account import LOOPBACK_REGION

STACK = "Kept-local"
IAM = ["CAPABILITY_IAM"]
TABLE = "InboxLedgerTable21E94605"
BUCKET = "InboxBodiesBucket7F744A95"
API = "InboxApiHttp889206E3"
IDENTIFIERS = {TABLE: "TableName", BUCKET: "BucketName", API: "ApiId"}
KEY = {"pk": {"S": "event#kept"}, "sk": {"S": "event"}}


class Copy:
    """Another stack of the inbox's template, in the same account."""

    def __init__(self, inbox: WholeInbox) -> None:
        self.client = inbox.client
        name = "WebhookInbox-local"
        found = self.client("cloudformation").get_template(StackName=name)["TemplateBody"]
        text = found if isinstance(found, str) else json.dumps(found)
        self.template: dict[str, Any] = json.loads(text.replace(name, STACK))
        self._formation = self.client("cloudformation")

    def deploy(self, *, update: bool = False) -> dict[str, str]:
        apply = self._formation.update_stack if update else self._formation.create_stack
        apply(StackName=STACK, TemplateURL=self._uploaded(), Capabilities=IAM)
        self._await("UPDATE_COMPLETE" if update else "CREATE_COMPLETE")
        [stack] = self._formation.describe_stacks(StackName=STACK)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}

    def destroy(self) -> None:
        self._formation.delete_stack(StackName=STACK)
        eventually(lambda: self._status() in {"", "DELETE_COMPLETE"}, what="the stack is deleted")

    def adopt(self, mapping: Mapping[str, Mapping[str, str]]) -> None:
        """Makes a stack of the mapped resources."""
        resources = {name: self.template["Resources"][name] for name in mapping}
        self._formation.create_change_set(
            StackName=STACK,
            ChangeSetName="import",
            ChangeSetType="IMPORT",
            TemplateBody=json.dumps({"Resources": resources}),
            ResourcesToImport=[
                {
                    "LogicalResourceId": name,
                    "ResourceType": resources[name]["Type"],
                    "ResourceIdentifier": dict(identifier),
                }
                for name, identifier in mapping.items()
            ],
        )
        named = {"StackName": STACK, "ChangeSetName": "import"}
        eventually(
            lambda: self._formation.describe_change_set(**named)["Status"] == "CREATE_COMPLETE",
            what="the change set is made",
        )
        self._formation.execute_change_set(**named)
        self._await("IMPORT_COMPLETE")

    def physical(self) -> dict[str, dict[str, str]]:
        """Returns the mapping file's content, read before the stack is destroyed."""
        found = self._formation.describe_stack_resources(StackName=STACK)["StackResources"]
        ids = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in found}
        return {name: {key: ids[name]} for name, key in IDENTIFIERS.items()}

    def _uploaded(self) -> str:
        """Returns the template's URL; a request may contain 50 KB of it."""
        storage = self.client("s3")
        storage.create_bucket(Bucket="templates")
        storage.put_object(Bucket="templates", Key="kept.json", Body=json.dumps(self.template))
        return f"https://s3.{LOOPBACK_REGION}.amazonaws.com/templates/kept.json"

    def _await(self, status: str) -> None:
        eventually(lambda: not self._status().endswith("_IN_PROGRESS"), what=status)
        assert self._status() == status

    def _status(self) -> str:
        try:
            [stack] = self._formation.describe_stacks(StackName=STACK)["Stacks"]
        except ClientError:
            return ""
        return str(stack["StackStatus"])


@pytest.fixture
def copy(inbox: WholeInbox) -> Iterator[Copy]:
    made = Copy(inbox)
    yield made
    made.destroy()


def test_a_destroyed_stack_keeps_its_table_bucket_and_api(copy: Copy) -> None:
    tables = copy.client("dynamodb")
    outputs = copy.deploy()
    tables.put_item(TableName=outputs["TableName"], Item={**KEY, "kept": {"S": "yes"}})
    mapping = copy.physical()

    copy.destroy()

    assert mapping[TABLE] == {"TableName": outputs["TableName"]}
    row = tables.get_item(TableName=outputs["TableName"], Key=KEY)["Item"]
    assert row["kept"] == {"S": "yes"}
    copy.client("s3").head_bucket(Bucket=mapping[BUCKET]["BucketName"])
    copy.client("apigatewayv2").get_api(ApiId=mapping[API]["ApiId"])


def test_a_kept_bucket_comes_back_under_a_new_stack(copy: Copy) -> None:
    """The emulation imports no table of this type and no HTTP API; AWS does."""
    first = copy.deploy()
    mapping = copy.physical()
    copy.destroy()

    copy.adopt({BUCKET: mapping[BUCKET]})
    second = copy.deploy(update=True)

    assert second["BucketName"] == first["BucketName"]
