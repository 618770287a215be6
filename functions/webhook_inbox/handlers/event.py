"""The event as a handler sees it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar, overload

from webhook_inbox.domain.errors import Permanent
from webhook_inbox.handlers.schema_versions import Versions


class Model(Protocol):
    """A pydantic model's class; named by shape, so that importing this costs no pydantic."""

    @classmethod
    def model_validate_json(cls, json_data: bytes) -> Any:
        """Reads JSON, raising ValueError where it does not fit."""


M = TypeVar("M", bound=Model)

ModelClass = type[M]  # spelled here, since `Event.type` hides the builtin in its class


@dataclass(frozen=True, slots=True)
class Event:
    """What happened, as its handler sees it.

    Attributes:
        source: the source in inbox.toml that it came by.
        id: its id, by which duplicates are known.
        type: what kind of event it is.
        received_at: when it came first; aware, UTC.
        headers: those of its headers that are kept, with lower-case names.
        body: the bytes that the provider sent.
        occurred_at: when it happened, where the provider says so.
        agent: who sent it, "" where the source does not know its callers apart.
        versions: the versions of its payload that the handler has declared.
    """

    source: str
    id: str
    type: str
    received_at: datetime
    headers: Mapping[str, str]
    body: bytes
    occurred_at: datetime | None = None
    agent: str = ""
    versions: Versions | None = None

    def json(self) -> Any:
        """Returns the parsed body; one that is not JSON is a permanent failure."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Permanent(f"the body is not JSON: {error}") from error

    @property
    def version(self) -> str:
        """The payload's version; one that the handler has not declared is a permanent failure."""
        if self.versions is None:
            raise Permanent("this handler declares no versions: give versions= where it registers")
        return self.versions.version_of(self.json())

    @overload
    def parse(self, model: ModelClass[M]) -> M: ...

    @overload
    def parse(self, model: None = None) -> Any: ...

    def parse(self, model: Any = None) -> Any:
        """Returns the body as a pydantic model; a mismatch is a permanent failure.

        Without a model that of the payload's version is taken, and where the version has none,
        plain JSON is returned.
        """
        if model is None:
            version = self.version
            model = self.versions.models[version] if self.versions else None
        if model is None:
            return self.json()
        try:
            return model.model_validate_json(self.body)
        except ValueError as error:
            raise Permanent(f"the body is no {model.__name__}: {error}") from error
