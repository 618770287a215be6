"""The baseline: the calls of a run without effects with boto3, and nothing else."""

import json
import os
import sys
import time
from typing import Any, Final

import boto3
from botocore.config import Config

TABLE: Final = os.environ["TABLE_NAME"]
dynamodb: Final = boto3.client("dynamodb", config=Config(tcp_keepalive=True))


def lambda_handler(event: dict[str, Any], _: Any) -> dict[str, Any]:
    """Reads the event, marks its run as begun and as done, and logs a line."""
    for record in event["Records"]:
        message = json.loads(record["body"])
        pk = {"S": f"event#{message['source']}#{message['event_id']}"}
        run = {"pk": pk, "sk": {"S": f"run#{message['handler']}"}}
        found = dynamodb.get_item(
            TableName=TABLE, Key={"pk": pk, "sk": {"S": "event"}}, ConsistentRead=True
        )
        for status in ("processing", "done"):
            dynamodb.update_item(
                TableName=TABLE,
                Key=run,
                UpdateExpression="SET #status = :status, #at = :at",
                ConditionExpression="attribute_not_exists(#status) OR #status <> :done",
                ExpressionAttributeNames={"#status": "status", "#at": "at"},
                ExpressionAttributeValues={
                    ":status": {"S": status},
                    ":at": {"N": str(int(time.time() * 1000))},
                    ":done": {"S": "done"},
                },
            )
        line = {"message": "done", "event": found["Item"]["type"]["S"]}
        sys.stdout.write(json.dumps(line) + "\n")
    return {"batchItemFailures": []}
