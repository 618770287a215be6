"""Schemas of a payload by version: which model a handler reads an event with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook_inbox.domain.errors import ConfigurationError, Permanent
from webhook_inbox.domain.json_path import at


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of a payload that a handler understands.

    Attributes:
        path: where the body's JSON says its version, like "api_version".
        models: the pydantic model of each version; None for one that is read without a model.
        absent: the version of a payload that does not say any, "" where it has to.
    """

    path: str
    models: Mapping[str, Any] = field(default_factory=dict)
    absent: str = ""

    def __post_init__(self) -> None:
        """Refuses versions that could never be met.

        Raises:
            ConfigurationError: there is no path, no model, a version is no text, or `absent` is
                none of them.
        """
        if not self.path or not self.models:
            raise ConfigurationError("versions need a path and at least one model")
        if not all(isinstance(version, str) for version in self.models):
            raise ConfigurationError('versions are named in quotes, like {"1": Order}')
        if self.absent and self.absent not in self.models:
            raise ConfigurationError(f"absent={self.absent!r} is none of the versions")

    def version_of(self, body: Any) -> str:
        """Returns the version of a payload.

        Raises:
            Permanent: the handler does not support it; no repetition helps.
        """
        told = at(body, self.path)
        plain = isinstance(told, str | int) and not isinstance(told, bool)
        version = str(told) if plain else self.absent if told is None else ""
        if version not in self.models:
            asked = f"version {told!r} at {self.path}" if told is not None else f"no {self.path}"
            supported = ", ".join(map(repr, self.models))
            raise Permanent(f"the payload has {asked}, and this handler supports {supported}")
        return version
