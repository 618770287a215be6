"""An AWS account with the inbox's resources in it, and what can be seen there."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import botocore.session

from tests.contract.resources import create_bucket, create_queues, create_table
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.secrets_manager import SecretDocument
from webhook_inbox.domain.model import Run
from webhook_inbox.domain.ports import Change, Item
from webhook_inbox.domain.secret_document import rotated
from webhook_inbox.domain.secrets import GENERATED
from webhook_inbox.ledger.schema import event_key, run_from, run_key

PREFIX = "webhook-inbox/test/"
# All functions of these tests read the same one.
DOCUMENT = PREFIX + "secrets"
MAX_RECEIVE_COUNT = 5
REGION = "us-east-1"


def copy_of(message: dict[str, Any], *, copies: int = 1) -> dict[str, Any]:
    """Returns a message as the copy that replaced it, under the same id: it is due at once."""
    body = json.loads(message["Body"])
    return {**message, "Body": json.dumps({**body, "generation": body["generation"] + copies})}


@dataclass
class Account:
    """The table, the queues, the bucket and the secrets, through clients without faults."""

    clients: dict[str, Any]
    table_name: str
    bucket: str
    queue: str
    dead_letters: str
    standard: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The environment that the stacks set, for all functions."""
        default = self.standard or self.queue
        return {
            "TABLE_NAME": self.table_name,
            "BUCKET_NAME": self.bucket,
            "QUEUE_URL": default,
            "QUEUE_PREFIX": default.rpartition("/")[2].removesuffix("default"),
            "DLQ_NAMES": json.dumps({"default": self.dead_letters.rpartition("/")[2]}),
            "SECRET_DOCUMENT": DOCUMENT,
            "GENERATED_KEYS": json.dumps({name: PREFIX + name for name in sorted(GENERATED)}),
            "API_URL": "https://hooks.example",
            "LANE": "default",
            "MAX_RECEIVE_COUNT": str(MAX_RECEIVE_COUNT),
            "CODE_VERSION": "0123456789ab",
            "METRICS_NAMESPACE": "WebhookInbox/Account",
            "DASHBOARD": "true",
        }

    @property
    def table(self) -> DynamoTable:
        return DynamoTable(self.clients["dynamodb"], self.table_name)

    def rows(self, prefix: str = "") -> list[Item]:
        """Returns every row of the partitions that begin so."""
        wires = self.clients["dynamodb"].scan(TableName=self.table_name)["Items"]
        keys = [(wire["pk"]["S"], wire["sk"]["S"]) for wire in wires]
        partitions = dict.fromkeys(pk for pk, _ in sorted(keys) if pk.startswith(prefix))
        return [row for pk in partitions for row in self.table.query(pk)]

    def event(self, source: str, event_id: str) -> Item | None:
        return self.table.get(event_key(source, event_id))

    def run(self, source: str, event_id: str, handler: str) -> Run | None:
        row = self.table.get(run_key(source, event_id, handler))
        return None if row is None else run_from(row)

    def change(self, run: Run, **values: Any) -> None:
        """Writes over a run, as the passing of time would."""
        self.table.update(run_key(run.source, run.event_id, run.handler), Change(set=values))

    def set_secret(self, name: str, value: str) -> None:
        """Sets a secret, or creates a generated key."""
        client = self.clients["secretsmanager"]
        if name in GENERATED:
            client.create_secret(Name=PREFIX + name, SecretString=value)
            return
        document = SecretDocument(client, DOCUMENT)
        document.change(lambda secrets: rotated(secrets, name, value))

    def receive(self, queue: str = "", *, hidden_for: int = 360) -> list[dict[str, Any]]:
        """Returns every message that can be received, as SQS gives it."""
        return list(self._receive(queue or self.queue, hidden_for))

    def _receive(self, queue: str, hidden_for: int) -> Iterator[dict[str, Any]]:
        while (
            messages := self.clients["sqs"]
            .receive_message(
                QueueUrl=queue,
                MaxNumberOfMessages=10,
                VisibilityTimeout=hidden_for,
                MessageSystemAttributeNames=["All"],
            )
            .get("Messages")
        ):
            yield from messages

    def send(self, body: str) -> None:
        self.clients["sqs"].send_message(QueueUrl=self.queue, MessageBody=body)

    def delete(self, message: dict[str, Any]) -> None:
        self.clients["sqs"].delete_message(
            QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"]
        )

    def handlers_sent(self) -> list[str]:
        """Receives everything; returns the handlers that the messages name."""
        return sorted(json.loads(message["Body"])["handler"] for message in self.receive())

    def objects(self) -> list[str]:
        listing = self.clients["s3"].list_objects_v2(Bucket=self.bucket)
        return [entry["Key"] for entry in listing.get("Contents", [])]


@cache
def _clients(endpoint: str | None) -> dict[str, Any]:
    """Makes clients that share nothing with those of the functions, once for all tests."""
    session = botocore.session.get_session()
    return {
        service: session.create_client(service, endpoint_url=endpoint, region_name=REGION)
        for service in ("dynamodb", "sqs", "s3", "secretsmanager")
    }


def open_account(endpoint: str | None = None, *, name: str = "inbox") -> Account:
    """Makes the resources as the stacks do."""
    clients = _clients(endpoint)
    queue, dead = create_queues(
        clients["sqs"], f"{name}-default", max_receive_count=MAX_RECEIVE_COUNT
    )
    return Account(
        clients=clients,
        table_name=create_table(clients["dynamodb"], name),
        bucket=create_bucket(clients["s3"], f"{name}-bodies"),
        queue=queue,
        dead_letters=dead,
    )
