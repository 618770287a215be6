"""The resources of a stack that have a price, whether or not events arrive."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from webhook_inbox.domain.manifest import METADATA, Manifest

FUNCTION = "AWS::Lambda::Function"
ALARM = "AWS::CloudWatch::Alarm"
# At this level Lambda writes no line for a successful invocation.
QUIET = "WARN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One stack; the defaults are those of a new project with one source and one handler.

    Attributes:
        sources: its sources.
        handlers: its handlers, and the inbox's own where it splits batches.
        lanes: its queues.
        ingest: the memory of ingest, in MB; so are `processor` and `reconciler`.
        batch: the most messages of an invocation of a processor.
        system_log: whether Lambda writes its own lines for each invocation.
        alarm_metrics: the metrics of all alarms.
        composites: its composite alarms.
        dashboards: its dashboards.
        secrets: its generated keys, and the documents of its sources and handlers.
        log_days: how long logs are kept.
        retention: how long the payloads of all sources are kept at the most, in seconds; 0 where
            those of a source are kept as long as their rows.
    """

    sources: int = 1
    handlers: int = 1
    lanes: int = 1
    ingest: int = 512
    processor: int = 512
    reconciler: int = 1769
    batch: int = 1
    system_log: bool = False
    alarm_metrics: int = 30
    composites: int = 0
    dashboards: int = 0
    secrets: int = 2
    log_days: int = 30
    retention: float = 0.0

    @classmethod
    def new(cls, handlers: int) -> Self:
        """Returns the stack of a new project with so many handlers, which have no own alarms."""
        return cls(handlers=handlers)

    @classmethod
    def of(cls, template: Mapping[str, Any]) -> Self:
        """Reads a synthesized template."""
        manifest = Manifest.from_data(json.loads(template["Metadata"][METADATA]))
        functions = {
            # ingest.lambda_function.lambda_handler
            str(function.get("Handler", "")).partition(".")[0]: function
            for function in _all(template, FUNCTION)
        }
        mappings = list(_all(template, "AWS::Lambda::EventSourceMapping"))
        logging = functions["processor"].get("LoggingConfig", {})
        kept = [each.retention for each in manifest.sources.values()]
        names = set(manifest.secrets) - {each.secret for each in manifest.sources.values()}
        return cls(
            sources=len(manifest.sources),
            handlers=len(manifest.handlers),
            lanes=len(mappings),
            ingest=functions["ingest"]["MemorySize"],
            processor=functions["processor"]["MemorySize"],
            reconciler=functions["reconciler"]["MemorySize"],
            batch=max(mapping.get("BatchSize", 1) for mapping in mappings),
            # A condition of the template decides in which regions.
            system_log=QUIET not in json.dumps(logging.get("SystemLogLevel")),
            alarm_metrics=sum(map(_metrics, _all(template, ALARM))),
            composites=len(list(_all(template, "AWS::CloudWatch::CompositeAlarm"))),
            dashboards=len(list(_all(template, "AWS::CloudWatch::Dashboard"))),
            secrets=len(list(_all(template, "AWS::SecretsManager::Secret"))) + 1 + bool(names),
            log_days=max(each["RetentionInDays"] for each in _all(template, "AWS::Logs::LogGroup")),
            retention=max(kept) if all(kept) else 0.0,
        )


def _all(template: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    for resource in template["Resources"].values():
        if resource["Type"] == kind:
            yield resource.get("Properties", {})


def _metrics(alarm: Mapping[str, Any]) -> int:
    """Returns the metrics that an alarm reads, each of which has a price."""
    return sum("MetricStat" in each for each in alarm.get("Metrics", ())) or 1
