"""The arguments of Lambda functions: contexts, HTTP API events, SQS events."""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

# AWS's limit for a synchronous invocation's payload.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
PAYLOAD_LIMIT = 6 * 1024 * 1024


@dataclass
class LambdaContext:
    """The second argument of every function."""

    function_name: str
    remaining: float = 60.0
    aws_request_id: str = field(default_factory=lambda: str(uuid4()))
    memory_limit_in_mb: int = 512
    log_group_name: str = "/aws/lambda/test"
    log_stream_name: str = "2026/11/21/[$LATEST]0123456789abcdef"

    @property
    def invoked_function_arn(self) -> str:
        return f"arn:aws:lambda:us-east-1:123456789012:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        return int(self.remaining * 1000)


def http_event(
    path: str,
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    binary: bool | None = None,
) -> dict[str, Any]:
    """Returns an HTTP API event of format 2.0; a body is text where API Gateway takes it for such.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    """
    given = dict(headers or {})
    kind = next((value for name, value in given.items() if name.lower() == "content-type"), "")
    if binary is None:
        binary = not kind.startswith(("text/", "application/json", "application/xml"))
    text = base64.b64encode(body).decode() if binary else body.decode()
    event = {
        "version": "2.0",
        "routeKey": "ANY /webhooks/{source}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "0123456789.execute-api.us-east-1.amazonaws.com", **given},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "0123456789",
            "domainName": "0123456789.execute-api.us-east-1.amazonaws.com",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.9",
                "userAgent": given.get("user-agent", ""),
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "ANY /webhooks/{source}",
            "stage": "$default",
            "time": "21/Nov/2026:08:00:00 +0000",
            "timeEpoch": 1795248000000,
        },
        "pathParameters": {"source": path.rpartition("/")[2]},
        "isBase64Encoded": binary,
    }
    return {**event, "body": text} if body else event


def payload_size(event: Mapping[str, Any]) -> int:
    """Returns the bytes of an invocation's payload: JSON in UTF-8, escapes and all."""
    return len(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode())


def sqs_record(message: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Returns a received message as a record of an event source mapping."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": {"AWSTraceHeader": "Root=1-0", **message["Attributes"]},
        "messageAttributes": {},
        "md5OfBody": message.get("MD5OfBody", ""),
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:work",
        "awsRegion": "us-east-1",
        **changes,
    }


def sqs_event(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {"Records": list(records)}
