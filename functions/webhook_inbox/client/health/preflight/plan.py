"""The deployment that a template describes, in the numbers that an account limits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from webhook_inbox.domain.manifest import Manifest

FUNCTION: Final = "AWS::Lambda::Function"
MAPPING: Final = "AWS::Lambda::EventSourceMapping"


@dataclass(frozen=True, slots=True)
class TemplateResources:
    """The resources of a template, by logical id."""

    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, template: Mapping[str, Any]) -> Self:
        """Returns the resources of a parsed template."""
        return cls(template.get("Resources", {}))

    def count(self, kind: str) -> int:
        """Returns the number of resources of a type."""
        return sum(1 for _ in self._all(kind))

    def names(self, kind: str, name: str) -> list[str]:
        """Returns the fixed names in the property `name` of a type's resources."""
        found = (properties.get(name) for _, properties in self._all(kind))
        return [each for each in found if isinstance(each, str)]

    @property
    def reserved(self) -> int:
        """The concurrent executions that the functions reserve."""
        return sum(self._reservations().values())

    @property
    def workers(self) -> int:
        """The largest number of workers that share the account's unreserved executions."""
        reserved = self._reservations()
        return sum(
            properties.get("ScalingConfig", {}).get("MaximumConcurrency", 0)
            for _, properties in self._all(MAPPING)
            if _referenced(properties["FunctionName"]) not in reserved
        )

    @property
    def lanes(self) -> int:
        """The number of functions that queues invoke."""
        return self.count(MAPPING)

    def _reservations(self) -> dict[str, int]:
        amounts = {
            logical_id: properties.get("ReservedConcurrentExecutions")
            for logical_id, properties in self._all(FUNCTION)
        }
        return {name: amount for name, amount in amounts.items() if amount}

    def _all(self, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for logical_id, resource in self.resources.items():
            if resource["Type"] == kind:
                yield logical_id, resource.get("Properties", {})


@dataclass(frozen=True, slots=True)
class DeploymentPlan:
    """The deployment of one stack.

    Attributes:
        stack: the stack's name.
        template: its resources.
        manifest: its sources and handlers.
        bootstrap_parameter: the SSM parameter with the version of the bootstrap resources.
        bootstrap_version: the version that the assembly requires.
        code: the size of the functions' files in bytes; Lambda stores them compressed.
    """

    stack: str
    template: TemplateResources
    manifest: Manifest
    bootstrap_parameter: str
    bootstrap_version: int
    code: int


def _referenced(value: object) -> str:
    return str(value.get("Ref", "")) if isinstance(value, Mapping) else str(value)
