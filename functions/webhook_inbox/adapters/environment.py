"""The environment variables of each function; the stacks set them from the same classes."""

import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Self

from webhook_inbox.domain.errors import ConfigurationError
from webhook_inbox.domain.manifest import Manifest
from webhook_inbox.domain.quotas import queue_name

# Texts by name: queue names by lane, ARNs by key.
Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Environment:
    """Reads and writes variables; a name is the field's, in capitals."""

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Returns the process's environment; a field with a default may be missing.

        Raises:
            ConfigurationError: a variable is missing or cannot be read.
        """
        named = (f for f in fields(cls) if f.default is MISSING or environ.get(f.name.upper()))
        return cls(**{field.name: _value(field.type, field.name, environ) for field in named})

    def variables(self) -> dict[str, str]:
        """Returns the variables for `read`."""
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {f.name.upper(): _text(value) for f, value in values if value != f.default}


@dataclass(frozen=True, slots=True, kw_only=True)
class _QueueEnvironment(_Environment):
    """Finds the work queues; a URL per lane would exceed Lambda's 4 KB of variables.

    `queue_url` is the URL of the default lane's work queue; the other URLs differ in their last
    segment, the queue's name. `queue_prefix` begins the names of all work queues.
    `metrics_namespace` is CloudWatch's namespace of the function's metrics; `dashboard` is whether
    the stack has a dashboard, which reads more of them than alarms do.
    """

    metrics_namespace: str
    dashboard: bool = False
    queue_url: str
    queue_prefix: str

    def queue_urls(self, manifest: Manifest) -> dict[str, str]:
        """Returns the URLs of the work queues by lane."""
        serial = manifest.serial_lanes
        return {
            lane: self._beside(queue_name(self.queue_prefix, lane, fifo=lane in serial))
            for lane in manifest.lanes
        }

    def _beside(self, name: str) -> str:
        return f"{self.queue_url.rpartition('/')[0]}/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestEnvironment(_QueueEnvironment):
    """Ingest: verify, store, send."""

    table_name: str
    bucket_name: str
    secret_document: str
    generated_keys: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorEnvironment(_QueueEnvironment):
    """One lane's processor; its role reaches other lanes' queues only if it splits batches.

    `api_url` begins the links of approvers; "" where inbox.toml names none.
    """

    table_name: str
    bucket_name: str
    secret_document: str
    generated_keys: Texts
    lane: str
    max_receive_count: int
    code_version: str
    api_url: str = ""

    def reachable(self, manifest: Manifest) -> dict[str, str]:
        """Returns the URL of its own queue, or of all work queues if it splits batches."""
        urls = self.queue_urls(manifest)
        return urls if manifest.splits(self.lane) else {self.lane: urls[self.lane]}


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceEnvironment(_QueueEnvironment):
    """Replay and reconciler: change runs, send them again, clear the DLQs.

    CloudFormation names the DLQs, so `dlq_names` has each lane's.
    """

    table_name: str
    bucket_name: str
    dlq_names: Texts

    @property
    def dlq_urls(self) -> dict[str, str]:
        """The URLs of the DLQs by lane."""
        return {lane: self._beside(name) for lane, name in self.dlq_names.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayEnvironment(MaintenanceEnvironment):
    """Replay also reads bodies."""

    bucket_name: str


def _value(kind: Any, field: str, environ: Mapping[str, str]) -> Any:
    name = field.upper()
    text = environ.get(name, "")
    if not text:
        raise ConfigurationError(f"the variable {name} is not set; deploy the stack again")
    if kind is str:
        return text
    if kind is bool:
        return text == "true"
    return _number(name, text) if kind is int else _texts(name, text)


def _number(name: str, text: str) -> int:
    # int() also accepts "1_0", " 7" and digits of other scripts.
    if not (text.isascii() and text.isdecimal()) or int(text) == 0:
        raise ConfigurationError(f"the variable {name} is not a positive number: {text[:40]!r}")
    return int(text)


def _texts(name: str, text: str) -> Texts:
    try:
        texts = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"the variable {name} is not JSON: {error}") from error
    if not isinstance(texts, dict) or not all(isinstance(t, str) and t for t in texts.values()):
        raise ConfigurationError(f"the variable {name} is not a JSON object of texts by name")
    return texts


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return json.dumps(dict(value), separators=(",", ":"))
    return "true" if value is True else str(value)
