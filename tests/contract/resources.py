"""The resources of the adapters, created as the stacks create them."""

import json
from typing import Any

from webhook_inbox.adapters.aws.dynamodb import INDEX_KEYS

PROJECTIONS: dict[str, dict[str, Any]] = {
    "by_received": {
        "ProjectionType": "INCLUDE",
        "NonKeyAttributes": ["source", "type", "runs", "held", "tenant", "erased_at"],
    },
    "by_due": {"ProjectionType": "KEYS_ONLY"},
}


def create_table(client: Any, name: str) -> str:
    """Creates the ledger's table and returns its name."""
    kinds = {"pk": "S", "sk": "S"}
    for partition, sort in INDEX_KEYS.values():
        kinds |= {partition: "S", sort: "N"}
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=_keys("pk", "sk"),
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind} for name, kind in kinds.items()
        ],
        GlobalSecondaryIndexes=[
            {"IndexName": index, "KeySchema": _keys(*keys), "Projection": PROJECTIONS[index]}
            for index, keys in INDEX_KEYS.items()
        ],
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    return name


def create_queues(
    client: Any, name: str, *, max_receive_count: int, fifo: bool = False
) -> tuple[str, str]:
    """Creates a queue with a DLQ of its kind; returns their URLs."""
    suffix, kind = (".fifo", {"FifoQueue": "true"}) if fifo else ("", {})
    dead: str = client.create_queue(QueueName=f"{name}-dlq{suffix}", Attributes=kind)["QueueUrl"]
    attributes = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])
    policy = {
        "deadLetterTargetArn": attributes["Attributes"]["QueueArn"],
        "maxReceiveCount": max_receive_count,
    }
    work: str = client.create_queue(
        QueueName=name + suffix, Attributes=kind | {"RedrivePolicy": json.dumps(policy)}
    )["QueueUrl"]
    return work, dead


def create_bucket(client: Any, name: str) -> str:
    """Creates a bucket and returns its name."""
    client.create_bucket(Bucket=name)
    return name


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]
