"""The inbox as one construct, for this repository's stack and for any other CDK app."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from stacks.alarms import Alarms
from stacks.api import Api
from stacks.bucket import Bodies
from stacks.bundle import HOME, Workshop
from stacks.ingest import Ingest
from stacks.ledger import Ledger
from stacks.processor import Placement, Processor
from stacks.queue import SERIAL_RECEIVES, SPARE_RECEIVES, Lane
from stacks.reconciler import Reconciler
from stacks.replay import Replay
from stacks.resources import Boxes
from stacks.secrets import Secrets
from webhook_inbox import providers
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest


@dataclass(frozen=True, slots=True)
class InboxProps:
    """What an inbox may be told.

    Attributes:
        stage: its name among its like in one account; part of the secrets' and queues' names.
        functions: the directory with your `handlers/` and `inbox.toml`.
        build: where bundles and wheels are kept; `.build` beside `functions`, unless given.
        local: leaves third-party wheels out, for the runtime on a laptop.
        throttle_rate: requests a second that the API lets through for long.
        throttle_burst: requests that it lets through at once.
        placement: where the processors run and how many at once.
    """

    stage: str = "dev"
    functions: Path = HOME
    build: Path | None = None
    local: bool = False
    throttle_rate: float = 500
    throttle_burst: int = 1000
    placement: Placement = field(default_factory=Placement)


class WebhookInbox(Construct):
    """Everything between a provider's POST and your handlers.

    One to a stack: the command line finds an inbox by its stack's outputs.

    Attributes:
        manifest: the compiled configuration and handlers.
        processors: the functions that run handlers, by lane; grant them what they need.
    """

    def __init__(self, scope: Construct, construct_id: str, props: InboxProps) -> None:
        super().__init__(scope, construct_id)
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,19}", props.stage):
            raise ConfigurationError(
                f"stage {props.stage!r}: use 1-20 of a-z 0-9 -, a letter first"
            )
        self.manifest = compile_manifest(props.functions, stage=props.stage)
        boxes = self._boxes(props)
        ingest = Ingest(self, "Ingest", boxes)
        self.processors = {
            name: Processor(
                self, f"Processor-{name}", boxes=boxes, lane=lane, placement=props.placement
            )
            for name, lane in boxes.lanes.items()
        }
        replay = Replay(self, "Replay", boxes)
        reconciler = Reconciler(self, "Reconciler", boxes)
        api = Api(self, "Api", ingest=ingest, rate=props.throttle_rate, burst=props.throttle_burst)
        alarms = self._alarms(props, boxes)
        alarms.watch_intake(api.api, ingest)
        alarms.watch_reconciler(reconciler)
        alarms.watch_replay(replay)
        self._outputs(
            {
                "Stage": props.stage,
                "ApiUrl": api.url,
                "TableName": boxes.ledger.table.table_name,
                "BucketName": boxes.bodies.bucket.bucket_name,
                "QueueUrls": json.dumps(boxes.queue_urls),
                "DlqUrls": json.dumps(boxes.dlq_urls),
                "SecretPrefix": boxes.secrets.prefix,
                "IngestFunctionName": ingest.function_name,
                "ProcessorFunctionNames": json.dumps(
                    {lane: function.function_name for lane, function in self.processors.items()}
                ),
                "ReplayFunctionName": replay.function_name,
                "ReconcilerFunctionName": reconciler.function_name,
                **_webhook_urls(api.url, self.manifest.sources),
            }
        )

    def _boxes(self, props: InboxProps) -> Boxes:
        receives, serial = max_receive_count(self.manifest), self.manifest.serial_lanes
        build = props.build or props.functions.parent / ".build"
        return Boxes(
            ledger=Ledger(self, "Ledger", protected=props.stage == "prod"),
            bodies=Bodies(self, "Bodies"),
            lanes={
                name: Lane(
                    self,
                    f"Lane-{name}",
                    stage=props.stage,
                    name=name,
                    fifo=name in serial,
                    max_receive_count=SERIAL_RECEIVES if name in serial else receives,
                )
                for name in self.manifest.lanes
            },
            secrets=Secrets(
                self,
                "Secrets",
                stage=props.stage,
                names=self.manifest.secrets,
                hashes_tokens=any(
                    providers.load(spec).bears_tokens for spec in self.manifest.sources.values()
                ),
            ),
            manifest=self.manifest,
            workshop=Workshop(props.functions, self.manifest, build, wheels=not props.local),
        )

    def _alarms(self, props: InboxProps, boxes: Boxes) -> Alarms:
        settings = inbox_toml.load(props.functions / "inbox.toml", stage=props.stage)
        alarms = Alarms(self, "Alarms", addresses=[*settings.alarms.notify, *settings.alarms.page])
        for lane in boxes.lanes.values():
            alarms.watch_lane(lane, self.processors[lane.name])
        alarms.watch_serial(spec for spec in self.manifest.handlers.values() if spec.serial)
        alarms.watch_sources(self.manifest.sources)
        return alarms

    def _outputs(self, values: dict[str, str]) -> None:
        """Writes the outputs at the stack's own level, where their names stay as they are."""
        for name, value in values.items():
            CfnOutput(Stack.of(self), name, value=value)


def max_receive_count(manifest: Manifest) -> int:
    """Returns the receives after which SQS gives a message of a standard lane up.

    The largest of all these lanes: a message may outlast its handler's move to another one.
    """
    handlers = manifest.handlers.values()
    attempts = [handler.max_attempts for handler in handlers if not handler.serial]
    return max(attempts, default=0) + SPARE_RECEIVES


def _webhook_urls(api_url: str, sources: Iterable[str]) -> dict[str, str]:
    """Returns an output for each source, e.g. WebhookUrlStripeEu; outputs know no dashes."""
    named: dict[str, str] = {}
    for source in sources:
        name = "WebhookUrl" + "".join(part.capitalize() for part in source.split("-"))
        if name in named:
            raise ConfigurationError(
                f"inbox.toml: source {source!r} differs from another one by its dashes only;"
                " rename one"
            )
        named[name] = f"{api_url}/webhooks/{source}"
    return named
