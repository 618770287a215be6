"""The inbox as one construct."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from aws_cdk import Annotations, CfnOutput, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct
from webhook_inbox_cdk.alarms import Alarms
from webhook_inbox_cdk.answer_limit import strictest
from webhook_inbox_cdk.api import ANSWER_SECONDS, Api
from webhook_inbox_cdk.bucket import Bodies
from webhook_inbox_cdk.bundle import Workshop
from webhook_inbox_cdk.contents import processor_requirements
from webhook_inbox_cdk.context import Context
from webhook_inbox_cdk.dashboard import Dashboard
from webhook_inbox_cdk.domain import Domain
from webhook_inbox_cdk.function import InboxFunction
from webhook_inbox_cdk.ingest import INGEST_MEMORY, Ingest
from webhook_inbox_cdk.ledger import Ledger
from webhook_inbox_cdk.maintenance import Reconciler, Replay
from webhook_inbox_cdk.names import metrics_namespace, queue_prefix, stage_of
from webhook_inbox_cdk.network import needs, vpc_from
from webhook_inbox_cdk.platform import Platform
from webhook_inbox_cdk.policies import Policies
from webhook_inbox_cdk.processor import PROCESSOR_MEMORY, Placement, Processor
from webhook_inbox_cdk.queue import RECEIVES, SERIAL_RECEIVES, Lane
from webhook_inbox_cdk.resources import Resources
from webhook_inbox_cdk.saved_queries import saved_queries
from webhook_inbox_cdk.secrets import Secrets
from webhook_inbox_cdk.watched import Watched

from webhook_inbox import providers
from webhook_inbox.configuration import inbox_toml
from webhook_inbox.configuration.check_warnings import warnings
from webhook_inbox.configuration.compile import compile_manifest
from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import LOCAL, METADATA, TENANT_PATH, Manifest

PROD: Final = re.compile("prod(-.*)?")  # also a stage of a second region, such as prod-us
DEFAULTS: Final = Platform()
TRACING: Final = frozenset({"", "xray"})
MONTH: Final = 30
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
RETENTIONS: Final = (
    *(1, 3, 5, 7, 14, MONTH, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096),
    *(1827, 2192, 2557, 2922, 3288, 3653),
)


@dataclass(frozen=True, slots=True)
class InboxProps:
    """The settings of an inbox.

    Attributes:
        functions: the directory with your `handlers/`, `inbox.toml` and `requirements.txt`.
        stage: distinguishes inboxes of one account; part of the secrets' names.
        build: the directory for bundles and wheels; by default `.build` beside `functions`.
        local: leaves third-party wheels out, for the local runtime.
        python: the version of Python in Lambda, "3.13" or "3.12".
        architecture: the functions' architecture, "arm64" or "x86_64".
        placement: the reservation, network and rights of the processors.
        dashboard: whether the stack has a dashboard, and writes the metrics that only it reads; it
            costs 3 dollars a month after the account's first three, and each metric 0.30.
        tracing: "xray" for X-Ray's traces of the functions, "" for none.
        snapstart: whether ingest starts from a snapshot; never on the stage "local".
        log_retention: the days that CloudWatch keeps all logs.
        ingest_memory: the memory of ingest, in MB.
    """

    functions: Path
    stage: str = "dev"
    build: Path | None = None
    local: bool = False
    python: str = DEFAULTS.python
    architecture: str = DEFAULTS.architecture
    placement: Placement = field(default_factory=Placement)
    dashboard: bool = False
    tracing: str = ""
    snapstart: bool = False
    log_retention: int = MONTH
    ingest_memory: int = INGEST_MEMORY

    @classmethod
    def from_context(
        cls, stack: Stack, *, functions: Path, rights: Sequence[iam.PolicyStatement] = ()
    ) -> Self:
        """Returns the settings that `cdk.json` or `cdk -c` gives to a stack.

        Context: `stage` (default "dev"); `functions`, another directory than the given one;
        `local`, no wheels in the bundles (implied by the stage "local"); `python`;
        `architecture`; `dashboard`, true to have one; `reserved_concurrency`; `ingest_memory` and
        `processor_memory`; `tracing`; `snapstart`, true to have it; `log_retention`; and `vpc`, an
        object with `id`, `availability_zones` and `private_subnet_ids`, so that synthesis needs no
        lookup, and with `gateway_endpoints`, the ids of route tables that get endpoints for
        DynamoDB and S3.

        Args:
            stack: reads the context, and holds the network.
            functions: the project's directory.
            rights: the handlers' own IAM statements, see `allow`.

        Raises:
            ConfigurationError: a key is similar to one of these, or a value of another kind.
        """
        context = Context(stack)
        stage = stage_of(stack)
        return cls(
            functions=context.directory("functions") or functions,
            stage=stage,
            local=stage == LOCAL or context.flag("local"),
            python=context.text("python") or DEFAULTS.python,
            architecture=context.text("architecture") or DEFAULTS.architecture,
            dashboard=context.flag("dashboard"),
            tracing=context.text("tracing"),
            snapstart=context.flag("snapstart"),
            log_retention=context.number("log_retention", default=MONTH),
            ingest_memory=context.number("ingest_memory", default=INGEST_MEMORY),
            placement=Placement(
                reserved_concurrency=context.number("reserved_concurrency", default=None),
                memory=context.number("processor_memory", default=PROCESSOR_MEMORY),
                vpc=vpc_from(stack, context.table("vpc")),
                rights=rights,
            ),
        )


class WebhookInbox(Construct):
    """Everything between a provider's POST and your handlers.

    A stack holds one inbox: `webhookctl` reads the stack's outputs, and the manifest from its
    template.

    Attributes:
        manifest: the compiled configuration and handlers.
        processors: the functions that run handlers, by lane; grant them your handlers' rights.
    """

    def __init__(self, scope: Construct, construct_id: str, props: InboxProps) -> None:
        super().__init__(scope, construct_id)
        self.manifest = self._compiled(props)
        resources = self._resources(props)
        # The local runtime changes the functions themselves, and a version never changes.
        snapstart = props.snapstart and props.stage != LOCAL
        ingest = Ingest(self, "Ingest", resources, memory=props.ingest_memory, snapstart=snapstart)
        bundle = resources.workshop.make("processor")
        self.processors = {
            name: Processor(
                self,
                f"Processor-{name}",
                resources=resources,
                lane=lane,
                placement=props.placement,
                bundle=bundle,
            )
            for name, lane in resources.lanes.items()
        }
        replay = Replay(self, "Replay", resources)
        reconciler = Reconciler(self, "Reconciler", resources)
        functions = (ingest, *self.processors.values(), replay, reconciler)
        self._trace(props.tracing, functions)
        settings = inbox_toml.load(props.functions / "inbox.toml", stage=props.stage)
        arns = [each.log_group.log_group_arn for each in functions]
        policies = Policies(
            self, "Policies", resources=resources, replay=replay.function_arn, logs=arns
        )
        self._guide(props)
        api = Api(
            self,
            "Api",
            ingest=ingest.called,
            throttle=settings.throttle,
            sources=settings.throttles,
            tenants=[each.name for each in settings.sources.values() if each.tenant == TENANT_PATH],
            statuses=any(source.callers for source in settings.sources.values()),
            approvals=bool(self.manifest.approvers),
            count_by_route=props.dashboard,
        )
        self._keep_logs(
            props.log_retention, [*(each.log_group for each in functions), api.access_log]
        )
        watched = self._watched(resources, api, ingest, replay, reconciler)
        Alarms(self, "Alarms", watched=watched, recipients=settings.alarms)
        groups = {each.function_name: each.log_group.log_group_name for each in functions}
        saved_queries(self, [*groups.values()])
        if props.dashboard:
            Dashboard(self, "Dashboard", watched=watched, log_groups=[*groups.values()])
        Stack.of(self).add_metadata(METADATA, json.dumps(self.manifest.to_data()))
        url = self._domain(settings, api) if props.stage != LOCAL else api.url
        # On this machine, `webhookctl dev` sets the URL of its own port.
        if self.manifest.approvers and props.stage != LOCAL:
            for processor in self.processors.values():
                processor.link_to(url)
        self._outputs(
            {
                "Stage": props.stage,
                "ApiUrl": url,
                **_of_resources(resources),
                **_of_functions(watched, groups),
                **{f"{name}PolicyArn": arn for name, arn in policies.arns.items()},
                **_webhook_urls(url, self.manifest.sources),
            }
        )

    @staticmethod
    def _trace(tracing: str, functions: Iterable[InboxFunction]) -> None:
        if tracing not in TRACING:
            raise ConfigurationError(f'tracing: {tracing!r} is not known; use "xray", or remove it')
        for function in functions if tracing else ():
            function.trace()

    @staticmethod
    def _keep_logs(days: int, groups: Iterable[logs.ILogGroup]) -> None:
        if days not in RETENTIONS:
            raise ConfigurationError(
                f"log_retention: CloudWatch cannot keep logs for {days} days; it takes"
                f" {', '.join(map(str, RETENTIONS))}"
            )
        for group in groups:
            resource = group.node.default_child
            assert isinstance(resource, logs.CfnLogGroup)  # noqa: S101 - narrows the type
            resource.retention_in_days = days

    def _domain(self, settings: inbox_toml.Configuration, api: Api) -> str:
        """Returns the base URL: the custom domain's if there is one, or the API's own."""
        if settings.domain is None:
            return api.url
        domain = Domain(self, "Domain", spec=settings.domain, api=api)
        self._outputs({"DomainTarget": domain.target})
        return domain.url

    def _guide(self, props: InboxProps) -> None:
        """Protects the stack of a productive stage, and has the CDK print what a VPC needs."""
        if PROD.fullmatch(props.stage):
            # `cdk destroy` fails until the protection is removed by hand.
            Stack.of(self).termination_protection = True
        if props.placement.vpc is not None:
            Annotations.of(self).add_info_v2("webhook-inbox:vpc", needs(self.manifest))

    def _compiled(self, props: InboxProps) -> Manifest:
        files = processor_requirements(props.functions)
        manifest = compile_manifest(props.functions, stage=props.stage, requirements=files)
        for number, text in enumerate(warnings(props.functions, manifest)):
            Annotations.of(self).add_warning_v2(f"webhook-inbox:{number}", text)
        return manifest

    def _resources(self, props: InboxProps) -> Resources:
        serial = self.manifest.serial_lanes
        build = props.build or props.functions.parent / ".build"
        return Resources(
            ledger=Ledger(self, "Ledger", protected=PROD.fullmatch(props.stage) is not None),
            bodies=Bodies(self, "Bodies"),
            lanes={
                name: Lane(
                    self,
                    f"Lane-{name}",
                    name=name,
                    fifo=name in serial,
                    max_receive_count=SERIAL_RECEIVES if name in serial else RECEIVES,
                )
                for name in self.manifest.lanes
            },
            queue_prefix=queue_prefix(self),
            metrics_namespace=metrics_namespace(self),
            dashboard=props.dashboard,
            secrets=Secrets(
                self,
                "Secrets",
                makes_tokens=any(
                    spec.callers or providers.load(spec).bears_tokens
                    for spec in self.manifest.sources.values()
                ),
                makes_links=bool(self.manifest.approvers),
            ),
            manifest=self.manifest,
            workshop=Workshop(
                props.functions,
                self.manifest,
                build,
                wheels=not props.local,
                platform=Platform(props.python, props.architecture),
            ),
        )

    def _watched(
        self, resources: Resources, api: Api, ingest: Ingest, replay: Replay, reconciler: Reconciler
    ) -> Watched:
        lanes = resources.lanes
        return Watched(
            namespace=metrics_namespace(self),
            manifest=self.manifest,
            api=api.api.api_id,
            table=resources.ledger.table.table_name,
            ingest=ingest.function_name,
            replay=replay.function_name,
            reconciler=reconciler.function_name,
            processors={name: each.function_name for name, each in self.processors.items()},
            work={name: lane.work.queue_name for name, lane in lanes.items()},
            dead={name: lane.dead.queue_name for name, lane in lanes.items()},
            answer_limit=strictest(self.manifest.sources.values(), at_most=ANSWER_SECONDS),
        )

    def _outputs(self, values: dict[str, str]) -> None:
        """Writes the outputs at stack level, where CDK keeps their names unchanged."""
        for name, value in values.items():
            CfnOutput(Stack.of(self), name, value=value)


def _of_resources(resources: Resources) -> dict[str, str]:
    return {
        "TableName": resources.ledger.table.table_name,
        "BucketName": resources.bodies.bucket.bucket_name,
        "QueueUrls": json.dumps(resources.queue_urls),
        "DlqUrls": json.dumps(resources.dlq_urls),
        "SecretPrefix": resources.secrets.prefix,
        "GeneratedKeys": json.dumps(resources.secrets.token_key),
    }


def _of_functions(watched: Watched, log_groups: Mapping[str, str]) -> dict[str, str]:
    return {
        "IngestFunctionName": watched.ingest,
        "ProcessorFunctionNames": json.dumps(watched.processors),
        "ReplayFunctionName": watched.replay,
        "ReconcilerFunctionName": watched.reconciler,
        "LogGroupNames": json.dumps(log_groups),
    }


def _webhook_urls(api_url: str, sources: Iterable[str]) -> dict[str, str]:
    """Returns an output per source, e.g. WebhookUrlStripeEu; output names allow no dashes."""
    named: dict[str, str] = {}
    for source in sources:
        name = "WebhookUrl" + "".join(part.capitalize() for part in source.split("-"))
        if name in named:
            raise ConfigurationError(
                f"inbox.toml: source {source!r} differs from another source only in dashes;"
                " rename one"
            )
        named[name] = f"{api_url}/webhooks/{source}"
    return named
