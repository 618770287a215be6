"""Questions that the tests ask of a synthesized template."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webhook_inbox.domain.manifest import METADATA, Manifest

Properties = dict[str, Any]

# Kept, except by the rollback of the very deployment that made it: nothing is in it yet.
KEPT_ONCE_DEPLOYED = ("RetainExceptOnCreate", "Retain")


@dataclass(frozen=True)
class Template:
    """A template as CloudFormation gets it."""

    body: Mapping[str, Any]

    @classmethod
    def of(cls, assembly: Path, stack: str) -> "Template":
        return cls(json.loads((assembly / f"{stack}.template.json").read_text()))

    @property
    def ids(self) -> dict[str, str]:
        return {name: resource["Type"] for name, resource in self.body["Resources"].items()}

    @property
    def outputs(self) -> dict[str, Any]:
        return {name: output["Value"] for name, output in self.body["Outputs"].items()}

    @property
    def manifest(self) -> Manifest:
        return Manifest.from_data(json.loads(self.body["Metadata"][METADATA]))

    def all(self, kind: str) -> dict[str, Properties]:
        """The properties of every resource of a type, by logical id."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.body["Resources"].items()
            if resource["Type"] == kind
        }

    def one(self, kind: str, part: str = "") -> Properties:
        """The properties of the only resource of a type whose logical id holds `part`."""
        found = [properties for name, properties in self.all(kind).items() if part in name]
        assert len(found) == 1, f"{len(found)} of {kind} with {part!r}"
        return found[0]

    def resource(self, kind: str, part: str = "") -> dict[str, Any]:
        """The whole resource, with its policies, as `one` finds it."""
        properties = self.one(kind, part)
        return next(
            resource
            for resource in self.body["Resources"].values()
            if resource.get("Properties") is properties
        )

    def function(self, name: str) -> Properties:
        """A function by its folder's name; of processors the default lane's."""
        return self.one("AWS::Lambda::Function", _ids(name))

    def rights(self, name: str) -> dict[str, set[str]]:
        """What a function may do: actions by the resource, written as the template has it."""
        found: dict[str, set[str]] = {}
        policy = self.one("AWS::IAM::Policy", f"{_ids(name)}RoleDefaultPolicy")
        for statement in policy["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            for resource in _listed(statement["Resource"]):
                found.setdefault(named(resource), set()).update(_listed(statement["Action"]))
        return found


def survival(resource: Mapping[str, Any]) -> tuple[str, str]:
    """What happens to a resource at the end of its stack, and where another one replaces it."""
    return resource["DeletionPolicy"], resource["UpdateReplacePolicy"]


def named(value: Any) -> str:
    """Writes references as `${Id}` and `${Id.Attribute}` and joins the pieces."""
    match value:
        case {"Ref": name}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(map(named, parts))
    return str(value)


def _ids(name: str) -> str:
    return "InboxProcessordefault" if name == "processor" else f"Inbox{name.title()}"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
