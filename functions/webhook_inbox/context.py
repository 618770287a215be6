"""What a handler is given: the event, and the context of its attempt."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Protocol, TypeVar

from webhook_inbox.errors import Permanent, Transient
from webhook_inbox.manifest import DestinationSpec

# Stripe's limit for an Idempotency-Key, the tightest of the common ones.
KEY_LIMIT = 255


class Model(Protocol):
    """A pydantic model's class; named by shape, so that importing this costs no pydantic."""

    @classmethod
    def model_validate_json(cls, json_data: bytes) -> Any:
        """Reads JSON, raising ValueError where it does not fit."""


M = TypeVar("M", bound=Model)
ModelClass = type[M]  # spelled here, since `Event.type` hides the builtin in its class


@dataclass(frozen=True, slots=True)
class Event:
    """What happened, as its handler sees it. `body` is the bytes the provider sent.

    `agent` is who sent it, "" where the source does not know its callers apart.
    """

    source: str
    id: str
    type: str
    received_at: datetime
    headers: Mapping[str, str]
    body: bytes
    occurred_at: datetime | None = None
    agent: str = ""

    def json(self) -> Any:
        """Returns the parsed body; one that is not JSON is a permanent failure."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Permanent(f"the body is not JSON: {error}") from error

    def parse(self, model: ModelClass[M]) -> M:
        """Returns the body as a pydantic model; a mismatch is a permanent failure."""
        try:
            parsed: M = model.model_validate_json(self.body)
        except ValueError as error:
            raise Permanent(f"the body is no {model.__name__}: {error}") from error
        return parsed


@dataclass(frozen=True, slots=True)
class Context:
    """One attempt of a run.

    Attributes:
        handler: the handler's name.
        attempt: this attempt's number, from 1, over the run's whole life.
        deadline: when the attempt is ended, whatever it is doing.
    """

    source: str
    event_id: str
    handler: str
    attempt: int
    deadline: datetime
    destinations: Mapping[str, DestinationSpec]
    secrets: Callable[[str], tuple[str, ...]]

    def idempotency_key(self, effect: str) -> str:
        """Returns the key to send downstream with the side effect of this name (G4).

        The same in every attempt, redelivery, redrive and replay. It fits an HTTP header: at
        most 255 printable ASCII characters, the tail hashed where the whole would not be.
        """
        key = f"{effect}:{self.handler}:{self.source}:{self.event_id}"
        if len(key) <= KEY_LIMIT and key.isascii() and key.isprintable():
            return key
        digest = sha256(key.encode(errors="surrogatepass")).hexdigest()
        return f"{self.handler}:{digest}"

    def destination(self, name: str) -> DestinationSpec:
        """Returns a destination of inbox.toml; one that is not there is a permanent failure."""
        found = self.destinations.get(name)
        if found is None:
            raise Permanent(f"destination {name!r} is not in inbox.toml: add [destinations.{name}]")
        return found

    def secret(self, name: str) -> str:
        """Returns a handler secret's current value; one that is not set is a transient failure."""
        values = self.secrets(name)
        if not values:
            raise Transient(f"secret {name!r} is not set: webhookctl secrets set {name}")
        return values[0]
