"""The limits of AWS that a template can exceed, checked after synthesis.

CloudFormation would find them during the deployment, and roll it back.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from webhook_inbox.domain.errors import ConfigurationError

SHARE_LANES: Final = "let several serial handlers share a lane: lane=… in their declarations"
FEWER: Final = f"{SHARE_LANES}; or divide sources and handlers between two stacks"
FEWER_SOURCES: Final = "divide the sources between two stacks"
FEWER_RIGHTS: Final = f"{FEWER}; or give fewer `rights`, with * in their ARNs"
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
RESOURCES: Final = 500
OUTPUTS: Final = 200
OUTPUT_NAME: Final = 255
TEMPLATE_BYTES: Final = 1_000_000
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
ENVIRONMENT_BYTES: Final = 4_096
FUNCTION_POLICY_BYTES: Final = 20_480
# What Lambda adds to each permission: the statement's id and the keys of the document.
PERMISSION_BYTES: Final = 200
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
ROLE_POLICY: Final = 10_240  # of all inline policies of a role, without spaces
MANAGED_POLICY: Final = 6_144
# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
ROUTES: Final = 300
ALARM_TEXT: Final = 1_024

RESOURCE_POLICIES: Final = {
    "AWS::S3::BucketPolicy": 20_480,
    "AWS::SNS::TopicPolicy": 30_720,
    "AWS::SQS::QueuePolicy": 8_192,
}
NAMES: Final = {
    "AWS::CloudWatch::Alarm": ("AlarmName", 255),
    "AWS::DynamoDB::GlobalTable": ("TableName", 255),
    "AWS::Events::Rule": ("Name", 64),
    "AWS::IAM::Role": ("RoleName", 64),
    "AWS::Lambda::Function": ("FunctionName", 64),
    "AWS::Logs::LogGroup": ("LogGroupName", 512),
    "AWS::S3::Bucket": ("BucketName", 63),
    "AWS::SQS::Queue": ("QueueName", 80),
    "AWS::SecretsManager::Secret": ("Name", 512),
}
# The types whose Ref is an ARN or a URL; that of all others is the name.
LOCATED: Final = {"AWS::SNS::Topic", "AWS::SQS::Queue", "AWS::SecretsManager::Secret"}
SUFFIX: Final = 14  # of a generated name: a dash, and 13 random characters
# "arn:aws-us-gov:SERVICE:us-gov-east-1:111122223333:" and "https://sqs.REGION.amazonaws.com.cn/…/".
AROUND: Final = 70
PSEUDO: Final = {
    "AWS::AccountId": 12,
    "AWS::Partition": 10,
    "AWS::Region": 14,
    "AWS::URLSuffix": 16,
    "AWS::NoValue": 0,
}


class Count(NamedTuple):
    """A quantity of a template beside its limit."""

    what: str
    found: int
    limit: int
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.found:,}, but AWS accepts {self.limit:,}; {self.remedy}"


def check(stack: str, template: Mapping[str, Any]) -> None:
    """Raises ConfigurationError with a line for each limit that a stack's template exceeds.

    Args:
        stack: the stack's name, part of generated names.
        template: as synthesized. References count as the longest value that they can have.
    """
    found = [each for each in counts(stack, template) if each.found > each.limit]
    if found:
        raise ConfigurationError("\n".join(f"{stack}: {each}" for each in found))


def counts(stack: str, template: Mapping[str, Any]) -> Iterator[Count]:
    """Yields every limited quantity of a template, exceeded or not; arguments as for `check`."""
    yield from _Template(stack, template).counts()


class _Template:
    """A template and what it contains of each limited quantity."""

    def __init__(self, stack: str, template: Mapping[str, Any]) -> None:
        self._stack = stack
        self._template = template
        self._resources: Mapping[str, Any] = template.get("Resources", {})

    def counts(self) -> Iterator[Count]:
        """See `counts`."""
        outputs = self._template.get("Outputs", {})
        size = len(json.dumps(self._template, indent=1).encode())
        yield Count("resources", len(self._resources), RESOURCES, FEWER)
        yield Count("outputs", len(outputs), OUTPUTS, FEWER_SOURCES)
        for name in outputs:
            remedy = "shorten the source's name"
            yield Count(f"characters in the name of output {name}", len(name), OUTPUT_NAME, remedy)
        yield Count("bytes of the template", size, TEMPLATE_BYTES, FEWER)
        yield from self._functions()
        yield from self._roles()
        yield from self._policies()
        yield from self._routes()
        yield from self._texts()

    def _functions(self) -> Iterator[Count]:
        permissions: Counter[str] = Counter()
        for properties in self._all("AWS::Lambda::Permission").values():
            function = _target(properties["FunctionName"])
            permissions[function] += self._length(properties) + PERMISSION_BYTES
        for name, size in permissions.items():
            what = f"bytes of the resource policy of function {name}"
            yield Count(what, size, FUNCTION_POLICY_BYTES, FEWER_SOURCES)
        for name, properties in self._all("AWS::Lambda::Function").items():
            variables = properties.get("Environment", {}).get("Variables", {})
            size = sum(len(key) + self._length(value) for key, value in variables.items())
            what = f"bytes of the environment variables of function {name}"
            yield Count(what, size, ENVIRONMENT_BYTES, SHARE_LANES)

    def _roles(self) -> Iterator[Count]:
        inline: Counter[str] = Counter()
        for properties in self._all("AWS::IAM::Policy").values():
            for role in properties.get("Roles", ()):
                inline[_target(role)] += self._length(properties["PolicyDocument"])
        for name, size in inline.items():
            what = f"characters in the inline policies of role {name}"
            yield Count(what, size, ROLE_POLICY, FEWER_RIGHTS)
        for name, properties in self._all("AWS::IAM::ManagedPolicy").items():
            size = self._length(properties["PolicyDocument"])
            yield Count(f"characters in policy {name}", size, MANAGED_POLICY, FEWER_RIGHTS)

    def _policies(self) -> Iterator[Count]:
        for kind, limit in RESOURCE_POLICIES.items():
            for name, properties in self._all(kind).items():
                size = self._length(properties["PolicyDocument"])
                yield Count(f"bytes of {kind} {name}", size, limit, "remove statements")

    def _routes(self) -> Iterator[Count]:
        routes = self._all("AWS::ApiGatewayV2::Route").values()
        for api, many in Counter(_target(route["ApiId"]) for route in routes).items():
            yield Count(f"routes of API {api}", many, ROUTES, FEWER_SOURCES)

    def _texts(self) -> Iterator[Count]:
        for kind, (key, limit) in NAMES.items():
            for name, properties in self._all(kind).items():
                size = self._length(properties.get(key, ""))
                what = f"characters in {key} of {name}"
                yield Count(what, size, limit, "shorten the stage, the lane or the source's name")
        for name, properties in self._all("AWS::CloudWatch::Alarm").items():
            size = self._length(properties.get("AlarmDescription", ""))
            what = f"characters in the description of alarm {name}"
            yield Count(what, size, ALARM_TEXT, "shorten the handler's or the lane's name")

    def _all(self, kind: str) -> dict[str, Mapping[str, Any]]:
        return {
            name: resource.get("Properties", {})
            for name, resource in self._resources.items()
            if resource["Type"] == kind
        }

    def _length(self, value: Any) -> int:
        """Returns the most characters that a value can have once it is resolved, as JSON."""
        match value:
            case {"Ref": str(name)}:
                return self._reference(name)
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return self._name(name) + (0 if attribute.endswith("Name") else AROUND)
            case {"Fn::Join": [str(separator), list(parts)]}:
                between = len(separator) * (len(parts) - 1)
                return between + sum(self._length(part) for part in parts)
            case dict():
                return sum(len(key) + 6 + self._length(each) for key, each in value.items()) + 2
            case list():
                return sum(3 + self._length(each) for each in value) + 2
        return len(str(value).encode())

    def _reference(self, name: str) -> int:
        if name in PSEUDO:
            return PSEUDO[name]
        kind = self._resources.get(name, {}).get("Type")
        return self._name(name) + (AROUND if kind in LOCATED else 0)

    def _name(self, logical_id: str) -> int:
        """Returns the length of a resource's name, as given or as CloudFormation generates it."""
        resource = self._resources.get(logical_id, {})
        key, limit = NAMES.get(resource.get("Type", ""), ("", 255))
        given = resource.get("Properties", {}).get(key)
        if given is not None:
            return self._length(given)
        return min(len(self._stack) + 1 + len(logical_id) + SUFFIX, limit)


def _target(value: Any) -> str:
    """Returns the logical id that a property refers to."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            return name
    return str(value)
