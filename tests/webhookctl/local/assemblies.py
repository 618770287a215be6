"""Hand-made cloud assemblies: one HTTP API, one function that shows the event it was given."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"

ECHO = """
import base64, hashlib, json

def lambda_handler(event, context):
    body = event.get("body") or ""
    raw = base64.b64decode(body) if event["isBase64Encoded"] else body.encode()
    if raw == b"raise":
        raise ValueError("as asked")
    shown = {
        "method": event["requestContext"]["http"]["method"],
        "path": event["rawPath"],
        "query": event["rawQueryString"],
        "source": event["pathParameters"]["source"],
        "headers": event["headers"],
        "size": len(raw),
        "sha256": hashlib.sha256(raw).hexdigest(),
        "event_id": event["headers"].get("x-event-id"),
    }
    print(f"seen {len(raw)} bytes")
    return {
        "statusCode": int(event["headers"].get("x-wanted-status", "202")),
        "headers": {"content-type": "application/json", "x-Mixed-Case": "Kept"},
        "body": json.dumps(shown),
    }
"""


def resources(code_key: str) -> dict[str, Any]:
    """Returns the resources of the tiny template."""
    return {
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []}},
        },
        "Echo": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Runtime": "python3.13",
                "Handler": "echo.lambda_handler",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Timeout": 900,
                "Code": {"S3Bucket": {"Fn::Sub": BUCKET}, "S3Key": code_key},
            },
        },
        "Rows": {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "BillingMode": "PAY_PER_REQUEST",
                "TimeToLiveSpecification": {"AttributeName": "expires_at", "Enabled": True},
            },
        },
        "Api": {
            "Type": "AWS::ApiGatewayV2::Api",
            "Properties": {"Name": "tiny", "ProtocolType": "HTTP"},
        },
        "Stage": {
            "Type": "AWS::ApiGatewayV2::Stage",
            "Properties": {"ApiId": {"Ref": "Api"}, "StageName": "$default", "AutoDeploy": True},
        },
        "Integration": {
            "Type": "AWS::ApiGatewayV2::Integration",
            "Properties": {
                "ApiId": {"Ref": "Api"},
                "IntegrationType": "AWS_PROXY",
                "IntegrationUri": {"Fn::GetAtt": ["Echo", "Arn"]},
                "PayloadFormatVersion": "2.0",
            },
        },
        "Route": {
            "Type": "AWS::ApiGatewayV2::Route",
            "Properties": {
                "ApiId": {"Ref": "Api"},
                "RouteKey": "ANY /webhooks/{source}",
                "Target": {"Fn::Join": ["/", ["integrations", {"Ref": "Integration"}]]},
            },
        },
    }


def assemble(directory: Path, *, code: str = ECHO, extra: Mapping[str, Any] | None = None) -> Path:
    """Writes a cloud assembly such as the CDK's default synthesizer does."""
    bundle = directory / "asset.code"
    bundle.mkdir(parents=True, exist_ok=True)
    (bundle / "echo.py").write_text(code)
    code_key = f"{hash(code) & 0xFFFFFFFF:08x}.zip"
    template = {
        "Resources": {**resources(code_key), **(extra or {})},
        "Outputs": {
            "ApiId": {"Value": {"Ref": "Api"}},
            "FunctionName": {"Value": {"Ref": "Echo"}},
            "TableName": {"Value": {"Ref": "Rows"}},
        },
    }
    text = json.dumps(template, indent=1)
    (directory / "tiny.template.json").write_text(text)

    def listed(path: str, packaging: str, key: str) -> dict[str, Any]:
        return {
            "source": {"path": path, "packaging": packaging},
            "destinations": {"here": {"bucketName": BUCKET, "objectKey": key}},
        }

    files = {
        "code": listed("asset.code", "zip", code_key),
        "template": listed("tiny.template.json", "file", f"{hash(text) & 0xFFFFFFFF:08x}.json"),
    }
    (directory / "tiny.assets.json").write_text(json.dumps({"files": files}))
    stack = {
        "type": "aws:cloudformation:stack",
        "properties": {"templateFile": "tiny.template.json", "stackName": "Tiny"},
        "dependencies": ["tiny.assets"],
    }
    assets = {"type": "cdk:asset-manifest", "properties": {"file": "tiny.assets.json"}}
    artifacts = {"tiny": stack, "tiny.assets": assets, "Tree": {"type": "cdk:tree"}}
    (directory / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return directory
