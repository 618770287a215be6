"""The event that a handler receives."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar, overload

from webhook_inbox.domain.error_text import text_of
from webhook_inbox.domain.errors import Permanent
from webhook_inbox.handlers.schema_versions import Versions


class Model(Protocol):
    """A pydantic model class; a protocol, so that this module does not import pydantic."""

    @classmethod
    def model_validate_json(cls, json_data: bytes) -> Any:
        """Parses JSON; raises ValueError on a mismatch."""


M = TypeVar("M", bound=Model)

ModelClass = type[M]  # spelled here, since `Event.type` hides the builtin in its class


@dataclass(frozen=True, slots=True)
class Event:
    """A verified event.

    Attributes:
        source: the source in inbox.toml that received it.
        id: the event id, unique per source.
        type: the event type, such as "invoice.paid".
        received_at: the time of its first delivery; aware, UTC.
        headers: the stored headers by lower-case name.
        body: the bytes that the provider sent.
        occurred_at: the provider's time of the event, or None.
        agent: the authenticated sender, "" if the source does not distinguish senders.
        tenant: the tenant that the source's `tenant` locates, "" if it has none.
        versions: the payload versions that the handler declares.
    """

    source: str
    id: str
    type: str
    received_at: datetime
    headers: Mapping[str, str]
    body: bytes
    occurred_at: datetime | None = None
    agent: str = ""
    tenant: str = ""
    versions: Versions | None = None

    def json(self) -> Any:
        """Returns the parsed body; raises Permanent if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            fault = str(error)
        # Not within: the error above has the whole body as an attribute.
        raise Permanent(f"the body is not JSON: {fault}")

    @property
    def version(self) -> str:
        """The payload's version; raises Permanent if the handler does not declare it."""
        if self.versions is None:
            raise Permanent("this handler declares no versions: give versions= where it registers")
        return self.versions.version_of(self.json())

    @overload
    def parse(self, model: ModelClass[M]) -> M: ...

    @overload
    def parse(self, model: None = None) -> Any: ...

    def parse(self, model: Any = None) -> Any:
        """Returns the body as a pydantic model; raises Permanent on a mismatch.

        Without `model`, the declared model of the payload's version is used, or plain JSON if that
        version has none.
        """
        if model is None:
            version = self.version
            model = self.versions.models[version] if self.versions else None
        if model is None:
            return self.json()
        try:
            return model.model_validate_json(self.body)
        except ValueError as error:
            mistakes = text_of(error)
        # Not within: the error above shows parts of the body, wherever a handler logs it.
        raise Permanent(f"the body is not a valid {model.__name__}: {mistakes}")
