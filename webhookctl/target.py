"""The target of a command: the inbox on this machine, or a stack in AWS."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from webhook_inbox.adapters.aws.dynamodb import DynamoTable
from webhook_inbox.adapters.aws.s3 import S3Blobs
from webhook_inbox.adapters.aws.secrets_manager import SecretsManagerStore
from webhook_inbox.adapters.aws.sqs import SqsQueue
from webhook_inbox.domain.manifest import METADATA, Manifest
from webhook_inbox.domain.ports import Blobs, Queue, SecretStore, Table
from webhook_inbox.domain.secret_document import SOURCES, prefix_of
from webhook_inbox.ledger.queries import Ledger
from webhook_inbox.queue.lanes import Lanes
from webhookctl.account import Clients, resolve
from webhookctl.errors import CommandError
from webhookctl.local import state
from webhookctl.local.processes import ministack
from webhookctl.recent import Recent
from webhookctl.repository import own_directories
from webhookctl.secret_documents import SecretDocuments

VARIABLE: Final = "WEBHOOKCTL_TARGET"
LOCAL: Final = "local"
INBOX: Final = Path("functions", "inbox.toml")
URL_OUTPUT: Final = "WebhookUrl"
# Seconds; commands that run for hours notice a deployment.
MANIFEST_AGE: Final = 60


@dataclass(frozen=True, slots=True)
class Selection:
    """The user's options that select the target."""

    local: bool = False
    stack: str | None = None
    profile: str | None = None
    region: str | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The options that select the same target."""
        given = {"--stack": self.stack, "--profile": self.profile, "--region": self.region}
        words = [word for option, value in given.items() if value for word in (option, value)]
        return ("--local", *words) if self.local else tuple(words)


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
        """Returns the target of a stack's outputs; raises CommandError for other stacks.

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
                read_manifest=Recent(read_manifest, seconds=MANIFEST_AGE),
                stack_id=stack_id,
                processors=json.loads(outputs["ProcessorFunctionNames"]),
                reconciler=outputs["ReconcilerFunctionName"],
            )
        except KeyError as error:
            raise CommandError(
                f"the stack {name} is no webhook inbox, or of another version: it has no output"
                f" {error.args[0]}; check the name, or deploy it again"
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
        client = self.client("sts")
        try:
            return str(client.get_caller_identity()["Account"]), str(client.meta.region_name)
        except (BotoCoreError, ClientError):
            # The line only adds to the output: the command may not need STS.
            return "", str(client.meta.region_name)

    @property
    def region(self) -> str:
        """The region of the stack, "" on this machine."""
        return self._place()[1] if self.stack_id and not self.local else ""

    @property
    def manifest(self) -> Manifest:
        """The deployed sources and handlers, whatever the working directory has."""
        return self.read_manifest()

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
    def lanes(self) -> Lanes:
        """The work queues."""
        client = self.client("sqs")
        return Lanes({lane: SqsQueue(client, url) for lane, url in self.queue_urls.items()})

    @property
    def dlqs(self) -> Mapping[str, Queue]:
        """The dead-letter queues by lane."""
        client = self.client("sqs")
        return {lane: SqsQueue(client, url) for lane, url in self.dlq_urls.items()}

    def ledger(self, *, with_bodies: bool = False) -> Ledger:
        """Returns the ledger; reading bodies needs permission for the bucket."""
        blobs = self.blobs if with_bodies else None
        return Ledger(table=self.table, blobs=blobs)


class NoStack(CommandError):
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


def connect(selection: Selection) -> Target:
    """Returns the selected inbox; raises CommandError if none is selected, or it does not exist."""
    named = _named(selection)
    if named == LOCAL:
        if selection.profile or selection.region:
            raise CommandError(
                "--profile and --region select an AWS account: leave them out for the inbox on this"
                " machine, or use --stack NAME"
            )
        return _local()
    return _stack(named, resolve(selection.profile, selection.region).clients)


def _named(selection: Selection) -> str:
    if selection.local and selection.stack:
        raise CommandError("--local and --stack are two targets: give one of them")
    named = LOCAL if selection.local else selection.stack or os.environ.get(VARIABLE, "")
    if named:
        return named
    if _running() is not None:
        raise CommandError(
            "no target: an inbox runs on this machine, so use --local"
            f" (or set {VARIABLE}={LOCAL}); for one in AWS use --stack NAME"
        )
    raise CommandError(
        f"no target: use --stack NAME or --local, or set {VARIABLE} to a stack's name or {LOCAL}"
    )


def _running() -> state.State | None:
    """Returns the session of this directory or of its nearest parent.

    The search ends at the inbox that the directory belongs to: without a session of its own, a
    command must not reach that of an inbox around it.
    """
    for directory in own_directories(Path.cwd()):
        session = state.read(directory / state.DIRECTORY)
        if session is not None or (directory / INBOX).is_file():
            return session
    return None


def _local() -> Target:
    session = _running()
    if session is None:
        raise CommandError(
            "no inbox runs on this machine: start one with `webhookctl dev`, and call webhookctl in"
            " that directory"
        )
    urls = {name: f"{session.front}/webhooks/{name}" for name in _urls(session.outputs)}
    client = partial(ministack.client, endpoint=session.endpoint, credentials=session.credentials)
    read = partial(Manifest.from_data, session.manifest)
    front = session.front
    return Target.of(LOCAL, session.outputs, client, urls=urls, read_manifest=read, front=front)


def _stack(name: str, client: Clients) -> Target:
    try:
        [stack] = client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
        raise NoStack(name, client) from error
    outputs = {o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", ())}
    read = partial(_deployed, name, client)
    return Target.of(
        name, outputs, client, urls=_urls(outputs), read_manifest=read, stack_id=stack["StackId"]
    )


def _deployed(name: str, client: Clients) -> Manifest:
    """Returns the manifest that the stack was deployed with, from its template."""
    summary = client("cloudformation").get_template_summary(StackName=name)
    try:
        return Manifest.from_data(json.loads(json.loads(summary["Metadata"])[METADATA]))
    except (KeyError, TypeError, ValueError) as error:
        raise CommandError(
            f"the stack {name} has no manifest of this version in its template: deploy it again"
        ) from error


def _urls(outputs: Mapping[str, str]) -> dict[str, str]:
    """Returns the sources' URLs by name, their last path segment."""
    urls = (value for name, value in outputs.items() if name.startswith(URL_OUTPUT))
    return {url.rpartition("/")[2]: url for url in urls}
