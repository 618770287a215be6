"""The barest durable receiver: verify one HMAC, PutItem, SendMessage, with boto3.

It has no replay guard, rotation of secrets, metrics, logs, retries of its own or way to recover
from a crash between its two calls. The secrets are environment variables, so it reads none.
"""

import json
import os
import time
from functools import cache
from typing import Any, Final

import boto3

from bench.baselines.signatures import RefusedError, verified

TABLE: Final = os.environ["TABLE_NAME"]
QUEUE: Final = os.environ["QUEUE_URL"]
BUCKET: Final = os.environ["BUCKET_NAME"]
# Bytes: an item has 400 KB at most, of which its other attributes need some.
ITEM_LIMIT: Final = 390 * 1024
# Seconds.
LIFE: Final = 90 * 86_400

dynamodb: Final = boto3.client("dynamodb")
sqs: Final = boto3.client("sqs")


@cache
def s3() -> Any:
    """Returns the client, which only large bodies need."""
    return boto3.client("s3")


def lambda_handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answers one delivery."""
    source, body = event["pathParameters"]["source"], event["body"].encode()
    try:
        event_id = verified(source, event["headers"], body)
    except RefusedError:
        return answer(401, "invalid signature")
    return answer(202 if accept(source, event_id, body) else 200, event_id)


def answer(status: int, text: str) -> dict[str, Any]:
    """Returns the response to API Gateway."""
    headers = {"content-type": "application/json"}
    return {"statusCode": status, "headers": headers, "body": json.dumps({"event": text})}


def accept(source: str, event_id: str, body: bytes) -> bool:
    """Stores an event and sends its message; returns False for a duplicate."""
    if not stored(source, event_id, body):
        return False
    sqs.send_message(QueueUrl=QUEUE, MessageBody=json.dumps({"source": source, "id": event_id}))
    return True


def stored(source: str, event_id: str, body: bytes) -> bool:
    """Writes an event's row, and a body that exceeds it to S3; returns False for a duplicate."""
    now = int(time.time())
    item = {
        "pk": {"S": f"{source}#{event_id}"},
        "received_at": {"N": str(now)},
        "expires_at": {"N": str(now + LIFE)},
    }
    if len(body) > ITEM_LIMIT:
        key = f"{source}/{event_id}"
        s3().put_object(Bucket=BUCKET, Key=key, Body=body)
        item["body_key"] = {"S": key}
    else:
        item["body"] = {"S": body.decode()}
    try:
        dynamodb.put_item(
            TableName=TABLE, Item=item, ConditionExpression="attribute_not_exists(pk)"
        )
    except dynamodb.exceptions.ConditionalCheckFailedException:
        return False
    return True
