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

    def deployed(self, region: str, partition: str = "aws") -> "Template":
        """The template as CloudFormation reads it in a region."""
        suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
        pseudo = {
            "AWS::Partition": partition,
            "AWS::Region": region,
            "AWS::URLSuffix": suffix,
            "AWS::AccountId": "123456789012",
        }
        return Template(_decided(self.body, pseudo, self.body.get("Conditions", {})))

    def rights(self, name: str) -> dict[str, set[str]]:
        """Returns the actions of a function by the resource, as the template has it."""
        found: dict[str, set[str]] = {}
        for statement in self.statements(name):
            assert statement["Effect"] == "Allow"
            for resource in _listed(statement["Resource"]):
                found.setdefault(named(resource), set()).update(_listed(statement["Action"]))
        return found

    def statements(self, name: str) -> list[dict[str, Any]]:
        """Returns the statements of a function's policies."""
        return [
            statement
            for each, policy in self.all("AWS::IAM::Policy").items()
            if each.startswith(f"{_ids(name)}Role")
            for statement in policy["PolicyDocument"]["Statement"]
        ]


def survival(resource: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the policies for the end of the stack and for a replacement of the resource."""
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


def _decided(value: Any, pseudo: Mapping[str, str], conditions: Mapping[str, Any]) -> Any:
    """Replaces pseudo parameters, and each Fn::If by what its condition selects."""
    match value:
        case {"Ref": str(name)} if name in pseudo:
            return pseudo[name]
        case {"Fn::If": [name, when, otherwise]}:
            selected = when if _holds(conditions[name], pseudo) else otherwise
            return _decided(selected, pseudo, conditions)
        case {"Fn::Join": [separator, parts]}:
            joined = [_decided(part, pseudo, conditions) for part in parts]
            whole = all(isinstance(part, str) for part in joined)
            return separator.join(joined) if whole else {"Fn::Join": [separator, joined]}
        case dict():
            return {
                key: _decided(each, pseudo, conditions)
                for key, each in value.items()
                if _decided(each, pseudo, conditions) != {"Ref": "AWS::NoValue"}
            }
        case list():
            return [_decided(each, pseudo, conditions) for each in value]
    return value


def _holds(condition: Mapping[str, Any], pseudo: Mapping[str, str]) -> bool:
    match condition:
        case {"Fn::And": parts}:
            return all(_holds(part, pseudo) for part in parts)
        case {"Fn::Not": [part]}:
            return not _holds(part, pseudo)
        case {"Fn::Equals": [{"Ref": name}, value]}:
            return pseudo[name] == value
    raise AssertionError(f"unknown condition {condition}")


def _ids(name: str) -> str:
    return "InboxProcessordefault" if name == "processor" else f"Inbox{name.title()}"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
