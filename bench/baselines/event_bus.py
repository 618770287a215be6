"""The shape of AWS's quick starts for inbound webhooks: verify, one PutEvents.

Nothing is stored before the answer and no duplicate is recognised; a rule of the bus has to deliver
the event. An entry has 1 MB at most: above it PutEvents fails and the answer is 500, each time that
the provider tries again.
Source: github.com/aws-samples/serverless-patterns, `eventbridge-webhooks`.
"""

import json
import os
from typing import Any, Final

import boto3

from bench.baselines.signatures import RefusedError, verified

BUS: Final = os.environ["EVENT_BUS_NAME"]

events: Final = boto3.client("events")


def lambda_handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answers one delivery."""
    source, text = event["pathParameters"]["source"], event["body"]
    try:
        verified(source, event["headers"], text.encode())
    except RefusedError:
        return {"statusCode": 401, "body": "Invalid signature"}
    headers, document = event["headers"], json.loads(text)
    kind = headers["x-github-event"] if source == "github" else document["type"]
    entry = {"Source": f"{source}.com", "DetailType": kind, "Detail": text, "EventBusName": BUS}
    failed = events.put_events(Entries=[entry])["FailedEntryCount"]
    if failed:
        return {"statusCode": 500, "body": "The entry could not be forwarded"}
    return {"statusCode": 202, "body": "Message forwarded to Amazon EventBridge"}
