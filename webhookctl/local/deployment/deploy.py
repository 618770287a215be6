"""Deploys a cloud assembly to ministack with CloudFormation, without the CDK CLI."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from botocore.exceptions import ClientError

from webhook_inbox.adapters.aws.account import LOOPBACK_REGION
from webhookctl.errors import CommandError
from webhookctl.local.deployment.assembly import Assembly

BOOTSTRAP_PARAMETER: Final = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_VERSION: Final = "30"
CAPABILITIES: Final = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
LIMIT: Final = 180.0  # seconds; a deployment takes one
POLL: Final = 0.05
TABLE_TYPES: Final = frozenset({"AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"})
# ministack has no metric math or saved queries; and no function reads the others.
NOT_EMULATED: Final = frozenset(
    {
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::Dashboard",
        "AWS::Logs::QueryDefinition",
    }
)

Clients = Callable[[str], Any]


class Deployer:
    """Deploys and updates one stack; uploads each asset once.

    Args:
        clients: service name to client.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._account = ""
        self._uploaded: set[tuple[str, str]] = set()

    def deploy(self, assembly: Assembly) -> dict[str, str]:
        """Creates or updates the stack and returns its outputs.

        Raises CommandError with the first failed resource and the reason.
        """
        bucket = self._upload(assembly)
        url = f"https://s3.{LOOPBACK_REGION}.amazonaws.com/{bucket}/{assembly.template_key}"
        if self._apply(assembly.stack_name, url):
            self._wait(assembly.stack_name)
        self._expire_rows(assembly)
        return self._outputs(assembly.stack_name)

    def _upload(self, assembly: Assembly) -> str:
        """Uploads the assets to the buckets of the template; returns the template's bucket."""
        if not self._account:
            self._bootstrap()
        template_bucket = ""
        storage = self._clients("s3")
        for asset in assembly.assets:
            bucket = self._resolve(asset.bucket)
            if asset.key == assembly.template_key:
                template_bucket = bucket
            if (bucket, asset.key) in self._uploaded:
                continue
            if bucket not in {name for name, _ in self._uploaded}:
                storage.create_bucket(Bucket=bucket)
            template = asset.key == assembly.template_key
            body = _emulated(asset.content()) if template else asset.content()
            storage.put_object(Bucket=bucket, Key=asset.key, Body=body)
            self._uploaded.add((bucket, asset.key))
        return template_bucket

    def _bootstrap(self) -> None:
        self._account = self._clients("sts").get_caller_identity()["Account"]
        self._clients("ssm").put_parameter(
            Name=BOOTSTRAP_PARAMETER, Value=BOOTSTRAP_VERSION, Type="String", Overwrite=True
        )

    def _resolve(self, name: str) -> str:
        pseudo = {"AccountId": self._account, "Region": LOOPBACK_REGION, "Partition": "aws"}
        for key, value in pseudo.items():
            name = name.replace(f"${{AWS::{key}}}", value)
        return name

    def _apply(self, name: str, url: str) -> bool:
        """Creates or updates the stack; returns False where nothing changes."""
        formation = self._clients("cloudformation")
        request = {"StackName": name, "TemplateURL": url, "Capabilities": CAPABILITIES}
        try:
            if self._describe(name) is None:
                formation.create_stack(**request)
            else:
                formation.update_stack(**request)
        except ClientError as error:
            reason = error.response["Error"].get("Message", "")
            if "No updates are to be performed" in reason:
                return False
            raise CommandError(f"CloudFormation refused the stack {name}: {reason}") from error
        return True

    def _describe(self, name: str) -> dict[str, Any] | None:
        try:
            found = self._clients("cloudformation").describe_stacks(StackName=name)["Stacks"]
        except ClientError:
            return None
        return next(iter(found), None)

    def _wait(self, name: str) -> None:
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            status = (self._describe(name) or {}).get("StackStatus", "missing")
            if status in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}:
                return
            if not status.endswith("_IN_PROGRESS"):
                raise CommandError(
                    f"the stack {name} ended as {status}: {self._first_failure(name)}"
                )
            time.sleep(POLL)
        raise CommandError(f"the stack {name} was not deployed within {LIMIT:.0f} s")

    def _first_failure(self, name: str) -> str:
        events = self._clients("cloudformation").describe_stack_events(StackName=name)
        failed = [e for e in events["StackEvents"] if e["ResourceStatus"].endswith("_FAILED")]
        if not failed:
            return "no resource reports a reason"
        first = failed[-1]
        return f"{first['LogicalResourceId']}: {first.get('ResourceStatusReason', 'no reason')}"

    def _expire_rows(self, assembly: Assembly) -> None:
        """Enables TTL, since ministack ignores TimeToLiveSpecification in templates."""
        tables = self._clients("dynamodb")
        for name, attribute in _expiring(assembly.template()).items():
            resource = self._clients("cloudformation").describe_stack_resource(
                StackName=assembly.stack_name, LogicalResourceId=name
            )
            table = resource["StackResourceDetail"]["PhysicalResourceId"]
            found = tables.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
            if found.get("TimeToLiveStatus") != "ENABLED":
                tables.update_time_to_live(
                    TableName=table,
                    TimeToLiveSpecification={"Enabled": True, "AttributeName": attribute},
                )

    def _outputs(self, name: str) -> dict[str, str]:
        stack = self._describe(name) or {}
        return {o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", ())}


def _expiring(template: Mapping[str, Any]) -> dict[str, str]:
    """Returns the TTL attributes by the tables' logical ids."""
    found = {}
    for name, resource in template.get("Resources", {}).items():
        setting = resource.get("Properties", {}).get("TimeToLiveSpecification", {})
        if resource["Type"] in TABLE_TYPES and setting.get("Enabled"):
            found[name] = setting["AttributeName"]
    return found


def _emulated(template: bytes) -> bytes:
    """Returns a template without the resources that ministack cannot create."""
    body = json.loads(template)
    kept = {n: r for n, r in body["Resources"].items() if r["Type"] not in NOT_EMULATED}
    return json.dumps({**body, "Resources": kept}).encode()
