"""Exceptions from the checks of cdk-nag, checkov and cfn-lint, beside what they concern."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Acknowledgment, CfnResource, Stack, Validations
from constructs import IConstruct


def waive(construct: IConstruct, reasons: Mapping[str, str]) -> None:
    """Exempts a construct's resource from scanners' checks; at most once for each construct.

    cdk-nag reads the reasons in the construct tree, checkov and cfn-lint in the template's
    metadata, so your own scans of an app with an inbox find them too.

    Args:
        construct: a resource, or a construct around one.
        reasons: the reason by check: AwsSolutions-L1 (cdk-nag), CKV_AWS_18 (checkov) or W3005
            (cfn-lint).
    """
    nag = [Acknowledgment(id=c, reason=r) for c, r in reasons.items() if c.startswith("Aws")]
    skip = [{"id": c, "comment": r} for c, r in reasons.items() if c.startswith("CKV")]
    lint = [check for check in reasons if not check.startswith(("Aws", "CKV"))]
    if nag:
        Validations.of(construct).acknowledge(*nag)
    if not skip and not lint:
        return
    resource = construct.node.default_child or construct
    assert isinstance(resource, CfnResource)  # noqa: S101 - narrows the type
    if skip:
        resource.add_metadata("checkov", {"skip": skip})
    if lint:
        resource.add_metadata("cfn-lint", {"config": {"ignore_checks": lint}})


def wildcard(construct: IConstruct, arn: str) -> str:
    """Returns the id of cdk-nag's check for a policy's resource with a wildcard."""
    return f"AwsSolutions-IAM5[Resource::{_flat(Stack.of(construct).resolve(arn))}]"


def _flat(value: Any) -> str:
    """Writes a resolved ARN as cdk-nag does: a reference as `<Id.Attribute>`."""
    match value:
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(map(_flat, parts))
        case {"Ref": name}:
            return f"<{name}>"
    return str(value)
