"""Payload models by version."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook_inbox.domain.errors import ConfigurationError, Permanent
from webhook_inbox.domain.json_path import at


@dataclass(frozen=True, slots=True)
class Versions:
    """The payload versions that a handler supports.

    Attributes:
        path: the path to the version in the body, such as "api_version".
        models: the pydantic model of each version; None for plain JSON.
        absent: the version of a payload without one; "" if every payload must have one.
    """

    path: str
    models: Mapping[str, Any] = field(default_factory=dict)
    absent: str = ""

    def __post_init__(self) -> None:
        """Validates the declaration.

        Raises:
            ConfigurationError: the path or the models are empty, a version is not text, or
                `absent` is not a declared version.
        """
        if not self.path or not self.models:
            raise ConfigurationError("versions need a path and at least one model")
        if not all(isinstance(version, str) for version in self.models):
            raise ConfigurationError('versions are named in quotes, like {"1": Order}')
        if self.absent and self.absent not in self.models:
            raise ConfigurationError(f"absent={self.absent!r} is none of the versions")

    def version_of(self, body: Any) -> str:
        """Returns the version of a payload; raises Permanent if the handler does not support it."""
        told = at(body, self.path)
        plain = isinstance(told, str | int) and not isinstance(told, bool)
        version = str(told) if plain else self.absent if told is None else ""
        if version not in self.models:
            asked = f"{_shown(told)} at {self.path}" if told is not None else f"no {self.path}"
            supported = ", ".join(map(repr, self.models))
            raise Permanent(f"the payload has {asked}, and this handler supports {supported}")
        return version


def _shown(version: Any) -> str:
    # An object or a list may hold any part of the payload.
    held = isinstance(version, dict | list)
    return type(version).__name__ if held else f"version {version!r}"
