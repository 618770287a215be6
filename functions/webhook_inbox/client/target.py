"""An inbox with its resources: a stack in AWS, or the inbox on this machine."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from webhook_inbox.adapters.aws.account import Clients, SharedClients, caller_account
from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.client.cached import Cached
from webhook_inbox.client.errors import NotFound, Refused
from webhook_inbox.client.secret_documents import SecretDocuments
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.ports import Blobs, Queue, SecretStore, Table
from webhook_inbox.domain.secret_document import SOURCES, prefix_of
from webhook_inbox.ledger.queries import Ledger

# Seconds; commands that run for hours notice a deployment.
MANIFEST_AGE: Final = 60


@dataclass(frozen=True, slots=True)
class Target:
    """An inbox with its resources.

    Attributes:
        name: for messages.
        local: whether it runs on this machine.
        urls: the webhook URL of each source.
        client: service name to a low-level client.
        api_url: the API's own URL.
        queue_urls: the work queues by lane.
        dlq_urls: the dead-letter queues by lane.
        log_groups: the log groups by the functions' names.
        generated_keys: the ARNs of the keys that the stack generates for ingest, by name.
        read_manifest: reads the deployed manifest.
        stack_id: the ARN of the stack in AWS.
        processors: the names of the processors' functions by lane.
        reconciler: the name of the reconciler's function.
    """

    name: str
    local: bool
    stage: str
    table_name: str
    bucket_name: str
    secret_prefix: str
    replay_function: str
    urls: Mapping[str, str]
    client: Clients
    api_url: str = ""
    queue_urls: Mapping[str, str] = field(default_factory=dict)
    dlq_urls: Mapping[str, str] = field(default_factory=dict)
    log_groups: Mapping[str, str] = field(default_factory=dict)
    generated_keys: Mapping[str, str] = field(default_factory=dict)
    read_manifest: Callable[[], Manifest] = Manifest
    stack_id: str = ""
    processors: Mapping[str, str] = field(default_factory=dict)
    reconciler: str = ""

    @classmethod
    def of(
        cls,
        name: str,
        outputs: Mapping[str, str],
        client: Clients,
        *,
        urls: Mapping[str, str],
        read_manifest: Callable[[], Manifest],
        front: str = "",
        stack_id: str = "",
    ) -> "Target":
        """Returns the target of a stack's outputs; raises Refused for other stacks.

        `front` is the URL of an inbox on this machine.
        """
        try:
            return cls(
                name=name,
                local=bool(front),
                stage=outputs["Stage"],
                table_name=outputs["TableName"],
                bucket_name=outputs["BucketName"],
                secret_prefix=outputs["SecretPrefix"],
                replay_function=outputs["ReplayFunctionName"],
                urls=urls,
                client=client,
                api_url=front or outputs["ApiUrl"],
                queue_urls=json.loads(outputs["QueueUrls"]),
                dlq_urls=json.loads(outputs["DlqUrls"]),
                log_groups=json.loads(outputs["LogGroupNames"]),
                generated_keys=json.loads(outputs["GeneratedKeys"]),
                read_manifest=Cached(read_manifest, seconds=MANIFEST_AGE),
                stack_id=stack_id,
                processors=json.loads(outputs["ProcessorFunctionNames"]),
                reconciler=outputs["ReconcilerFunctionName"],
            )
        except KeyError as error:
            raise Refused(
                f"{name} is not a webhook-inbox stack, or was deployed by another version: it has"
                f" no output {error.args[0]}; check the name, or deploy it again"
            ) from error

    @property
    def stack(self) -> str:
        """The name of the CloudFormation stack, also that of the inbox on this machine."""
        return self.secret_prefix.split("/")[1]

    @property
    def line(self) -> str:
        """The stack, its account and its region; for the inbox on this machine, its URL."""
        if self.local:
            return f"{self.name} · {self.api_url}"
        account, region = self._place()
        return f"{self.name} · account {account or 'unknown'} · {region}"

    def _place(self) -> tuple[str, str]:
        """Returns account and region; a stack's ARN has both, so that no further call is made."""
        if self.stack_id:
            _, _, _, region, account, *_ = self.stack_id.split(":")
            return account, region
        return caller_account(self.client)

    @property
    def region(self) -> str:
        """The region of the stack, "" on this machine."""
        return self._place()[1] if self.stack_id and not self.local else ""

    @property
    def manifest(self) -> Manifest:
        """The deployed sources and handlers, whatever the working directory has."""
        return self.read_manifest()

    def close(self) -> None:
        """Closes the connections."""
        if isinstance(self.client, SharedClients):
            self.client.close()

    @property
    def table(self) -> Table:
        """The ledger's table."""
        return DynamoTable(self.client("dynamodb"), self.table_name)

    @property
    def blobs(self) -> Blobs:
        """The bucket of bodies."""
        return S3Blobs(self.client("s3"), self.bucket_name)

    @property
    def secrets(self) -> SecretStore:
        """The secrets that verify deliveries."""
        return SecretsManagerStore(
            self.client("secretsmanager"),
            self.secret_documents.id(SOURCES),
            keys=self.generated_keys,
        )

    @property
    def secret_documents(self) -> SecretDocuments:
        """The documents of all secrets, to read and change."""
        return SecretDocuments(self.client("secretsmanager"), self.secret_prefix)

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The work queues by lane."""
        client = self.client("sqs")
        return {lane: SqsQueue(client, url) for lane, url in self.queue_urls.items()}

    @property
    def dlqs(self) -> Mapping[str, Queue]:
        """The dead-letter queues by lane."""
        client = self.client("sqs")
        return {lane: SqsQueue(client, url) for lane, url in self.dlq_urls.items()}

    def ledger(self, *, with_bodies: bool = False) -> Ledger:
        """Returns the ledger; reading bodies needs permission for the bucket."""
        blobs = self.blobs if with_bodies else None
        return Ledger(table=self.table, blobs=blobs)


class NoStack(NotFound):
    """The selected stack does not exist; it may be deployed later.

    Attributes:
        planned: the target that it will be, of which only the secrets can be used.
    """

    def __init__(self, name: str, client: Clients) -> None:
        super().__init__(
            f"there is no stack {name} in this account and region: check --stack, --profile and"
            " --region"
        )
        self.planned = Target(
            name=name,
            local=False,
            stage=name.removeprefix("WebhookInbox-"),
            table_name="",
            bucket_name="",
            secret_prefix=prefix_of(name),
            replay_function="",
            urls={},
            client=client,
        )
