"""The environment variables of each function; the stacks set them from the same classes."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from webhook_inbox.domain.errors import ConfigurationError

# Texts by name: URLs by lane, ARNs by key.
Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Environment:
    """Reads and writes variables; a name is the field's, in capitals."""

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Returns the process's environment.

        Raises:
            ConfigurationError: a variable is missing or cannot be read.
        """
        return cls(**{field.name: _value(field.type, field.name, environ) for field in fields(cls)})

    def variables(self) -> dict[str, str]:
        """Returns the variables for `read`."""
        return {field.name.upper(): _text(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestEnvironment(_Environment):
    """Ingest: verify, store, send."""

    table_name: str
    bucket_name: str
    queue_urls: Texts
    secret_document: str
    generated_keys: Texts


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorEnvironment(_Environment):
    """One lane's processor; `queue_urls` has its own queue, or all queues if it splits batches."""

    table_name: str
    bucket_name: str
    queue_urls: Texts
    secret_document: str
    generated_keys: Texts
    lane: str
    max_receive_count: int
    code_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceEnvironment(_Environment):
    """Replay and reconciler: change runs, send them again, clear the DLQs."""

    table_name: str
    queue_urls: Texts
    dlq_urls: Texts


def _value(kind: Any, field: str, environ: Mapping[str, str]) -> Any:
    name = field.upper()
    text = environ.get(name, "")
    if not text:
        raise ConfigurationError(f"the variable {name} is not set; deploy the stack again")
    if kind is str:
        return text
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
    return str(value)
